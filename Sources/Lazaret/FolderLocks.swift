internal import Platform
import SystemPackage

/// The locks of the folders in a move; held until this value ends.
///
/// Taken in path order, to avoid a deadlock between processes.
struct FolderLocks: ~Copyable {
  private let first: FolderLock?
  private let second: FolderLock?
  private let third: FolderLock?

  /// Takes the locks, waiting for other processes.
  ///
  /// - Parameter folders: at most three; a missing folder needs no lock.
  init(_ folders: [FilePath], in fileSystem: FileSystem) throws(FileError) {
    var real: Set<FilePath> = []
    for folder in folders where try fileSystem.status(of: folder)?.kind == .directory {
      real.insert(try fileSystem.realPath(folder))
    }
    var waiting = real.ordered { $0.string < $1.string }[...]
    func next() throws(FileError) -> FolderLock? {
      guard let folder = waiting.popFirst() else { return nil }
      return try FolderLock(folder, in: fileSystem)
    }
    let first = try next()
    let second = try next()
    let third = try next()
    self.first = first
    self.second = second
    self.third = third
  }

  /// Ends the locks.
  consuming func release() {}
}
