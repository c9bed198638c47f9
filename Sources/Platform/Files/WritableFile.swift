public import SystemPackage

/// A file open for writing; only `commit()` guarantees that every byte is on disk.
public struct WritableFile: ~Copyable, Sendable {
  /// The path at creation.
  public let path: FilePath

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  init(owning descriptor: FileDescriptor, at path: FilePath, in fileSystem: FileSystem) {
    self.descriptor = descriptor
    self.path = path
    self.fileSystem = fileSystem
  }

  deinit {
    // Without a commit the file is unfinished anyway.
    try? descriptor.close()
  }

  /// Opens the same file for reading at its present length; only for unlinked files.
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

  package func write(_ bytes: some Collection<UInt8>, at offset: Int64) throws(FileError) {
    try fileSystem.perform(.write, path, "write the file") { () throws(Errno) in
      _ = try errno { try descriptor.writeAll(toAbsoluteOffset: offset, bytes) }
    }
  }

  package func truncate(to count: Int64) throws(FileError) {
    try fileSystem.perform(.truncate, path, "cut the file off") { () throws(Errno) in
      try errno { try descriptor.resize(to: count) }
    }
  }

  /// Starts writeback of a range, without waiting or a guarantee.
  package func beginWriting(at offset: Int64, length: Int64) {
    SystemCalls.beginWriting(descriptor, at: offset, length: length)
  }

  /// Synchronizes everything written so far.
  public func synchronize() throws(FileError) {
    try fileSystem.perform(.synchronize, path, "write the file to the disk") { () throws(Errno) in
      try SystemCalls.synchronize(descriptor)
    }
  }

  /// Synchronizes and closes the file.
  public consuming func commit() throws(FileError) {
    try synchronize()
  }
}
