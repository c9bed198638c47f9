import SystemPackage

/// A shared lock on a write-ahead log in use, held until this value ends.
///
/// The lock of SQLite's readers (https://sqlite.org/walformat.html, "WAL Locks"), taken on the `-shm` file without
/// writing to it: frames after the reader's mark are not checkpointed and the log is not restarted.
package final class LogReadLock: Sendable {
  /// The log's index, open for reading; it changes continuously.
  package let index: LastingFile

  /// Joins a log's connections; nil without any, or without an index.
  ///
  /// The caller holds a shared lock on the store, so that no connection closes as the last one and deletes the log.
  package init?(of set: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    let path = set.path(of: .sharedMemory)
    guard try fileSystem.status(of: path)?.kind == .regular else { return nil }
    index = try LastingFile(path, in: fileSystem)
    let isJoined = try index.lock("read the store's log") { descriptor throws(Errno) in
      // Without a connection the index is stale, and the next one must rebuild it.
      guard
        let owner = try SystemCalls.conflictingLock(on: descriptor, range: .connections, exclusive: true),
        !owner.isExclusive
      else { return false }
      return try SystemCalls.lock(descriptor, range: .connections, exclusive: false)
    }
    if !isJoined { return nil }
  }

  /// Takes a shared lock on read mark 1 to 4; false while it is being moved.
  package func lockMark(_ mark: Int) throws(FileError) -> Bool {
    try index.lock("read the store's log") { descriptor throws(Errno) in
      try SystemCalls.lock(descriptor, range: .readMark(mark), exclusive: false)
    }
  }

  package func unlockMark(_ mark: Int) { SystemCalls.unlock(index.descriptor, range: .readMark(mark)) }

  package func release() { SystemCalls.unlock(index.descriptor) }

  package static func rest() { SystemCalls.sleep(milliseconds: 1) }
}
