internal import StoreFiles
internal import SystemPackage

/// A file of the result, written in any order.
final class ScrubbedFile {
  private let file: WritableFile

  let path: FilePath

  /// Makes the file, of a size, zeros everywhere.
  init(_ path: FilePath, size: Int64, in fileSystem: FileSystem) throws(FileError) {
    self.path = path
    file = try fileSystem.create(path, permissions: .ownerReadWrite)
    try file.truncate(to: size)
  }

  /// Writes the first bytes of a buffer.
  func write(_ bytes: [UInt8], count: Int, at offset: Int64) throws(FileError) {
    if count == bytes.count {
      try file.write(bytes, at: offset)
    } else {
      try file.write(bytes[..<count], at: offset)
    }
  }

  /// Pushes it to the disk.
  func finish() throws(FileError) { try file.synchronize() }
}
