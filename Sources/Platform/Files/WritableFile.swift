public import SystemPackage

/// A file that is being written; closes itself, but only `commit()` says that every byte is on the disk.
public struct WritableFile: ~Copyable, Sendable {
  /// The path it was created at.
  public let path: FilePath

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  init(owning descriptor: FileDescriptor, at path: FilePath, in fileSystem: FileSystem) {
    self.descriptor = descriptor
    self.path = path
    self.fileSystem = fileSystem
  }

  deinit {
    // Only reached without a commit, where the file is unfinished anyway.
    try? descriptor.close()
  }

  /// The same file for reading, as long as it is now; only of one that was created without a name.
  package func reading() throws(FileError) -> ReadableFile {
    let other = try fileSystem.perform(.open, path, "open the file") { () throws(Errno) in
      try errno { try descriptor.duplicate() }
    }
    return try ReadableFile(owning: other, at: path, in: fileSystem)
  }

  /// Appends bytes.
  public func write(_ bytes: some Collection<UInt8>) throws(FileError) {
    try fileSystem.perform(.write, path, "write the file") { () throws(Errno) in
      _ = try errno { try descriptor.writeAll(bytes) }
    }
  }

  /// Writes bytes at an offset, over what is there.
  package func write(_ bytes: some Collection<UInt8>, at offset: Int64) throws(FileError) {
    try fileSystem.perform(.write, path, "write the file") { () throws(Errno) in
      _ = try errno { try descriptor.writeAll(toAbsoluteOffset: offset, bytes) }
    }
  }

  /// Cuts the file off behind a number of bytes.
  package func truncate(to count: Int64) throws(FileError) {
    try fileSystem.perform(.truncate, path, "cut the file off") { () throws(Errno) in
      try errno { try descriptor.resize(to: count) }
    }
  }

  /// Has the system begin to bring a range to the disk; nothing is waited for, and nothing is certain.
  package func beginWriting(at offset: Int64, length: Int64) {
    SystemCalls.beginWriting(descriptor, at: offset, length: length)
  }

  /// Pushes everything written so far to the disk.
  public func synchronize() throws(FileError) {
    try fileSystem.perform(.synchronize, path, "write the file to the disk") { () throws(Errno) in
      try SystemCalls.synchronize(descriptor)
    }
  }

  /// Ends the writing: every byte is on the disk when this returns.
  public consuming func commit() throws(FileError) {
    try synchronize()
  }
}
