import Foundation
import GRDB
import Lazaret
import LazaretGRDB
import SystemPackage

// The code of the catalogue's tutorial about GRDB, word for word: here it is compiled, and `Scripts/docs` compares them.

/// The app's database, with the schema file of its bundle.
func notesStore(in folder: URL, schema: URL) throws -> RecoverableStore {
  RecoverableStore(
    at: folder.appendingPathComponent("Notes.sqlite"), model: try StoreModel(contentsOf: schema),
    home: folder.appendingPathComponent("Recovery"), appVersion: "2.3")
}

/// Opens the app's database, and gives what to tell the user; nil where there is nothing to tell.
func openNotes(_ store: RecoverableStore) async throws -> (pool: DatabasePool, notice: Notice?) {
  var notice: Notice?
  let pool = try await DatabasePool(recovering: store) { opening in notice = opening.notice }
  return (pool, notice)
}

/// Brings the app's tables up to date.
func migrateNotes(_ pool: DatabasePool) throws {
  var migrator = DatabaseMigrator()
  migrator.registerMigration("notes") { database in
    try database.create(table: "note", options: .ifNotExists) { table in
      table.primaryKey("id", .integer)
      table.column("title", .text).notNull()
      table.column("changed", .double)
    }
  }
  try migrator.migrate(pool)
}

/// Reads from the database; where it is damaged, opens it again, salvaged, and reads once more.
func readNotes<Value: Sendable>(
  _ pool: inout DatabasePool, of store: RecoverableStore, _ read: @escaping @Sendable (Database) throws -> Value
) async throws -> Value {
  do {
    return try await pool.read(read)
  } catch let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode) {
    try pool.close()
    var store = store
    store.policy.depth = .full
    pool = try await DatabasePool(recovering: store)
    return try await pool.read(read)
  }
}

/// Takes a backup where one is due; true where one was taken.
func backUpNotes(_ store: RecoverableStore) async throws -> Bool {
  try await store.backups.createIfDue() != nil
}

/// Gets the database ready, and gives the path for `sqlite3_open_v2`.
func pathOfNotes(_ store: RecoverableStore) async throws -> String {
  try await store.open().path.string
}
