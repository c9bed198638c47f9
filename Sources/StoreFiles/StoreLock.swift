import SystemPackage

/// SQLite's own exclusive lock on a store, held until this value ends.
///
/// Taken with locks that belong to the open file and not to the process (`F_OFD_SETLK`), so that they hold against
/// connections of this process too and are not lost when somebody in it closes another descriptor of the file.
package struct StoreLock: ~Copyable {
  private let descriptors: [FileDescriptor]

  /// Takes the lock; waits a tenth of a second at most.
  ///
  /// - Throws: `locked` or `in-use` where another connection is in the way, `changed-meanwhile` where the name stood for
  ///   another file by the time the lock was taken, or what the system says.
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

  deinit { Self.close(descriptors) }

  private static func lock(
    _ descriptor: FileDescriptor, range: LockRange, at path: FilePath, in fileSystem: FileSystem
  ) throws(FileError) {
    // A lock that is let go at once is waited for: a child of this process shares its locks until it becomes another
    // program, and whoever looks at the store holds a reader's for a moment.
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

  /// A connection in rollback mode holds no lock while it rests, so the open files of other processes are looked at too,
  /// as far as the system lets us.
  private static func refuseOpenElsewhere(_ identity: FileIdentity, at path: FilePath) throws(FileError) {
    guard let process = OpenFiles.processKeepingOpen(identity) else { return }
    throw FileError(
      .inUse, operation: "lock the store", path: path, detail: "\(process.description) has it open",
      hint: "Quit it, then run the same command again.")
  }

  private static func close(_ descriptors: [FileDescriptor]) {
    for descriptor in descriptors {
      SystemCalls.unlock(descriptor)
      // Nothing was written through it.
      try? descriptor.close()
    }
  }
}

/// A reader's share of a store in rollback-journal mode, so that nobody writes while it is being looked at.
package struct SharedStoreLock: ~Copyable {
  private let descriptor: FileDescriptor?

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
      descriptor = nil
      isWriterActive = false
      return
    }
    let opened = try fileSystem.perform(.open, path, "open the store") { () throws(Errno) in
      try errno { try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]) }
    }
    let isReserved: Bool
    do throws(FileError) {
      // A writer that is about to write holds the pending byte, and lets no new reader in.
      let owner = try fileSystem.perform(.lock, path, "read the store") { () throws(Errno) in
        try SystemCalls.conflictingLock(on: opened, range: .pending, exclusive: false)
      }
      if owner != nil { throw FileError.lockedByAnother(owner, operation: "read the store", path: path) }
      let isLocked = try fileSystem.perform(.lock, path, "read the store") { () throws(Errno) in
        try SystemCalls.lock(opened, range: .shared, exclusive: false)
      }
      if !isLocked {
        let owner = try fileSystem.perform(.lock, path, "read the store") { () throws(Errno) in
          try SystemCalls.conflictingLock(on: opened, range: .shared, exclusive: false)
        }
        throw FileError.lockedByAnother(owner, operation: "read the store", path: path)
      }
      let writer = try fileSystem.perform(.lock, path, "read the store") { () throws(Errno) in
        try SystemCalls.conflictingLock(on: opened, range: .reserved, exclusive: false)
      }
      isReserved = writer != nil
    } catch {
      // Nothing was written through it.
      try? opened.close()
      throw error
    }
    descriptor = opened
    isWriterActive = isReserved
  }

  deinit {
    guard let descriptor else { return }
    SystemCalls.unlock(descriptor)
    // Nothing was written through it.
    try? descriptor.close()
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
