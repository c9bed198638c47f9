public import SystemPackage

/// A regular file that is open for reading; closes itself.
public final class ReadableFile: ByteSource {
  /// The path it was opened at.
  public let path: FilePath

  /// The file's status when it was opened.
  public let status: FileStatus

  let descriptor: FileDescriptor
  private let fileSystem: FileSystem

  /// Takes over an open descriptor; refuses anything but a regular file.
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
    // It may be a store's file, whose locks a connection of this process would lose.
    KeptDescriptors.endUnlessLocked(descriptor)
  }

  /// The number of bytes when it was opened.
  public var count: Int64 { status.size }

  /// Reads from the file; shorter only at its end.
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

  /// The most ranges of a file that are looked at for its holes.
  private static let rangeLimit = 100_000

  /// Where the last byte ends that is not in a hole at the end of the file; the file's end where that has none.
  package var dataEnd: Int64 {
    guard status.isSparse else { return count }
    var end: Int64 = 0
    for _ in 0..<Self.rangeLimit {
      guard let data = SystemCalls.nextData(in: descriptor, from: end, to: count) else { return end }
      end = data.upperBound
    }
    return count
  }

  /// The status of the open file now, which may have grown or changed since.
  public func currentStatus() throws(FileError) -> FileStatus {
    try fileSystem.perform(.status, path, "look at the file") { () throws(Errno) in
      try SystemCalls.status(of: descriptor)
    }
  }
}
