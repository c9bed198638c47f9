import Compatibility
import SQLiteFormat
import StoreFiles
import SystemPackage

extension BackupExtraction {
  /// Writes the database of an original, as a reader would see it: with its log, or with a hot journal undone.
  ///
  /// No digests were taken of it, so that only the check of the result tells whether it is whole.
  func writeOriginal(_ manifest: BackupManifest, to file: ExtractedFile) throws(BackupError) -> Result {
    let content = try originalContent(manifest)
    let length = Int64(BackupManifest.blockLength)
    var offset: Int64 = 0
    while offset < content.count {
      let wanted = Int(min(length, content.count - offset))
      let bytes: [UInt8]
      do throws(FileError) { bytes = try content.bytes(at: offset, length: wanted) } catch { throw BackupError(error) }
      guard bytes.count == wanted else {
        throw BackupError(FileError(.changed, operation: "read the original", path: file.path))
      }
      try file.write(bytes[...], at: offset)
      offset += Int64(wanted)
      try advance(.unpacking, offset, content.count)
    }
    return Result()
  }

  /// The database of an original as a reader would see it: with its log, or with a hot journal undone.
  func originalContent(_ manifest: BackupManifest) throws(BackupError) -> DatabaseContent {
    func source(_ role: BackupManifest.File.Role) -> ObjectSource? {
      manifest.file(role).flatMap { $0.bytes > 0 ? ObjectSource($0, in: place, section) : nil }
    }
    do throws(FormatError) {
      guard let main = source(.originalMain) else {
        throw FormatError(
          FileError(.notFound, operation: "read the original", path: FilePath("\(manifest.id)")))
      }
      return DatabaseContent(
        try Database(
          main: main, writeAheadLog: source(.originalLog), rollbackJournal: source(.originalJournal)))
    } catch {
      throw BackupError(error, store: FilePath(place.location))
    }
  }

  /// Copies the large values of an original below a folder.
  ///
  /// - Parameter isWanted: which, by the names of their files.
  func writeOriginalValues(
    _ manifest: BackupManifest, into folder: FilePath, where isWanted: (String) -> Bool
  ) throws(BackupError) -> Result {
    guard manifest.file(.originalSupport) != nil, let place = place as? FolderPlace else { return Result() }
    do {
      try fileSystem.copyTree(place.support(of: manifest.id, in: section), to: folder, where: isWanted)
    } catch let error as FileError {
      throw BackupError(error)
    } catch {
      throw BackupError(FileError(.other, operation: "copy the large values", path: folder))
    }
    return Result()
  }
}

/// The bytes of an object that lies in a place as it is; the block that was read last is kept.
private final class ObjectSource: ByteSource {
  let count: Int64
  private let name: String
  private let place: any BackupPlace
  private let section: BackupSection
  private let last = Mutex<(block: Int64, bytes: [UInt8])?>(nil)

  init(_ file: BackupManifest.File, in place: any BackupPlace, _ section: BackupSection) {
    count = file.bytes
    name = file.name
    self.place = place
    self.section = section
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, offset < count, length > 0 else { return 0 }
    let wanted = Int(min(Int64(min(length, buffer.count)), count - offset))
    let blockLength = Int64(BackupManifest.blockLength)
    var done = 0
    while done < wanted {
      let position = offset + Int64(done)
      let bytes = try block(position / blockLength)
      let start = Int(position % blockLength)
      let end = min(bytes.count, start + wanted - done)
      guard start < end else { break }
      buffer.replaceSubrange(done..<(done + end - start), with: bytes[start..<end])
      done += end - start
    }
    return done
  }

  private func block(_ number: Int64) throws(FileError) -> [UInt8] {
    if let known = last.withLock({ $0 }), known.block == number { return known.bytes }
    let bytes: [UInt8]
    do throws(BackupError) {
      bytes = try place.read(
        name, in: section, at: number * Int64(BackupManifest.blockLength), length: BackupManifest.blockLength)
    } catch {
      throw error.fileError ?? FileError(.other, operation: error.operation, path: FilePath(name), detail: error.detail)
    }
    last.withLock { $0 = (number, bytes) }
    return bytes
  }
}
