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
    let isSparse = source.status.isSparse
    while done < count {
      let rest = done..<count
      guard let data = isSparse ? SystemCalls.nextData(in: source.descriptor, from: done, to: count) : rest else {
        break
      }
      done = data.lowerBound
      while done < data.upperBound {
        let wanted = Int(min(Int64(buffer.count), data.upperBound - done))
        let got = try source.read(at: done, length: wanted, into: &buffer)
        guard got > 0 else { throw Self.shorter(source) }
        try copy.write(buffer[..<got], at: done)
        done += Int64(got)
      }
    }
    guard isSparse else { return }
    // What is behind the last data is a hole, unless the file has been cut off meanwhile.
    guard try source.currentStatus().size >= count else { throw Self.shorter(source) }
    try copy.truncate(to: count)
  }

  private static func shorter(_ file: LastingFile) -> FileError {
    FileError(.changed, operation: "read the store", path: file.path)
  }
}
