import GRDB
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SystemPackage
import TestSupport

/// A store of a model in a folder of its own, filled by SQL.
struct MigrationScene {
  let folder: TemporaryFolder
  let store: FilePath

  /// Makes a store with records.
  init(_ model: ManagedObjectModel, _ statements: String...) throws {
    folder = try TemporaryFolder()
    store = folder.appending("App.sqlite")
    let bytes = try StoreCreation(
      model: model, uuid: "11111111-2222-4333-8444-555555555555", modelCache: try model.modelCache()
    ).bytes()
    let file = try FileSystem().create(store)
    try file.write(bytes)
    let opened = try PersistentStore(opening: store, model: model)
    try opened.write { database in
      for statement in statements { try database.execute(sql: statement) }
      // As Core Data would have left it.
      let layout = try StoreLayout(model)
      for entity in layout.entities where entity.isRoot {
        try database.execute(
          sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = ifnull((SELECT max(Z_PK) FROM \(entity.tableName)), 0) "
            + "WHERE Z_ENT = \(entity.number)")
      }
    }
    try opened.close()
  }

  /// Migrates the store.
  @discardableResult
  func migrate(
    _ bundle: ModelBundle, _ surroundings: Surroundings = .still(), options: Migrator.Options = .init()
  ) throws -> Migrator.Result {
    try Migrator(bundle, surroundings: surroundings).migrate(store, options: options)
  }

  /// Changes the store in a way that leaves what is new in its write-ahead log alone.
  func leaveInLog(_ statement: String) throws {
    let system = FileSystem()
    let queue = try DatabaseQueue(path: store.string)
    try queue.writeWithoutTransaction { database in
      try database.execute(sql: "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
      try database.execute(sql: statement)
    }
    let files = StoreFileSet(main: store)
    let kept = try [StoreFileSet.Part.main, .wal].map { part in
      (files.path(of: part), try system.contents(of: files.path(of: part), limit: 1 << 24))
    }
    try queue.close()
    for (path, bytes) in kept { try system.writeAtomically(bytes, to: path, replacing: true) }
  }

  /// The rows of a query on the store, values joined by bars, as SQLite's shell prints them.
  func rows(_ sql: String) throws -> [String] { try Self.rows(sql, in: store) }

  static func rows(_ sql: String, in store: FilePath) throws -> [String] {
    let opened = try PersistentStore(opening: store)
    let rows = try opened.read { database in
      try Row.fetchAll(database, sql: sql).map { row in
        row.databaseValues.map { value -> String in
          switch value.storage {
          case .null: "NULL"
          case .int64(let number): "\(number)"
          case .double(let number): "\(number)"
          case .string(let text): text
          case .blob(let data): "x" + data.map { String($0, radix: 16) }.joined(separator: " ")
          }
        }.joined(separator: "|")
      }
    }
    try opened.close()
    return rows
  }
}
