import Platform

/// Reads the packed file of a backup block by block, and knows which blocks are damaged.
struct MemberReader: Sendable {
  let place: any BackupPlace
  let section: BackupSection
  let file: BackupManifest.File
  let content: BackupManifest.Content

  private let offsets: [Int64]

  /// Where members are that are not in their places.
  private let found: FoundMembers

  /// A reader of a file of a backup; nil for one that is not packed.
  ///
  /// - Throws: `compression-unavailable`.
  init?(
    _ file: BackupManifest.File, of manifest: BackupManifest, in place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) {
    try self.init(file, content: file.content ?? manifest.database, in: place, section)
  }

  /// A reader of a file that unpacks to some content; nil for one that is not packed.
  ///
  /// - Throws: `compression-unavailable`.
  init?(
    _ file: BackupManifest.File, content: BackupManifest.Content?, in place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) {
    guard let members = file.members, let content else { return nil }
    try file.packing.requireAvailable(to: "unpack the backup", file: file.name)
    self.place = place
    self.section = section
    found = FoundMembers(in: file.name, packedBy: file.packing, of: place, section)
    self.file = file
    self.content = content
    var offsets: [Int64] = []
    var offset: Int64 = 0
    for member in members {
      offsets.append(offset)
      offset += Int64(member)
    }
    self.offsets = offsets
  }

  /// The number of blocks; none for empty content.
  var blockCount: Int { content.blocks.count }

  /// The bytes that a block unpacks to.
  func length(of block: Int) -> Int {
    let length = Int64(BackupManifest.blockLength)
    return Int(max(0, min(length, content.bytes - Int64(block) * length)))
  }

  /// The member of a block as it lies there; shorter where the file is cut off, nil where it is missing.
  func member(_ block: Int) throws(BackupError) -> [UInt8]? {
    guard let members = file.members, members.indices.contains(block) else { return nil }
    do throws(BackupError) {
      // Where members are lost, a manifest that was made of the others gives one of them the bytes of all.
      let length = min(members[block], BackupManifest.longestMember)
      return try place.read(file.name, in: section, at: offsets[block], length: length)
    } catch {
      guard error.fileError?.kind == .notFound else { throw error }
      return nil
    }
  }

  /// A block as it was packed; nil where it is damaged or missing.
  ///
  /// - Throws: what the place says where it cannot be read; that is no damage.
  func block(_ block: Int) throws(BackupError) -> [UInt8]? {
    guard let member = try member(block) else { return nil }
    if let bytes = unpack(member, block) { return bytes }
    guard let length = file.members?[block] else { return nil }
    // Of an encrypted file a chunk that was altered may have parts of two blocks: the digest tells which of them is whole.
    if content.blocks.indices.contains(block), !content.blocks[block].isEmpty {
      let unproven = try place.readUnproven(
        file.name, in: section, at: offsets[block], length: min(length, BackupManifest.longestMember))
      if unproven != member, let bytes = unpack(unproven, block) { return bytes }
    }
    for offset in try found.places(of: block) where offset != offsets[block] {
      let member = try place.read(
        file.name, in: section, at: offset, length: min(length, BackupManifest.longestMember))
      let bytes = unpack(member, block)
      // The digest of the block says that it is the one.
      if let bytes { return bytes }
    }
    return nil
  }

  /// Unpacks a member; nil where it is not what was packed.
  func unpack(_ member: [UInt8], _ block: Int) -> [UInt8]? {
    guard content.blocks.indices.contains(block),
      let bytes = file.packing.unpack(member: member, count: length(of: block))
    else { return nil }
    let digest = content.blocks[block]
    if digest.isEmpty {
      // Where no manifest is left the member's own checksum, which was right, and its number have to do.
      return file.packing.memberHeader(member[...]).map { $0.number == UInt32(block) } == true ? bytes : nil
    }
    return FileDigest(of: bytes).hexadecimal == digest ? bytes : nil
  }
}

/// The members of a packed file by what their own headers say, for a file in which they are not where its manifest says:
/// where a part was cut out of it, or something was put in between.
///
/// The file is searched once, when the first member is missing from its place.
final class FoundMembers: Sendable {
  private let search: @Sendable () throws(BackupError) -> [UInt32: [Int64]]
  private let found = Mutex<[UInt32: [Int64]]?>(nil)

  /// How many places are kept of each number; what contradicts itself so often is no backup.
  private static let limit = 4

  init(
    in name: String, packedBy compression: BackupCompression, of place: any BackupPlace, _ section: BackupSection
  ) {
    search = { () throws(BackupError) in try Self.search(name, compression, place, section) }
  }

  /// Where members of that number may begin.
  func places(of number: Int) throws(BackupError) -> [Int64] {
    if let known = found.withLock({ $0 }) { return known[UInt32(clamping: number)] ?? [] }
    let all = try search()
    found.withLock { $0 = all }
    return all[UInt32(clamping: number)] ?? []
  }

  private static func search(
    _ name: String, _ compression: BackupCompression, _ place: any BackupPlace, _ section: BackupSection
  ) throws(BackupError) -> [UInt32: [Int64]] {
    var result: [UInt32: [Int64]] = [:]
    let length = 1 << 20
    var offset: Int64 = 0
    while true {
      // Each piece has the beginning of the next, so that no header is cut in two.
      let bytes = try place.read(name, in: section, at: offset, length: length + compression.memberHeaderLength)
      for start in compression.memberStarts(in: bytes, before: length) {
        guard let header = compression.memberHeader(bytes[start...]) else { continue }
        if (result[header.number]?.count ?? 0) < limit {
          result[header.number, default: []].append(offset + Int64(start))
        }
      }
      if bytes.count <= length { return result }
      offset += Int64(length)
    }
  }
}
