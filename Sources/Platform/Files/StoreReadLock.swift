import SystemPackage

/// A shared SQLite lock on a store in use, until `release` or the end of this value.
///
/// Unlike ``SharedStoreLock`` it waits between a writer's transactions and detects waiting writers.
package final class StoreReadLock: Sendable {
  package let file: LastingFile

  /// Takes a shared lock without writing.
  ///
  /// - Parameter patience: in milliseconds.
  /// - Throws: `locked` if writers keep the store locked.
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
      // A writer about to write holds the pending byte, which excludes new readers.
      guard try SystemCalls.conflictingLock(on: descriptor, range: .pending, exclusive: false) == nil else {
        return false
      }
      return try SystemCalls.lock(descriptor, range: .shared, exclusive: false)
    }
  }

  package func isWriterActive() throws(FileError) -> Bool { try isTaken(.reserved) }

  /// Whether a writer waits for the readers to finish.
  package func isWriterWaiting() throws(FileError) -> Bool { try isTaken(.pending) }

  private func isTaken(_ range: LockRange) throws(FileError) -> Bool {
    try file.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: false) != nil
    }
  }

  /// Releases the lock; the file stays readable but may change.
  package func release() { SystemCalls.unlock(file.descriptor) }

  package func isOpenElsewhere() -> Bool { OpenFiles.processWithOpenFile(file.status.identity) != nil }
}

/// A shared lock on a store in rollback-journal mode, which excludes writers.
///
/// Connections of this process keep their locks when it ends.
package struct SharedStoreLock: ~Copyable {
  package let file: LastingFile?

  /// Whether another connection holds the reserved lock.
  ///
  /// Its journal is then not hot (os_unix.c; https://sqlite.org/lockingv3.html, section 4.1).
  package let isWriterActive: Bool

  /// Takes the lock without waiting or writing.
  ///
  /// - Throws: `locked` if a writer excludes readers.
  package init(on set: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    let path = set.main
    guard let status = try fileSystem.status(of: path), status.kind == .regular else {
      file = nil
      isWriterActive = false
      return
    }
    let opened = try LastingFile(path, in: fileSystem)
    // A writer about to write holds the pending byte, which excludes new readers.
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

  /// Ends the lock.
  package consuming func release() {}

  deinit {
    // A process may still read the file, but without a lock.
    if let file { SystemCalls.unlock(file.descriptor) }
  }

  private static func conflict(_ range: LockRange, _ file: LastingFile) throws(FileError) -> LockOwner? {
    try file.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: false)
    }
  }
}
