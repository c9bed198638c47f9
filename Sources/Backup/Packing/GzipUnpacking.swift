import Archives
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
    var read: Int64 = 0
    var written: Int64 = 0
    var looked = -Self.stride
    do {
      // The room on the disk is the only limit: a caller that gives a file to restore trusts it that far.
      let limits = UnpackingLimits(bytes: .max, ratio: .max)
      var reader = try GzipReader(limits: limits, ignoringRest: true)
      while true {
        let input = try source.bytes(at: read, length: Self.piece)
        guard !input.isEmpty else { break }
        read += Int64(input.count)
        try reader.read(input) { bytes in
          if written - looked >= Self.stride {
            looked = written
            try requireSpace(for: path)
          }
          try target.write(bytes, at: written)
          written += Int64(bytes.count)
        }
        guard progress(.unpacking, read, source.count) else { throw BackupError.cancelled(Self.operation) }
      }
      try reader.finish()
    } catch {
      throw Self.told(error, packed)
    }
  }

  private static func told(_ error: any Error, _ packed: FilePath) -> BackupError {
    switch error {
    case let error as BackupError: return error
    case let error as FileError: return BackupError(error)
    case let error as ArchiveError where error.kind == .memory:
      return BackupError(.packing, because: error, operation: operation, path: packed)
    default:
      return BackupError(.damaged, operation: operation, path: packed, detail: "it is not a whole gzip file")
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
