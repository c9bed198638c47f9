package import SystemPackage

/// A lock for changing a folder's stores, held until this value ends.
///
/// An advisory lock on the folder itself (`flock`), without a file.
package struct FolderLock: ~Copyable {
  private let descriptor: FileDescriptor

  /// Takes the lock, waiting for its holder.
  ///
  /// - Parameter patience: in milliseconds.
  /// - Throws: `locked` after that time.
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
      // No data was written.
      try? opened.close()
      throw error
    }
    descriptor = opened
  }

  /// Ends the lock.
  package consuming func release() {}

  deinit {
    SystemCalls.unlock(descriptor)
    // No data was written.
    try? descriptor.close()
  }
}
