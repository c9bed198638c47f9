internal import StoreFiles
internal import SystemPackage

/// An entry that this process alone works on, for as long as this value lives.
struct HeldEntry: ~Copyable {
  private(set) var entry: OutboxEntry
  private let lock: FolderLock
  private let outbox: Outbox

  /// Takes the lock of an entry, and reads it as it is then.
  ///
  /// - Throws: `outbox-entry-busy` where another process works on it.
  init(_ id: String, of outbox: Outbox) throws {
    let lock = try Self.lock(id, of: outbox)
    let entry = try OutboxEntry(at: outbox.entryPath(of: id), id: id, in: outbox.fileSystem)
    self.lock = lock
    self.entry = entry
    self.outbox = outbox
  }

  /// Changes the entry; it is on the disk when this returns.
  mutating func update(_ change: (inout OutboxEntry) -> Void) throws {
    var changed = entry
    change(&changed)
    guard changed != entry else { return }
    changed.updated = outbox.surroundings.now().rfc3339
    try outbox.fileSystem.writeAtomically(
      try changed.json(), to: outbox.entryPath(of: entry.id), replacing: true, permissions: .ownerReadWrite)
    entry = changed
  }

  /// Waits a moment: a process that only looks, or settles, has the lock for no longer.
  private static func lock(_ id: String, of outbox: Outbox) throws -> FolderLock {
    do throws(FileError) {
      return try FolderLock(outbox.folder(of: id), patience: 200, in: outbox.fileSystem)
    } catch {
      guard error.kind == .locked else { throw error }
      throw SendingError(
        .busy, operation: "work on the entry of the outbox", path: outbox.folder(of: id),
        detail: "another process is sending it")
    }
  }
}
