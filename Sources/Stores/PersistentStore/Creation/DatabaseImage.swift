internal import GRDB
internal import GRDBSQLite

/// A database as the bytes of its file.
enum DatabaseImage {
  /// The bytes of the connection's main database, marked as one that is in WAL mode.
  ///
  /// The two bytes at offset 18 are the write and read version of SQLite's header; 2 means WAL, which a database in memory
  /// cannot be put into itself.
  static func bytes(of database: Database) throws -> [UInt8] {
    var size: Int64 = 0
    guard let connection = unsafe database.sqliteConnection,
      let image = unsafe sqlite3_serialize(connection, "main", &size, 0)
    else {
      throw DatabaseError(resultCode: .SQLITE_NOMEM, message: "the database could not be serialized")
    }
    defer { unsafe sqlite3_free(image) }
    var bytes = unsafe Array(UnsafeBufferPointer(start: image, count: Int(size)))
    guard bytes.count > 100 else {
      throw DatabaseError(resultCode: .SQLITE_ERROR, message: "the database is empty")
    }
    bytes[18] = 2
    bytes[19] = 2
    return bytes
  }

  /// Bounds what statements from elsewhere can do on the connection.
  ///
  /// No other database can be attached, no value grows above 16 MB, and a single statement ends after 20 million steps of
  /// SQLite's virtual machine.
  static func limit(_ database: Database) {
    guard let connection = unsafe database.sqliteConnection else { return }
    let limits: [(Int32, Int32)] = [
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LENGTH, 16 << 20), (SQLITE_LIMIT_SQL_LENGTH, 8 << 20),
      (SQLITE_LIMIT_EXPR_DEPTH, 200), (SQLITE_LIMIT_COMPOUND_SELECT, 100), (SQLITE_LIMIT_VDBE_OP, 1_000_000),
      (SQLITE_LIMIT_TRIGGER_DEPTH, 32), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000),
    ]
    for (name, value) in limits { _ = unsafe sqlite3_limit(connection, name, value) }
    unsafe sqlite3_progress_handler(connection, 20_000_000, { _ in 1 }, nil)
  }

  /// The number of steps of SQLite's virtual machine that a statement has taken.
  static func steps(of statement: Statement) -> Int {
    unsafe Int(sqlite3_stmt_status(statement.sqliteStatement, SQLITE_STMTSTATUS_VM_STEP, 1))
  }
}
