package import SystemPackage

extension FileSystem {
  /// Copies the first bytes of a store's file into a new one, as fast as the system can, while the caller keeps them still.
  ///
  /// Blocks are shared where the file system can. Nothing is read back or pushed to the disk: the copy is for this run alone.
  ///
  /// - Throws: `changed-meanwhile` where the file is shorter, or what reading and writing throw; the caller removes the copy.
  package func copyStill(_ source: LastingFile, count: Int64, to destination: FilePath) throws(FileError) {
    let copy = try create(destination, permissions: .ownerReadWrite)
    let target = copy.descriptor
    let isShared = try perform(.write, destination, "copy the file") { () throws(Errno) in
      SystemCalls.shareBlocks(from: source.descriptor, to: target)
    }
    if isShared {
      guard try source.currentStatus().size >= count else { throw Self.shorter(source) }
      return
    }
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    var done: Int64 = 0
    while done < count {
      let got = try source.read(at: done, length: Int(min(Int64(buffer.count), count - done)), into: &buffer)
      guard got > 0 else { throw Self.shorter(source) }
      try copy.write(buffer[..<got])
      done += Int64(got)
    }
  }

  private static func shorter(_ file: LastingFile) -> FileError {
    FileError(.changed, operation: "read the store", path: file.path)
  }
}
