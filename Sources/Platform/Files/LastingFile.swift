package import SystemPackage

/// A store's file, open for reading, closed without releasing this process's locks; see ``KeptDescriptors``.
package final class LastingFile: ByteSource {
  package let path: FilePath

  package let status: FileStatus

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  /// Opens a regular file; never blocks or changes it.
  package init(_ path: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.path = path
    self.fileSystem = fileSystem
    descriptor = try fileSystem.perform(.open, path, "open the file") { () throws(Errno) in
      if let status = try SystemCalls.status(of: path, followingLinks: true),
        let kept = KeptDescriptors.take(status.identity)
      {
        return kept
      }
      return try errno { try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]) }
    }
    let opened = descriptor
    do throws(FileError) {
      status = try fileSystem.perform(.status, path, "look at the file") { () throws(Errno) in
        try SystemCalls.status(of: opened)
      }
    } catch {
      KeptDescriptors.end(opened)
      throw error
    }
    guard status.kind == .regular else {
      KeptDescriptors.end(opened)
      throw FileError(
        status.kind == .directory ? .isDirectory : .notRegularFile, operation: "open the file", path: path)
    }
  }

  deinit { KeptDescriptors.end(descriptor) }

  package var count: Int64 { status.size }

  /// Reads from the file; short only at its end.
  package func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, length > 0 else { return 0 }
    let wanted = min(length, buffer.count)
    return try fileSystem.perform(.read, path, "read the file") { () throws(Errno) in
      try SystemCalls.read(descriptor, at: offset, length: wanted, into: &buffer)
    }
  }

  package func currentStatus() throws(FileError) -> FileStatus {
    try fileSystem.perform(.status, path, "look at the file") { () throws(Errno) in
      try SystemCalls.status(of: descriptor)
    }
  }

  func lock<Result>(
    _ operation: String, _ body: (FileDescriptor) throws(Errno) -> Result
  ) throws(FileError) -> Result {
    try fileSystem.perform(.lock, path, operation) { () throws(Errno) in try body(descriptor) }
  }
}
