internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
package import SystemPackage

/// An SQLite connection in the working folder.
///
/// Its default cache is 4 MB; larger ones were not faster.
struct StepConnection {
  private let connection: WorkingConnection
  private let path: FilePath

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - referenceDate: In seconds since 2001-01-01T00:00:00Z.
  ///   - others: The files an evidence connection attaches.
  init(
    _ path: FilePath, _ mode: WorkingConnection.Mode, referenceDate: Double = 0, cacheKilobytes: Int = 4096,
    attaching others: [FilePath] = []
  ) throws {
    self.path = path
    do {
      connection = try WorkingConnection(
        path, mode, label: "Lazaret.Migration", cacheKilobytes: cacheKilobytes, attaching: others,
        isCancelled: MigrationTrace.current?.isCancelled
      ) { database in
        MigrationTrace.current?.watch(database)
        try Self.addFunctions(to: database, referenceDate: referenceDate)
      }
    } catch { throw MigrationError(any: error, path: path) }
  }

  static func addFunctions(to database: Database, referenceDate: Double) throws {
    for function in CoreDataFunctions.all(now: { referenceDate }) + MappingFunctions.additional {
      database.add(function: function)
    }
  }

  func run<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try wrapping(failure) { try connection.run(body) }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try wrapping(failure) { try connection.read(body) }
  }

  func close() throws { try wrapping(failure) { try connection.close() } }

  /// Reads a file on a connection of its own.
  static func read<Value>(
    _ path: FilePath, _ mode: WorkingConnection.Mode = .immutable, _ body: (Database) throws -> Value
  ) throws -> Value {
    let connection = try StepConnection(path, mode)
    let value = try connection.read(body)
    try connection.close()
    return value
  }

  /// Brings a copy's log into its main file.
  static func checkpoint(_ path: FilePath, _ mode: WorkingConnection.Mode) throws {
    let connection = try StepConnection(path, mode)
    try connection.run { database in
      // Opening rolls back a hot journal; leaving WAL mode checkpoints.
      try database.bringLogIntoMainFile()
      try database.execute(sql: "PRAGMA journal_mode = DELETE")
    }
    try connection.close()
  }

  private func failure(_ error: any Error) -> MigrationError { MigrationError(any: error, path: path) }
}

extension Database {
  /// Prepares a copy that is open nowhere else for changes without syncing.
  func beginExclusiveLog() throws {
    // Core Data stores say WAL in both version bytes (format section 3.1).
    try execute(
      sql: """
        PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL;
        PRAGMA wal_autocheckpoint = 0
        """)
  }

  /// Counts the rows of a table or of what conditions select from it.
  func count(from place: String) throws -> Int { try Int.fetchOne(self, sql: "SELECT count(*) FROM \(place)") ?? 0 }

  /// Returns the type of a table, index or view, which share a namespace; nil if the name is free.
  func kind(ofObject name: String) throws -> String? {
    try String.fetchOne(
      self, sql: "SELECT CAST(type AS TEXT) FROM main.sqlite_master WHERE upper(name) = upper(?) AND type <> 'trigger'",
      arguments: [name])
  }

  /// Whether a table has rowids; nil for an unknown one.
  func hasRowids(_ table: String, in schema: String) throws -> Bool? {
    try Bool.fetchOne(
      self, sql: "SELECT wr = 0 FROM pragma_table_list(?) WHERE schema = '\(schema)'", arguments: [table])
  }

  /// Returns the first ten keys of such rows.
  func examples(from place: String, key: String = "o.Z_PK") throws -> [Int64] {
    try Int64.fetchAll(self, sql: "SELECT \(key) FROM \(place) ORDER BY \(key) LIMIT 10")
  }
}

extension MigrationError {
  /// The environmental error represented by another one; nil for errors of records or models.
  init?(environmental error: any Error) {
    guard let cause = DatabaseFailure(error, operation: "migrate the store", path: nil).environmentalError else {
      return nil
    }
    self.init(cause)
  }

  /// Describes an error that app code threw, which may contain record values, without them.
  static func words(for error: any Error, of thrower: String) -> String {
    if let error = error as? DatabaseError { return "SQLite reported \(error.resultCode)" }
    return "\(thrower) threw an error of type \(printable(typeName(of: error)))"
  }

  /// An SQLite error, without SQL and record values.
  package init(any error: any Error, path: FilePath? = nil) {
    if let error = error as? MigrationError {
      self = error
      return
    }
    switch DatabaseFailure(error, operation: "migrate the store", path: path) {
    case .file(let error): self.init(error)
    case .interrupted: self.init(.cancelled, path: path, detail: "it was cancelled")
    case .reported(let error):
      self.init(.sqlite, because: error, operation: Kind.sqlite.usualOperation, path: error.path ?? path)
    case .sqlite(let code, let name)
    where [ResultCode.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(ResultCode(rawValue: code & 0xff)):
      // All data of a step comes from the store.
      self.init(.sourceDamaged, path: path, detail: "SQLite met damage in it: \(name) (code \(code))")
    case .sqlite(let code, let name): self.init(.sqlite, path: path, detail: "SQLite reported \(name) (code \(code))")
    case .unforeseen: self.init(.sqlite, path: path, detail: "an unforeseen failure")
    }
  }
}

/// A read-only view that leaves no files.
///
/// SQLite writes next to a WAL store even when reading (https://sqlite.org/wal.html, "Read-Only Databases"), so it is
/// first copied to the temporary folder.
struct StoreView {
  let original: StoreFileSet
  let surroundings: Surroundings

  /// Reads a consistent state of the store.
  ///
  /// - Throws: `locked` during a write, `changed` if another process keeps writing, or the body's error.
  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try whileUnchanged { isAlone in
      Result { try isAlone ? StepConnection.read(original.main, .immutable, body) : readCopy(body) }
    }.get()
  }

  /// Works on a temporary checkpointed copy.
  ///
  /// - Throws: The errors of `read`.
  func onCopy<Value>(_ body: (FilePath) throws -> Value) throws -> Value {
    let copy = try whileUnchanged { _ in try PrivateCopy(of: original, surroundings: surroundings) }
    try StepConnection.checkpoint(copy.files.main, .copy)
    let value = try body(copy.files.main)
    copy.remove()
    return value
  }

  /// Repeats work during which another process writes, because it may have mixed old and new.
  ///
  /// - Parameter work: Takes whether the store's main file is all of it.
  private func whileUnchanged<Value: ~Copyable>(_ work: (Bool) throws -> Value) throws -> Value {
    for _ in 0..<4 {
      let before = MigrationJournal.members(try members())
      let lock = try SharedStoreLock(on: original, in: surroundings.fileSystem)
      let value = try work(before.allSatisfy { $0.part == .main || $0.size == 0 })
      let isUnchanged = MigrationJournal.members(try members()) == before
      lock.release()
      if isUnchanged { return value }
    }
    throw FileError(
      .changed, operation: "look at the store", path: original.main, detail: "another process keeps writing to it",
      hint: "Quit the app that uses it, then look again.")
  }

  private func members() throws(FileError) -> [StoreFileSet.Member] {
    try original.members(in: surroundings.fileSystem)
  }

  private func readCopy<Value>(_ body: (Database) throws -> Value) throws -> Value {
    let copy = try PrivateCopy(of: original, surroundings: surroundings)
    return try StepConnection.read(copy.files.main, .copy, body)
  }
}

extension StoreMetadata {
  /// Reads a row of `Z_UUID` and `Z_PLIST`.
  init(_ row: Row) throws {
    try self.init(
      uuid: String.fromDatabaseValue(row[0]) ?? "", propertyList: [UInt8](Data.fromDatabaseValue(row[1]) ?? Data()))
  }
}

extension Migrator {
  /// A store's metadata.
  struct StoreFacts {
    var metadata: StoreMetadata

    var model: ManagedObjectModel?

    /// Reads the metadata; an unreadable model cache counts as missing.
    init(_ database: Database) throws {
      if try !database.hasStored(["Z_UUID"], in: "Z_METADATA"), try database.hasStored(["Z_PLIST"], in: "Z_METADATA") {
        throw MigrationError(
          .sourceDamaged, detail: "its metadata has no column for the store's identifier, which nothing else shows")
      }
      // Z_PRIMARYKEY can be repaired; reject computed values of a hostile store.
      guard try database.hasStored(["Z_UUID", "Z_PLIST"], in: "Z_METADATA"),
        let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA LIMIT 1")
      else {
        throw MigrationError(
          .dataViolation, detail: "it is not a Core Data store", hint: "Give a store that Core Data or SwiftData made.")
      }
      metadata = try StoreMetadata(row)
      if try database.hasStored(["Z_CONTENT"], in: "Z_MODELCACHE"),
        let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM Z_MODELCACHE LIMIT 1"),
        let bytes = Data.fromDatabaseValue(value)
      {
        // Only versions outside the app's model need it; without it such a store is refused.
        model = try? ManagedObjectModel(modelCache: [UInt8](bytes))
      }
    }
  }
}
