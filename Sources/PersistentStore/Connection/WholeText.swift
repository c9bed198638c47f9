package import GRDB
internal import GRDBSQLite

/// An SQLite value with full text; GRDB itself stops at the first NUL.
package struct WholeValue: DatabaseValueConvertible, StatementColumnConvertible {
  package let value: DatabaseValue

  package init?(sqliteStatement statement: SQLiteStatement, index: CInt) {
    guard unsafe sqlite3_column_type(statement, index) == SQLITE_TEXT else {
      value = unsafe DatabaseValue(sqliteStatement: statement, index: index)
      return
    }
    // Text first: reading it may change the byte count.
    guard let start = unsafe sqlite3_column_text(statement, index) else { return nil }
    let count = unsafe Int(sqlite3_column_bytes(statement, index))
    value = unsafe String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self).databaseValue
  }

  private init(value: DatabaseValue) { self.value = value }

  package var databaseValue: DatabaseValue { value }

  package static func fromDatabaseValue(_ value: DatabaseValue) -> WholeValue? { WholeValue(value: value) }
}

extension Row {
  /// Returns a full-text value of a cursor's current row; a copied row has lost text after a NUL.
  package func whole(_ index: Int) -> DatabaseValue {
    let value: WholeValue? = self[index]
    return value?.value ?? .null
  }
}

extension Statement {
  /// Binds full-text arguments.
  func bindWhole(_ arguments: [DatabaseValue]) throws {
    try setArguments(StatementArguments(arguments))
    for (index, argument) in arguments.enumerated() {
      guard case .string(let text) = argument.storage, text.utf8.contains(0) else { continue }
      let bytes = Array(text.utf8)
      let code = unsafe bytes.withUnsafeBytes { bytes in
        unsafe sqlite3_bind_text64(
          sqliteStatement, CInt(index + 1), bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
          UInt64(bytes.count), unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self), UInt8(SQLITE_UTF8))
      }
      guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
  }

  package func executeWhole(_ arguments: [DatabaseValue]) throws {
    try bindWhole(arguments)
    try execute()
  }
}

extension Database {
  package func wholeStatement(_ sql: String, _ arguments: [DatabaseValue]) throws -> Statement {
    let statement = try makeStatement(sql: sql)
    try statement.bindWhole(arguments)
    return statement
  }

  /// Returns a query's rows; `Row.whole` reads full-text values.
  package func wholeCursor(_ sql: String, _ arguments: [DatabaseValue]) throws -> RowCursor {
    try Row.fetchCursor(try wholeStatement(sql, arguments))
  }

  package func wholeRows(_ sql: String, _ arguments: [DatabaseValue]) throws -> [[DatabaseValue]] {
    let cursor = try wholeCursor(sql, arguments)
    var rows: [[DatabaseValue]] = []
    while let row = try cursor.next() { rows.append((0..<row.count).map { row.whole($0) }) }
    return rows
  }
}
