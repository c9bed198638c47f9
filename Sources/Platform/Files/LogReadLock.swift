import SystemPackage

/// A reader's share of a write-ahead log that other connections use, until this value ends.
///
/// It is what SQLite's own readers hold (https://sqlite.org/walformat.html, "WAL Locks"), taken on the `-shm` file without
/// writing to it: while it is held, what lies behind the reader's mark is not brought into the main file, and the log is
/// not begun anew.
package final class LogReadLock: Sendable {
  /// The index of the log, open for reading; it changes all the time.
  package let index: LastingFile

  /// Joins the connections of a store's log; nil where there are none, or no index.
  ///
  /// The caller holds a share of the store's lock, so that no connection can be the last one and take the log away.
  package init?(of set: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    let path = set.path(of: .sharedMemory)
    guard try fileSystem.status(of: path)?.kind == .regular else { return nil }
    index = try LastingFile(path, in: fileSystem)
    let isJoined = try index.lock("read the store's log") { descriptor throws(Errno) in
      // Without another connection the index is what a dead process left, and must be made anew by the next one.
      guard
        let owner = try SystemCalls.conflictingLock(on: descriptor, range: .connections, exclusive: true),
        !owner.isExclusive
      else { return false }
      return try SystemCalls.lock(descriptor, range: .connections, exclusive: false)
    }
    if !isJoined { return nil }
  }

  /// Takes a share of one of the four marks that stand for a part of the log, 1 to 4; false where it is being moved.
  package func lockMark(_ mark: Int) throws(FileError) -> Bool {
    try index.lock("read the store's log") { descriptor throws(Errno) in
      try SystemCalls.lock(descriptor, range: .readMark(mark), exclusive: false)
    }
  }

  /// Gives a share of a mark up.
  package func unlockMark(_ mark: Int) { SystemCalls.unlock(index.descriptor, range: .readMark(mark)) }

  /// Leaves the connections of the log: all locks on it end.
  package func release() { SystemCalls.unlock(index.descriptor) }

  /// Lets the thread rest for a moment, while others write.
  package static func rest() { SystemCalls.sleep(milliseconds: 1) }
}
