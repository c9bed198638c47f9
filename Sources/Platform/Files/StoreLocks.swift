package import SystemPackage

/// SQLite's exclusive lock on a store, held until this value ends.
///
/// OFD locks (`F_OFD_SETLK`) also exclude connections of this process and survive the closing of other descriptors.
package struct StoreLock: ~Copyable {
  private let descriptors: [FileDescriptor]

  /// Takes the lock within a tenth of a second.
  ///
  /// - Throws: `locked` or `in-use` for another connection, `changed-meanwhile` if the file was replaced, or a file
  ///   system error.
  package init(on set: StoreFileSet, in fileSystem: FileSystem) throws(FileError) {
    var opened: [FileDescriptor] = []
    do throws(FileError) {
      for (part, range) in [(StoreFileSet.Part.main, LockRange.all), (.sharedMemory, .walIndex)] {
        let path = set.path(of: part)
        guard let status = try fileSystem.entry(at: path), status.kind == .regular else { continue }
        let descriptor = try fileSystem.descriptor(
          of: path, .readWrite, options: .noFollow, as: .lock, "lock the store")
        opened.append(descriptor)
        try Self.lock(descriptor, range: range, at: path, in: fileSystem)
        let locked = try fileSystem.step(.status, path, "lock the store", try SystemCalls.status(of: descriptor))
        guard let now = try fileSystem.entry(at: path), now.identity == locked.identity else {
          throw FileError(.changed, operation: "lock the store", path: path)
        }
        // An idle connection in rollback mode holds no lock; the open files show it, as far as visible.
        if let process = OpenFiles.processKeepingOpen(locked.identity) {
          throw FileError(
            .inUse, operation: "lock the store", path: path, detail: "\(process.description) has it open",
            hint: "Quit it, then run the same command again.")
        }
      }
    } catch {
      Self.close(opened)
      throw error
    }
    descriptors = opened
  }

  /// Ends the lock.
  package consuming func release() {}

  deinit { Self.close(descriptors) }

  private static func lock(
    _ descriptor: FileDescriptor, range: LockRange, at path: FilePath, in fileSystem: FileSystem
  ) throws(FileError) {
    // Wait for brief locks: a child shares this process's locks until it executes another program, and readers hold
    // theirs for a moment.
    for attempt in 0..<5 {
      if attempt > 0 { SystemCalls.sleep(milliseconds: 20) }
      let isLocked = try fileSystem.step(
        .lock, path, "lock the store", try SystemCalls.lock(descriptor, range: range, exclusive: true))
      if isLocked { return }
    }
    let owner = try fileSystem.step(
      .lock, path, "lock the store", try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: true))
    throw .lockedByAnother(owner, operation: "lock the store", path: path)
  }

  private static func close(_ descriptors: [FileDescriptor]) {
    for descriptor in descriptors { KeptDescriptors.end(descriptor, isReadOnly: false) }
  }
}

extension FileError {
  static func lockedByAnother(_ owner: LockOwner?, operation: String, path: FilePath) -> FileError {
    let holder = owner?.processID.map { OpenFiles.describe(processID: $0) } ?? "another process"
    return FileError(
      .locked, operation: operation, path: path, detail: "\(holder) holds a lock on it",
      hint: "Quit it, or wait until it is done, then run the same command again.")
  }
}

/// A byte range for locks; the bytes need not exist.
struct LockRange: Sendable, Hashable {
  var start: Int64
  var length: Int64

  static let everything = LockRange(start: 0, length: 0)

  // SQLite's lock bytes: https://sqlite.org/fileformat2.html#the_lock_byte_page and os_unix.c.
  static let pending = LockRange(start: 0x4000_0000, length: 1)
  static let reserved = LockRange(start: 0x4000_0001, length: 1)
  static let shared = LockRange(start: 0x4000_0002, length: 510)

  /// Pending, reserved and shared.
  static let all = LockRange(start: 0x4000_0000, length: 512)

  /// The WAL locks in the `-shm` file (https://sqlite.org/walformat.html, "WAL Locks"): eight from byte 120, then the
  /// dead-man switch that every connection shares.
  static let walIndex = LockRange(start: 120, length: 9)

  static let logWriter = LockRange(start: 120, length: 1)

  static let connections = LockRange(start: 128, length: 1)

  /// The lock of a read mark, 0 to 4.
  static func readMark(_ mark: Int) -> LockRange { LockRange(start: 123 + Int64(mark), length: 1) }
}

struct LockOwner: Sendable, Hashable {
  var processID: Int32?
  var isExclusive: Bool
}

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
        throw FileError.lockedByAnother(try file.conflict(.all), operation: "read the store", path: set.main)
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

  package func isWriterActive() throws(FileError) -> Bool { try file.conflict(.reserved) != nil }

  /// Whether a writer waits for the readers to finish.
  package func isWriterWaiting() throws(FileError) -> Bool { try file.conflict(.pending) != nil }

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
    if let owner = try opened.conflict(.pending) {
      throw FileError.lockedByAnother(owner, operation: "read the store", path: path)
    }
    let isLocked = try opened.lock("read the store") { descriptor throws(Errno) in
      try SystemCalls.lock(descriptor, range: .shared, exclusive: false)
    }
    guard isLocked else {
      throw FileError.lockedByAnother(try opened.conflict(.shared), operation: "read the store", path: path)
    }
    isWriterActive = try opened.conflict(.reserved) != nil
    file = opened
  }

  /// Ends the lock.
  package consuming func release() {}

  deinit {
    // A process may still read the file, but without a lock.
    if let file { SystemCalls.unlock(file.descriptor) }
  }
}

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
      guard let owner = try SystemCalls.conflictingLock(on: descriptor, range: .connections, exclusive: true),
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
    let opened = try fileSystem.descriptor(of: folder, options: .directory, as: .lock, "lock the folder")
    do throws(FileError) {
      var waited = 0
      while true {
        let isLocked = try fileSystem.step(.lock, folder, "lock the folder", try SystemCalls.lockDirectory(opened))
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

/// The other processes that have a file open.
///
/// Found through `/proc` on Linux, where only the superuser sees other users' processes. Elsewhere none is found, and
/// the locks alone decide.
enum OpenFiles {
  struct Process {
    var id: Int32
    var name: String?

    var description: String { name.map { "\"\(printable($0))\" (process \(id))" } ?? "process \(id)" }
  }

  static func processWithOpenFile(_ identity: FileIdentity) -> Process? {
    #if os(Linux)
      return SystemCalls.processWithOpenFile(identity).map { Process(id: $0, name: name(of: $0)) }
    #else
      return nil
    #endif
  }

  /// Returns another process that keeps the file open.
  ///
  /// Waits up to a tenth of a second: a child of this process has its open files until it executes another program.
  static func processKeepingOpen(_ identity: FileIdentity) -> Process? {
    var found = processWithOpenFile(identity)
    for _ in 0..<5 where found != nil {
      SystemCalls.sleep(milliseconds: 20)
      found = processWithOpenFile(identity)
    }
    return found
  }

  /// Returns a process, possibly this one, that writes to a store's deleted log.
  static func processWithDeletedLog(of set: StoreFileSet, main identity: FileIdentity) -> Process? {
    #if os(Linux)
      return SystemCalls.process(holding: identity, andDeleted: set.path(of: .wal))
        .map { Process(id: $0, name: name(of: $0)) }
    #else
      return nil
    #endif
  }

  static func describe(processID: Int32) -> String { Process(id: processID, name: name(of: processID)).description }

  private static func name(of id: Int32) -> String? {
    #if os(Linux)
      // A process that just ended has no name.
      guard let file = try? FileDescriptor.open(FilePath("/proc/\(id)/comm"), .readOnly) else { return nil }
      var bytes = [UInt8](repeating: 0, count: 64)
      let count = (try? unsafe bytes.withUnsafeMutableBytes { try unsafe file.read(into: $0) }) ?? 0
      try? file.close()
      return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n").first.map(String.init)
    #else
      return nil
    #endif
  }
}
