import SystemPackage

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
        guard let status = try fileSystem.status(of: path, followingLinks: false), status.kind == .regular else {
          continue
        }
        let descriptor = try fileSystem.perform(.lock, path, "lock the store") { () throws(Errno) in
          try errno { try FileDescriptor.open(path, .readWrite, options: [.closeOnExec, .noFollow]) }
        }
        opened.append(descriptor)
        try Self.lock(descriptor, range: range, at: path, in: fileSystem)
        let locked = try fileSystem.perform(.status, path, "lock the store") { () throws(Errno) in
          try SystemCalls.status(of: descriptor)
        }
        guard let now = try fileSystem.status(of: path, followingLinks: false), now.identity == locked.identity else {
          throw FileError(.changed, operation: "lock the store", path: path)
        }
        try Self.refuseOpenElsewhere(locked.identity, at: path)
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
      let isLocked = try fileSystem.perform(.lock, path, "lock the store") { () throws(Errno) in
        try SystemCalls.lock(descriptor, range: range, exclusive: true)
      }
      if isLocked { return }
    }
    let owner = try fileSystem.perform(.lock, path, "lock the store") { () throws(Errno) in
      try SystemCalls.conflictingLock(on: descriptor, range: range, exclusive: true)
    }
    throw .lockedByAnother(owner, operation: "lock the store", path: path)
  }

  /// Checks other processes' open files, as far as visible: an idle connection in rollback mode holds no lock.
  private static func refuseOpenElsewhere(_ identity: FileIdentity, at path: FilePath) throws(FileError) {
    guard let process = OpenFiles.processKeepingOpen(identity) else { return }
    throw FileError(
      .inUse, operation: "lock the store", path: path, detail: "\(process.description) has it open",
      hint: "Quit it, then run the same command again.")
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

  // SQLite's lock bytes: https://sqlite.org/fileformat2.html#the_lock_byte_page and os_unix.c.
  static let pending = LockRange(start: 0x4000_0000, length: 1)
  static let reserved = LockRange(start: 0x4000_0001, length: 1)
  static let shared = LockRange(start: 0x4000_0002, length: 510)

  /// Pending, reserved and shared.
  static let all = LockRange(start: 0x4000_0000, length: 512)

  /// The WAL locks in the `-shm` file (https://sqlite.org/walformat.html, "WAL Locks"): eight from byte 120, then the
  /// dead-man switch that every connection shares.
  static let walIndex = LockRange(start: 120, length: 9)

  static let connections = LockRange(start: 128, length: 1)

  /// The lock of a read mark, 0 to 4.
  static func readMark(_ mark: Int) -> LockRange { LockRange(start: 123 + Int64(mark), length: 1) }
}

struct LockOwner: Sendable, Hashable {
  var processID: Int32?
  var isExclusive: Bool
}
