public import SystemPackage

/// A regular file open for reading; closes itself.
public final class ReadableFile: ByteSource {
  /// The path at opening.
  public let path: FilePath

  /// The status at opening.
  public let status: FileStatus

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  init(owning descriptor: FileDescriptor, at path: FilePath, in fileSystem: FileSystem) throws(FileError) {
    self.descriptor = descriptor
    self.path = path
    self.fileSystem = fileSystem
    self.status = try fileSystem.perform(.status, path, "look at the file") { () throws(Errno) in
      try SystemCalls.status(of: descriptor)
    }
    switch status.kind {
    case .regular: break
    case .directory: throw FileError(.isDirectory, operation: "open the file", path: path)
    case .symbolicLink, .other: throw FileError(.notRegularFile, operation: "open the file", path: path)
    }
  }

  deinit {
    // A close would release the locks of this process's connections if it is a store's file.
    KeptDescriptors.endUnlessLocked(descriptor)
  }

  /// The number of bytes at opening.
  public var count: Int64 { status.size }

  /// Reads from the file; short only at its end.
  public func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    guard offset >= 0, length > 0 else { return 0 }
    let wanted = min(length, buffer.count)
    return try fileSystem.perform(.read, path, "read the file") { () throws(Errno) in
      try errno {
        try unsafe buffer.withUnsafeMutableBytes { bytes in
          var done = 0
          while done < wanted {
            let got = try unsafe descriptor.read(
              fromAbsoluteOffset: offset + Int64(done),
              into: UnsafeMutableRawBufferPointer(rebasing: bytes[done..<wanted]))
            if got == 0 { break }
            done += got
          }
          return done
        }
      }
    }
  }

  private static let rangeLimit = 100_000

  /// The end of the data, before a trailing hole.
  package var dataEnd: Int64 {
    guard status.isSparse else { return count }
    var end: Int64 = 0
    for _ in 0..<Self.rangeLimit {
      guard let data = SystemCalls.nextData(in: descriptor, from: end, to: count) else { return end }
      end = data.upperBound
    }
    return count
  }

  /// Returns the current status.
  public func currentStatus() throws(FileError) -> FileStatus {
    try fileSystem.perform(.status, path, "look at the file") { () throws(Errno) in
      try SystemCalls.status(of: descriptor)
    }
  }
}
