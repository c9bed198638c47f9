import StoreFiles

/// The blocks of one packed file of a backup, unpacked and proven one by one.
struct BlockReader {
  let place: any BackupPlace
  let section: BackupSection
  let file: BackupManifest.File

  /// What it unpacks to.
  let content: BackupManifest.Content

  /// Where each member begins in the file.
  private let starts: [Int64]

  /// - Parameter content: what the file unpacks to; its own, or for the database of a full backup the manifest's.
  init(
    _ file: BackupManifest.File, content: BackupManifest.Content, in place: any BackupPlace,
    section: BackupSection = .kept
  ) {
    self.place = place
    self.section = section
    self.file = file
    self.content = content
    var starts: [Int64] = [0]
    for length in file.members ?? [] { starts.append((starts.last ?? 0) + Int64(length)) }
    self.starts = starts
  }

  /// The number of blocks.
  var count: Int { content.blocks.count }

  /// The number of bytes in a block.
  func length(of block: Int) -> Int {
    Int(min(Int64(BackupManifest.blockLength), content.bytes - Int64(block) * Int64(BackupManifest.blockLength)))
  }

  /// The content of a block; nil where it is lost: cut off, damaged, or not what the manifest says.
  ///
  /// - Throws: what the place says, where it is the place's fault and not the block's.
  func block(_ number: Int) throws(BackupError) -> [UInt8]? {
    guard number >= 0, number < count, number + 1 < starts.count else { return nil }
    let length = Int(starts[number + 1] - starts[number])
    let member: [UInt8]
    do throws(BackupError) {
      member = try place.read(file.name, in: section, at: starts[number], length: length)
    } catch {
      // A file that is missing altogether is damage to the backup; any other failure is the place's.
      guard error.fileError?.kind == .notFound else { throw error }
      return nil
    }
    guard member.count == length, let block = Inflate.unpack(member: member, count: self.length(of: number)),
      RunningDigest.hexadecimal(block) == content.blocks[number]
    else { return nil }
    return block
  }
}
