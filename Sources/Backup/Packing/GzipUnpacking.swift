package import StoreFiles
package import SystemPackage

/// Unpacks a gzip file of any origin into a new file, a piece at a time.
///
/// Ours or not, one member or many (RFC 1952, section 2.2). What it unpacks to is bounded by the room on the disk alone, of
/// which some is left.
package struct GzipUnpacking {
  private let fileSystem: FileSystem
  private let progress: BackupProgress

  /// The first bytes of every gzip file.
  package static let magic: [UInt8] = [0x1f, 0x8b]

  private static let operation = "unpack the backup"
  private static let piece = 1 << 18

  /// What is left free on the disk, and how often that is looked at, in bytes.
  private static let reserve: Int64 = 64 << 20
  private static let stride: Int64 = 16 << 20

  /// An unpacking through a file system.
  package init(in fileSystem: FileSystem, progress: @escaping BackupProgress = { _, _, _ in true }) {
    self.fileSystem = fileSystem
    self.progress = progress
  }

  /// Unpacks a file.
  ///
  /// - Throws: `backup-damaged` where it does not unpack to its end, `no-space`, `cancelled`, or what the file system says.
  package func unpack(_ packed: FilePath, to path: FilePath) throws(BackupError) {
    let source: any ByteSource
    do throws(FileError) { source = try fileSystem.open(packed) } catch { throw BackupError(error) }
    let target = try ExtractedFile(path, in: fileSystem)
    guard let stream = GzipStream() else {
      throw BackupError(
        .packing, operation: Self.operation, path: packed, detail: "memory is short", hint: "Free some, then try again."
      )
    }
    var read: Int64 = 0
    var written: Int64 = 0
    var looked = -Self.stride
    while true {
      let input: [UInt8]
      do throws(FileError) { input = try source.bytes(at: read, length: Self.piece) } catch { throw BackupError(error) }
      guard !input.isEmpty else { break }
      read += Int64(input.count)
      stream.feed(input)
      while let bytes = stream.next(Self.piece) {
        if written - looked >= Self.stride {
          looked = written
          try requireSpace(for: path)
        }
        try target.write(bytes[...], at: written)
        written += Int64(bytes.count)
        guard progress(.unpacking, read, source.count) else { throw .cancelled(Self.operation) }
      }
      guard !stream.isBroken else { break }
    }
    guard stream.isWhole else {
      throw BackupError(
        .damaged, operation: Self.operation, path: packed, detail: "it is not a whole gzip file",
        hint: "Use another backup, or none.")
    }
  }

  private func requireSpace(for path: FilePath) throws(BackupError) {
    do throws(FileError) {
      guard try fileSystem.freeSpace(at: path.removingLastComponent()) >= Self.reserve else {
        throw FileError(.noSpace, operation: Self.operation, path: path)
      }
    } catch {
      throw BackupError(error)
    }
  }
}
