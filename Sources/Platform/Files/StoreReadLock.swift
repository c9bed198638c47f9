import SystemPackage

/// A reader's share of SQLite's lock on a store that goes on being used, until `release` or the end of this value.
///
/// As ``SharedStoreLock``, but it waits for a gap between the transactions of a writer, can tell whether one is waiting for
/// it, and does not disturb connections of this process.
package final class StoreReadLock: Sendable {
  /// The store's main file, open for reading.
  package let file: LastingFile

  /// Takes a share as a reader does; writes nothing.
  ///
  /// - Parameter patience: how long to wait for writers, in milliseconds.
  /// - Throws: `locked` where a writer has the store to itself all the time.
  package init(on set: StoreFileSet, patience: Int = 10_000, in fileSystem: FileSystem) throws(FileError) {
    let file = try LastingFile(set.main, in: fileSystem)
    self.file = file
    var waited = 0
    while try !Self.take(file) {
      guard waited < patience else {
        let owner = try file.lock("read the store") { descriptor throws(Errno) in
          try SystemCalls.conflictingLock(on: descriptor, range: .all, exclusive: false)
        }
        throw FileError.lockedByAnother(owner, operation: "read the store", path: set.main)
      }
      SystemCalls.sleep(milliseconds: 1)
      waited += 1
    }
  }

  private static func take(_ file: LastingFile) throws(FileError) -> Bool {
    try file.lock("read the store") { descriptor throws(Errno) in
      // A writer that is about to write holds the pending byte, and lets no new reader in.
      guard try SystemCalls.conflictingLock(on: descriptor, range: .pending, exclusive: false) == nil else {
        return false
      }
      return try SystemCalls.lock(descriptor, range: .shared, exclusive: false)
    }
  }

  /// Whether another connection has begun a transaction that writes.
  package func isWriterActive() throws(FileError) -> Bool { try isTaken(.reserved) }

  /// Whether another connection waits for the readers to go, to write to the file.
  package func isWriterWaiting() throws(FileError) -> Bool { try isTaken(.pending) }

  private func isTaken(_ range: LockRange) throws(FileError) -> Bool {
    try file.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: false) != nil
    }
  }

  /// Gives the share up; the file can still be read, but may change.
  package func release() { SystemCalls.unlock(file.descriptor) }

  /// Whether another process has the file open, as far as this user may look.
  package func isOpenElsewhere() -> Bool { OpenFiles.processWithOpenFile(file.status.identity) != nil }
}

/// A reader's share of a store in rollback-journal mode, so that no process writes while it is being looked at.
///
/// Connections of this process keep their locks when it ends.
package struct SharedStoreLock: ~Copyable {
  /// The store's main file, open for reading; nil where there is none.
  package let file: LastingFile?

  /// Whether another connection holds SQLite's reserved lock: it has begun a transaction that writes.
  ///
  /// Its journal is then not hot (os_unix.c; https://sqlite.org/lockingv3.html, section 4.1).
  package let isWriterActive: Bool

  /// Takes a share of SQLite's lock as a reader does; never waits, writes nothing.
  ///
  /// - Throws: `locked` where a writer has the store to itself.
  package init(on set: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    let path = set.main
    guard let status = try fileSystem.status(of: path), status.kind == .regular else {
      file = nil
      isWriterActive = false
      return
    }
    let opened = try LastingFile(path, in: fileSystem)
    // A writer that is about to write holds the pending byte, and lets no new reader in.
    if let owner = try Self.conflict(.pending, opened) {
      throw FileError.lockedByAnother(owner, operation: "read the store", path: path)
    }
    let isLocked = try opened.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.lock(descriptor, range: .shared, exclusive: false)
    }
    guard isLocked else {
      throw FileError.lockedByAnother(try Self.conflict(.shared, opened), operation: "read the store", path: path)
    }
    let writer = try Self.conflict(.reserved, opened)
    isWriterActive = writer != nil
    file = opened
  }

  deinit {
    // A process that reads the file still has no share of the lock any more.
    if let file { SystemCalls.unlock(file.descriptor) }
  }

  private static func conflict(_ range: LockRange, _ file: LastingFile) throws(FileError) -> LockOwner? {
    try file.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: false)
    }
  }
}
