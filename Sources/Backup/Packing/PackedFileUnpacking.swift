package import Platform
package import SystemPackage

/// Unpacks a gzip or Zstandard file of any origin into an unnamed file.
///
/// It accepts any number of members or frames (RFC 1952, section 2.2; RFC 8878, section 3). Only disk space limits the
/// output.
package struct PackedFileUnpacking {
  private let fileSystem: FileSystem
  private let progress: BackupProgress

  package static let magicLength = 4

  package static func compression(of start: [UInt8]) -> BackupCompression? {
    if start.starts(with: [0x1f, 0x8b]) { return .gzip }
    guard start.count >= magicLength else { return nil }
    let isSkippable = start[0] & 0xf0 == 0x50 && start[1...3].elementsEqual([0x2a, 0x4d, 0x18])
    return isSkippable || start.starts(with: [0x28, 0xb5, 0x2f, 0xfd]) ? .zstd : nil
  }

  fileprivate static let operation = "unpack the backup"
  private static let piece = 1 << 18

  /// The disk space to keep free, and the interval of checks.
  private static let reserve: Int64 = 64 << 20
  private static let stride: Int64 = 16 << 20

  package init(in fileSystem: FileSystem, progress: @escaping BackupProgress = { _, _, _ in true }) {
    self.fileSystem = fileSystem
    self.progress = progress
  }

  /// - Parameter path: the name that the result has for a moment.
  /// - Throws: `backup-damaged`, `compression-unavailable`, `no-space`, `cancelled`, or file errors.
  package func unpack(_ source: ReadableFile, at path: FilePath) throws -> ReadableFile {
    let packed = source.path
    let target = try ExtractedFile(path, isUnnamed: true, in: fileSystem)
    var read: Int64 = 0
    var written: Int64 = 0
    var looked = -Self.stride
    do {
      let start = try source.bytes(at: 0, length: Self.magicLength)
      var reader = try Reader(Self.compression(of: start) ?? .gzip, packed)
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
      return try target.reading()
    } catch { throw Self.told(error, packed) }
  }

  private static func told(_ error: any Error, _ packed: FilePath) -> BackupError {
    switch error {
    case let error as BackupError: return error
    case let error as FileError where error.kind.subject == .fileSystem: return BackupError(error)
    default:
      return BackupError(
        .damaged, operation: operation, path: packed, detail: "it is not a whole gzip or Zstandard file")
    }
  }

  private func requireSpace(for path: FilePath) throws {
    guard try fileSystem.freeSpace(at: path.removingLastComponent()) >= Self.reserve else {
      throw FileError(.noSpace, operation: Self.operation, path: path)
    }
  }
}

private struct Reader: ~Copyable {
  private var gzip: GzipReader?
  private let zstandard: (any ZstandardReader)?

  init(_ compression: BackupCompression, _ packed: FilePath) throws {
    switch compression {
    case .gzip:
      // The caller trusts the file, so only disk space limits it.
      do throws(FileError) {
        gzip = try GzipReader(limits: UnpackingLimits(bytes: .max, ratio: .max), ignoringRest: true)
      } catch {
        throw BackupError(.packing, because: error, operation: PackedFileUnpacking.operation, path: packed)
      }
      zstandard = nil
    case .zstd:
      try compression.requireAvailable(to: "unpack the backup", file: packed.lastComponent?.string)
      guard let reader = ZstandardSupport.current?.reader() else { throw BackupError.memory() }
      zstandard = reader
      gzip = nil
    }
  }

  mutating func read(_ bytes: [UInt8], visit: (ArraySlice<UInt8>) throws -> Void) throws {
    guard let zstandard else { return try gzip?.read(bytes, visit: visit) ?? () }
    guard try zstandard.read(bytes, visit: visit) else { throw FileError(.gzipDamaged, "the packed bytes are damaged") }
  }

  consuming func finish() throws {
    guard let zstandard else { return try gzip.take()?.finish() ?? () }
    guard zstandard.isWhole else { throw FileError(.archiveCutOff, "the packed bytes end too early") }
  }
}
