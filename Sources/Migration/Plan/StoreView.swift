internal import GRDB
internal import PersistentStore
internal import Platform
internal import SystemPackage

/// A read-only view that leaves no files.
///
/// SQLite writes next to a WAL store even when reading (https://sqlite.org/wal.html, "Read-Only Databases"), so it is
/// first copied to the temporary folder.
struct StoreView {
  private let original: StoreFileSet
  private let surroundings: Surroundings

  init(of original: StoreFileSet, surroundings: Surroundings) {
    self.original = original
    self.surroundings = surroundings
  }

  /// Reads a consistent state of the store.
  ///
  /// - Throws: `locked` during a write, `changed` if another process keeps writing, or the body's error.
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    for _ in 0..<4 {
      let before = MigrationJournal.members(try members())
      let lock = try SharedStoreLock(on: original, in: surroundings.fileSystem)
      let isAlone = before.allSatisfy { $0.part == .main || $0.size == 0 }
      let result = Result { try isAlone ? Self.read(original.main, .immutable, body) : readCopy(body) }
      let isUnchanged = MigrationJournal.members(try members()) == before
      lock.release()
      // A write may have mixed old and new.
      if isUnchanged { return try result.get() }
    }
    throw busy
  }

  private var busy: FileError {
    FileError(
      .changed, operation: "look at the store", path: original.main, detail: "another process keeps writing to it",
      hint: "Quit the app that uses it, then look again.")
  }

  /// Works on a temporary checkpointed copy.
  ///
  /// - Throws: The errors of `read`.
  func onCopy<Value>(_ body: (FilePath) throws -> Value) throws -> Value {
    for _ in 0..<4 {
      let before = MigrationJournal.members(try members())
      let lock = try SharedStoreLock(on: original, in: surroundings.fileSystem)
      let copy = try PrivateCopy(of: original, surroundings: surroundings)
      let isUnchanged = MigrationJournal.members(try members()) == before
      lock.release()
      guard isUnchanged else { continue }
      let connection = try StepConnection(copy.files.main, .copy)
      try connection.run { database in
        try database.bringLogIntoMainFile()
        try database.execute(sql: "PRAGMA journal_mode = DELETE")
      }
      try connection.close()
      let value = try body(copy.files.main)
      copy.remove()
      return value
    }
    throw busy
  }

  private func members() throws(FileError) -> [StoreFileSet.Member] {
    try original.members(in: surroundings.fileSystem)
  }

  private func readCopy<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let copy = try PrivateCopy(of: original, surroundings: surroundings)
    return try Self.read(copy.files.main, .copy, body)
  }

  private static func read<Value>(
    _ path: FilePath, _ mode: WorkingConnection.Mode, _ body: (Database) throws -> Value
  ) throws -> Value {
    let connection = try StepConnection(path, mode)
    let value = try connection.read(body)
    try connection.close()
    return value
  }
}
