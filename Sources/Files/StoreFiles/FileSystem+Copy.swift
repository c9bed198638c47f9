package import SystemPackage

extension FileSystem {
  /// Copies a file's content under a new name, pushes it to the disk, and reads it back to compare.
  ///
  /// Blocks are shared with the original where the file system can. The copy is its owner's alone; see
  /// ``adoptAccess(of:to:)-(FilePath,_)``.
  ///
  /// - Parameter progress: called with the bytes copied so far; what it throws ends the copying.
  /// - Returns: the digest that original and copy have in common.
  package func copy(
    _ source: FilePath, to destination: FilePath, progress: (Int64) throws -> Void = { _ in }
  ) throws -> FileDigest {
    let original = try open(source)
    // What a killed process left may be a second name of a finished file: it is removed, never written into.
    try unlink(destination)
    let copy = try create(destination, permissions: .ownerReadWrite)
    let target = copy.descriptor
    let isShared = try perform(.write, destination, "copy the file") { () throws(Errno) in
      SystemCalls.shareBlocks(from: original.descriptor, to: target)
    }
    if !isShared {
      try Self.copyData(of: original, to: copy, progress)
    }
    try copy.commit()
    let digest = try FileDigest(of: original)
    guard try FileDigest(of: open(destination)) == digest else {
      throw FileError(.verificationFailed, operation: "copy the file", path: destination)
    }
    return digest
  }

  /// Copies a file's content under a new name, as fast as the system can: nothing is read back or pushed to the disk.
  ///
  /// Blocks are shared with the original where the file system can. For files that are checked as a whole afterwards.
  package func duplicate(_ source: FilePath, to destination: FilePath) throws(FileError) {
    let original = try open(source)
    try unlink(destination)
    let copy = try create(destination, permissions: .ownerReadWrite)
    let (from, target) = (original.descriptor, copy.descriptor)
    let isShared = try perform(.write, destination, "copy the file") { () throws(Errno) in
      SystemCalls.shareBlocks(from: from, to: target)
    }
    if isShared { return }
    do {
      try Self.copyData(of: original, to: copy) { _ in }
    } catch {
      throw error as? FileError ?? FileError(.other, operation: "copy the file", path: destination)
    }
  }

  /// Copies all bytes of a file into a new one; what is a hole in the one is a hole in the other.
  private static func copyData(
    of original: ReadableFile, to copy: borrowing WritableFile, _ progress: (Int64) throws -> Void
  ) throws {
    var buffer = [UInt8](repeating: 0, count: 1 << 20)
    guard original.status.isSparse else {
      var done: Int64 = 0
      while true {
        let got = try original.read(at: done, length: buffer.count, into: &buffer)
        if got == 0 { return }
        try copy.write(buffer[..<got])
        done += Int64(got)
        try progress(done)
      }
    }
    var done: Int64 = 0
    while let data = SystemCalls.nextData(in: original.descriptor, from: done, to: original.count) {
      done = data.lowerBound
      while done < data.upperBound {
        let wanted = Int(min(Int64(buffer.count), data.upperBound - done))
        let got = try original.read(at: done, length: wanted, into: &buffer)
        // It has become shorter: a caller that compares it with what it was finds that.
        if got == 0 { return }
        try copy.write(buffer[..<got], at: done)
        done += Int64(got)
        try progress(done)
      }
    }
    try copy.truncate(to: original.count)
    try progress(original.count)
  }

  /// Pushes a finished file to the disk.
  package func synchronizeFile(_ path: FilePath) throws(FileError) {
    try perform(.synchronize, path, "write the file to the disk") { () throws(Errno) in
      let descriptor = try errno { try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]) }
      do throws(Errno) {
        try SystemCalls.synchronize(descriptor)
      } catch {
        // The first error is the one to report.
        try? descriptor.close()
        throw error
      }
      try errno { try descriptor.close() }
    }
  }

  /// The number of the user with whose rights this process acts.
  package static var effectiveUser: UInt32 { SystemCalls.effectiveUser }

  /// A file below a folder, named by the components that lead to it.
  package struct Descendant: Sendable {
    package var relative: [FilePath.Component]
    package var path: FilePath
    package var status: FileStatus

    /// Whether the status is that of what a symbolic link leads to.
    package var isLink = false
  }

  /// Everything below a folder that is not a folder itself, and the folders, each before what is in it.
  ///
  /// - Throws: `file-too-large` for more than 16 levels or a million entries, which no store has.
  package func descendants(
    of root: FilePath
  ) throws(FileError) -> (folders: [[FilePath.Component]], files: [Descendant]) {
    var folders: [[FilePath.Component]] = []
    var files: [Descendant] = []
    var waiting: [[FilePath.Component]] = [[]]
    while let folder = waiting.popLast() {
      if !folder.isEmpty { folders.append(folder) }
      guard folder.count < 16, files.count + folders.count < 1_000_000 else {
        throw FileError(
          .tooLarge, operation: "list the folder", path: root, detail: "it holds too many files or levels of folders",
          hint: "Check that it is the store's own folder.")
      }
      let path = root.appending(folder)
      for name in try entries(of: path) {
        let child = path.appending(name)
        guard let status = try status(of: child, followingLinks: false) else { continue }
        if status.kind == .directory {
          waiting.append(folder + [name])
        } else {
          files.append(Descendant(relative: folder + [name], path: child, status: status))
        }
      }
    }
    return (folders, files)
  }
}
