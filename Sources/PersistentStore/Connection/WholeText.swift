package import GRDB
internal import GRDBSQLite

/// A value as SQLite holds it, with all of its text: GRDB itself reads and binds text up to its first NUL.
package struct WholeValue: DatabaseValueConvertible, StatementColumnConvertible {
  /// The value.
  package let value: DatabaseValue

  /// Reads a value of the row that a statement stands at.
  package init?(sqliteStatement statement: SQLiteStatement, index: CInt) {
    guard unsafe sqlite3_column_type(statement, index) == SQLITE_TEXT else {
      value = unsafe DatabaseValue(sqliteStatement: statement, index: index)
      return
    }
    // The text first: asking for it may change how many bytes it has.
    guard let start = unsafe sqlite3_column_text(statement, index) else { return nil }
    let count = unsafe Int(sqlite3_column_bytes(statement, index))
    value = unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self).databaseValue
  }

  private init(value: DatabaseValue) { self.value = value }

  package var databaseValue: DatabaseValue { value }

  package static func fromDatabaseValue(_ value: DatabaseValue) -> WholeValue? { WholeValue(value: value) }
}

extension Row {
  /// A value of the row that a cursor stands at, with all of its text; a copy of a row has lost what stands behind a NUL.
  package func whole(_ index: Int) -> DatabaseValue {
    let value: WholeValue? = self[index]
    return value?.value ?? .null
  }
}

extension Statement {
  /// Sets the arguments, with all of their text, for the next run without arguments.
  package func bindWhole(_ arguments: [DatabaseValue]) throws {
    try setArguments(StatementArguments(arguments))
    for (index, argument) in arguments.enumerated() {
      guard case .string(let text) = argument.storage, text.utf8.contains(0) else { continue }
      let bytes = Array(text.utf8)
      let code = unsafe bytes.withUnsafeBytes { bytes in
        // SQLITE_TRANSIENT: SQLite makes a copy.
        unsafe sqlite3_bind_text64(
          sqliteStatement, CInt(index + 1), bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
          UInt64(bytes.count), unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self), UInt8(SQLITE_UTF8))
      }
      guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
  }

  /// Runs the statement with arguments, with all of their text.
  package func executeWhole(_ arguments: [DatabaseValue]) throws {
    try bindWhole(arguments)
    try execute()
  }
}

extension Database {
  /// A statement whose arguments are bound with all of their text.
  package func wholeStatement(_ sql: String, _ arguments: [DatabaseValue]) throws -> Statement {
    let statement = try makeStatement(sql: sql)
    try statement.bindWhole(arguments)
    return statement
  }

  /// The rows of a query, its arguments bound with all of their text; `Row.whole` reads theirs.
  package func wholeCursor(_ sql: String, _ arguments: [DatabaseValue]) throws -> RowCursor {
    try Row.fetchCursor(try wholeStatement(sql, arguments))
  }

  /// All values of all rows of a query, with all of their text.
  package func wholeRows(_ sql: String, _ arguments: [DatabaseValue]) throws -> [[DatabaseValue]] {
    let cursor = try wholeCursor(sql, arguments)
    var rows: [[DatabaseValue]] = []
    while let row = try cursor.next() { rows.append((0..<row.count).map { row.whole($0) }) }
    return rows
  }
}
