internal import GRDB
internal import GRDBSQLite
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// The new database for recovered rows: a plain SQLite connection that passes memory to C.
///
/// Values keep their bytes, so text that is invalid in its encoding stays text. Durability comes from a final sync; an
/// unfinished file is deleted.
@safe final class OutputDatabase {
  private let connection: OpaquePointer
  private let path: FilePath
  let keyBudget = KeySet.Budget()
  fileprivate let textEncoding: UInt8

  /// Creates the file; the name must be free.
  init(_ path: FilePath, pageSize: Int, encoding: TextEncoding) throws {
    self.path = path
    // SQLite's own numbers are those of the file format.
    textEncoding = UInt8(encoding.rawValue)
    // SQLite would make it readable by other users; an empty file is a valid empty database.
    if !path.isEmpty, try FileSystem().status(of: path) == nil { try FileSystem().create(path).commit() }
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
    let code = unsafe path.withPlatformString { unsafe sqlite3_open_v2($0, &opened, flags, nil) }
    guard code == SQLITE_OK, let opened = unsafe opened else {
      unsafe sqlite3_close_v2(opened)
      throw Self.failure(code, path)
    }
    unsafe connection = opened
    try execute(
      """
      PRAGMA page_size = \(pageSize); PRAGMA encoding = '\(encoding.pragmaName)'; PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -3072; PRAGMA temp_store = 1;
      PRAGMA trusted_schema = 0; PRAGMA mmap_size = 0
      """)
  }

  deinit { unsafe sqlite3_close_v2(connection) }

  private var declarations: [(table: String, statement: String)] = []

  /// Queues a declaration until all rows are written.
  func declare(_ table: String, later statement: String) { declarations.append((table, statement)) }

  /// Applies the queued declarations, already accepted by SQLite, to the schema alone, so that no value changes.
  func declareTables() throws {
    guard !declarations.isEmpty else { return }
    try execute("PRAGMA writable_schema = ON")
    // The schema has no index: lookups by name would be quadratic.
    let rows = try tableNumbers("rowid")
    let update = try prepare("UPDATE sqlite_master SET sql = ?1 WHERE rowid = ?2")
    for (table, statement) in declarations {
      guard let row = rows[table] else { continue }
      update.bind(statement, at: 1)
      update.bind(row, at: 2)
      _ = try update.step()
    }
    declarations = []
    try execute("PRAGMA writable_schema = RESET")
  }

  func tableNumbers(_ column: String, of kind: String = "table") throws -> [String: Int64] {
    let statement = try prepare("SELECT name, \(column) FROM sqlite_master WHERE type = '\(kind)'")
    var numbers: [String: Int64] = [:]
    while try statement.step() {
      if let name = statement.text(0) { numbers[name] = statement.integer(1) }
    }
    return numbers
  }

  /// Tests a column's type in a scratch database, once: SQLite scans the whole schema for each table.
  ///
  /// - Returns: SQLite's message if refused.
  func refusal(ofType type: String) throws -> String? {
    if let known = refusals[type] { return known }
    let scratch = try self.scratch ?? OutputDatabase("", pageSize: 4096, encoding: .utf8)
    self.scratch = scratch
    var refusal: String?
    do {
      try scratch.execute("CREATE TABLE t (c \(type)); DROP TABLE t")
    } catch let error as SalvageError where error.kind == .output {
      refusal = scratch.message
    }
    refusals[type] = .some(refusal)
    return refusal
  }

  private var scratch: OutputDatabase?
  private var refusals: [String: String?] = [:]

  func execute(_ sql: String) throws {
    let code = unsafe sqlite3_exec(connection, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  func prepare(_ sql: String) throws -> OutputStatement {
    var statement: OpaquePointer?
    let code = unsafe sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil)
    guard code == SQLITE_OK, let statement = unsafe statement else { throw failure(code) }
    return unsafe OutputStatement(statement, of: self)
  }

  /// Runs the first statement of a text; returns false if SQLite refuses it, and throws only file errors.
  func tries(_ sql: String) throws -> Bool {
    do {
      _ = try prepare(sql).step()
      return true
    } catch {
      let error = SalvageError(any: error)
      guard error.fileError == nil else { throw error }
      return false
    }
  }

  var hasChanged: Bool { unsafe sqlite3_changes(connection) > 0 }

  /// The first number of a query; nil for NULL or no row.
  func number(_ sql: String) throws -> Int64? {
    let statement = try prepare(sql)
    guard try statement.step(), !statement.isNull(0) else { return nil }
    return statement.integer(0)
  }

  /// Runs a statement to its end, returning SQLite's errors.
  ///
  /// A module may mistake damaged bytes for a size and run out of memory; that is the table's fault.
  ///
  /// - Throws: file system errors.
  func answer(_ sql: String) throws -> VirtualTables.Answer {
    do {
      let statement = try prepare(sql)
      guard try statement.step() else { return .done(nil) }
      let first = statement.text(0)
      while try statement.step() {}
      return .done(first)
    } catch {
      let error = SalvageError(any: error)
      guard error.kind == .output || error.code == FileError.Kind.outOfMemory.code else { throw error }
      return .refused(message)
    }
  }

  var maximumColumns: Int { unsafe Int(sqlite3_limit(connection, SQLITE_LIMIT_COLUMN, -1)) }

  /// SQLite's last error; only for statements without row values.
  var message: String { unsafe printable(String(cString: sqlite3_errmsg(connection))) }

  /// The error for a result code, without SQL or values.
  fileprivate func failure(_ code: Int32) -> SalvageError {
    let extended = unsafe sqlite3_extended_errcode(connection)
    return Self.failure(extended & 0xff == code & 0xff ? extended : code, path)
  }

  private static func failure(_ code: Int32, _ path: FilePath) -> SalvageError {
    if let kind = ResultCodeCause(ResultCode(rawValue: code)).fileErrorKind {
      return SalvageError(FileError(kind, operation: "write what was salvaged", path: path))
    }
    return SalvageError(
      .output, operation: "write what was salvaged", path: path, detail: "SQLite reported code \(code)")
  }
}

@safe final class OutputStatement {
  private let statement: OpaquePointer
  private let database: OutputDatabase

  fileprivate init(_ statement: OpaquePointer, of database: OutputDatabase) {
    unsafe self.statement = unsafe statement
    self.database = database
  }

  deinit { unsafe sqlite3_finalize(statement) }

  /// Steps once; resets the statement at its end, and returns false.
  func step() throws -> Bool {
    let code = unsafe sqlite3_step(statement)
    if code == SQLITE_ROW { return true }
    unsafe sqlite3_reset(statement)
    guard code == SQLITE_DONE else { throw database.failure(code) }
    return false
  }

  func reset() { unsafe sqlite3_reset(statement) }

  func integer(_ column: Int) -> Int64 { unsafe sqlite3_column_int64(statement, Int32(column)) }

  func isNull(_ column: Int) -> Bool { unsafe sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL }

  func text(_ column: Int) -> String? {
    unsafe sqlite3_column_text(statement, Int32(column)).map { unsafe String(cString: $0) }
  }

  func bind(_ value: Int64, at index: Int) { unsafe sqlite3_bind_int64(statement, Int32(index), value) }
  func bindNull(at index: Int) { unsafe sqlite3_bind_null(statement, Int32(index)) }

  func bind(_ text: String, at index: Int) {
    // SQLITE_TRANSIENT: SQLite copies the bytes.
    let destructor = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
    // A trailing NUL, as SQLite takes a null pointer for NULL.
    _ = unsafe (Array(text.utf8) + [0]).withUnsafeBytes { bytes in
      unsafe sqlite3_bind_text64(
        statement, Int32(index), bytes.baseAddress?.assumingMemoryBound(to: CChar.self), UInt64(bytes.count - 1),
        destructor, UInt8(SQLITE_UTF8))
    }
  }

  /// Runs the statement with uncopied UTF-8 text.
  func run(withText text: [UInt8], at index: Int) throws {
    let code = unsafe text.withUnsafeBytes { bytes in
      unsafe sqlite3_bind_text64(
        statement, Int32(index), bytes.baseAddress?.assumingMemoryBound(to: CChar.self), UInt64(bytes.count), nil,
        UInt8(SQLITE_UTF8))
      return unsafe sqlite3_step(statement)
    }
    unsafe sqlite3_reset(statement)
    bindNull(at: index)
    guard code == SQLITE_DONE else { throw database.failure(code) }
  }

  func bind(_ value: Value, at index: Int) {
    switch value {
    case .null: bindNull(at: index)
    case .integer(let number): bind(number, at: index)
    case .real(let number): unsafe sqlite3_bind_double(statement, Int32(index), number)
    case .text(let text): bind(text.string, at: index)
    case .blob(let bytes):
      let destructor = unsafe unsafeBitCast(-1, to: sqlite3_destructor_type.self)
      unsafe bytes.withUnsafeBytes {
        _ = unsafe sqlite3_bind_blob(statement, Int32(index), $0.baseAddress, Int32($0.count), destructor)
      }
    }
  }

  /// Runs the statement with a record's fields bound in order; returns whether it has a row.
  ///
  /// A malformed record is bound as far as it goes. The bytes are used only during the call.
  @discardableResult
  func run(_ record: Span<UInt8>, firstParameter: Int, fields limit: Int, beforeStep: (Int) -> Void) throws -> Bool {
    let code = unsafe record.withUnsafeBufferPointer { buffer in
      let count = unsafe bindFields(record, buffer.baseAddress, firstParameter: firstParameter, limit: limit)
      beforeStep(count)
      return unsafe sqlite3_step(statement)
    }
    unsafe sqlite3_reset(statement)
    guard code == SQLITE_DONE || code == SQLITE_ROW else { throw database.failure(code) }
    return code == SQLITE_ROW
  }

  @inline(__always)
  private func bindFields(_ bytes: Span<UInt8>, _ base: UnsafePointer<UInt8>?, firstParameter: Int, limit: Int) -> Int {
    let end = bytes.count
    var offset = 0
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end),
      let base = unsafe base
    else { return 0 }
    let headerEnd = Int(header)
    var body = headerEnd
    var field = 0
    while offset < headerEnd, field < limit {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= end &- body
      else { break }
      let parameter = Int32(truncatingIfNeeded: firstParameter &+ field)
      if code >= 12 {
        let pointer = unsafe UnsafeRawPointer(base + body)
        if code & 1 == 0 {
          unsafe sqlite3_bind_blob64(statement, parameter, pointer, UInt64(width), nil)
        } else {
          unsafe sqlite3_bind_text64(
            statement, parameter, pointer.assumingMemoryBound(to: CChar.self), UInt64(width), nil,
            database.textEncoding)
        }
      } else {
        switch code {
        case 0: unsafe sqlite3_bind_null(statement, parameter)
        case 8: unsafe sqlite3_bind_int64(statement, parameter, 0)
        case 9: unsafe sqlite3_bind_int64(statement, parameter, 1)
        case 7:
          let bits = bytes.signedInteger(at: body, length: 8) ?? 0
          unsafe sqlite3_bind_double(statement, parameter, Double(bitPattern: UInt64(bitPattern: bits)))
        default: unsafe sqlite3_bind_int64(statement, parameter, bytes.signedInteger(at: body, length: width) ?? 0)
        }
      }
      body &+= width
      field &+= 1
    }
    return field
  }
}
