package import SystemPackage

/// The lock that lets one process at a time change the stores of a folder; held until this value ends.
///
/// It is an advisory lock on the folder itself (`flock`), so that it leaves no file behind.
package struct FolderLock: ~Copyable {
  private let descriptor: FileDescriptor

  /// Takes the lock, and waits for the process that has it.
  ///
  /// - Parameter patience: how long to wait, in milliseconds.
  /// - Throws: `locked` when the patience is over.
  package init(_ folder: FilePath, patience: Int = 10_000, in fileSystem: FileSystem) throws(FileError) {
    let opened = try fileSystem.perform(.lock, folder, "lock the folder") { () throws(Errno) in
      try errno { try FileDescriptor.open(folder, .readOnly, options: [.closeOnExec, .directory]) }
    }
    do throws(FileError) {
      var waited = 0
      while true {
        let isLocked = try fileSystem.perform(.lock, folder, "lock the folder") { () throws(Errno) in
          try SystemCalls.lockDirectory(opened)
        }
        if isLocked { break }
        guard waited < patience else {
          throw FileError(
            .locked, operation: "lock the folder", path: folder,
            detail: "another process has been changing the stores in it for \(patience / 1000) seconds",
            hint: "Wait until it is done, then run the same command again.")
        }
        SystemCalls.sleep(milliseconds: 20)
        waited += 20
      }
    } catch {
      // Nothing was written through it.
      try? opened.close()
      throw error
    }
    descriptor = opened
  }

  deinit {
    SystemCalls.unlock(descriptor)
    // Nothing was written through it.
    try? descriptor.close()
  }
}
