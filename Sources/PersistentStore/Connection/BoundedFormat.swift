package import GRDB
internal import GRDBSQLite

/// SQLite's `printf` and `format`, with limited widths and precisions.
///
/// SQLite pads character by character without checking limits: `printf('%.2000000000c', 'x')` takes seconds. Accepted
/// formats run in SQLite itself, on a connection without a file.
@safe package final class BoundedFormat {
  private var connection: OpaquePointer?

  private var statements: [Int32: OpaquePointer] = unsafe [:]

  deinit {
    while let known = unsafe statements.popFirst() { unsafe sqlite3_finalize(known.value) }
    unsafe sqlite3_close(connection)
  }

  /// Replaces SQLite's own functions, in statements and declarations alike.
  package static func add(to database: Database) throws {
    for name in ["printf", "format"] {
      let code = unsafe sqlite3_create_function_v2(
        database.sqliteConnection, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
        Unmanaged.passRetained(BoundedFormat()).toOpaque(),
        { context, count, values in
          guard let own = unsafe sqlite3_user_data(context) else { return }
          unsafe Unmanaged<BoundedFormat>.fromOpaque(own).takeUnretainedValue().call(context, count, values)
        }, nil, nil, { own in if let own = unsafe own { unsafe Unmanaged<BoundedFormat>.fromOpaque(own).release() } })
      guard code == SQLITE_OK else { throw DatabaseError(resultCode: ResultCode(rawValue: code)) }
    }
  }

  private func call(
    _ context: OpaquePointer?, _ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?
  ) {
    guard count > 0, let values = unsafe values, let text = unsafe sqlite3_value_text(values[0]) else { return }
    let longest = unsafe sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1)
    let format = unsafe UnsafeBufferPointer(start: text, count: Int(sqlite3_value_bytes(values[0])))
    let asked = unsafe Self.length(of: Array(format)) { place in
      place + 1 < Int(count) ? unsafe sqlite3_value_int64(values[place + 1]) : 0
    }
    guard asked <= Int64(longest) else { return unsafe sqlite3_result_error_toobig(context) }
    guard let statement = unsafe statement(count, longest) else {
      return unsafe sqlite3_result_error_nomem(context)
    }
    for place in 0..<count { unsafe sqlite3_bind_value(statement, place + 1, values[Int(place)]) }
    let code = unsafe sqlite3_step(statement)
    if code == SQLITE_ROW {
      unsafe sqlite3_result_value(context, sqlite3_column_value(statement, 0))
    } else {
      unsafe sqlite3_result_error_code(context, code)
    }
    unsafe sqlite3_reset(statement)
    unsafe sqlite3_clear_bindings(statement)
  }

  private func statement(_ count: Int32, _ longest: Int32) -> OpaquePointer? {
    if unsafe connection == nil { unsafe sqlite3_open_v2(":memory:", &connection, SQLITE_OPEN_READWRITE, nil) }
    guard let connection = unsafe connection else { return nil }
    _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, max(longest, 1 << 10))
    if let known = unsafe statements[count] { return unsafe known }
    var made: OpaquePointer?
    let parameters = (1...count).map { "?\($0)" }.joined(separator: ",")
    // SQLite's printf gives NULL for no text and for one that is too long; a blob that is too long is an error.
    let tooLong = "CASE WHEN printf('x' || \(parameters)) IS NULL THEN zeroblob(1 << 40) END"
    unsafe sqlite3_prepare_v2(connection, "SELECT coalesce(printf(\(parameters)), \(tooLong))", -1, &made, nil)
    unsafe statements[count] = made
    return unsafe made
  }

  /// Returns the total of a format's widths and precisions (https://sqlite.org/printf.html).
  ///
  /// - Parameter value: the argument for a `*`, by index after the format.
  static func length(of format: [UInt8], value: (Int) -> Int64) -> Int64 {
    var sum: Int64 = 0
    var (index, place) = (0, 0)

    func number() -> Int64 {
      if index < format.count, format[index] == UInt8(ascii: "*") {
        index += 1
        place += 1
        return Int64(clamping: value(place - 1).magnitude)
      }
      var number: Int64 = 0
      while index < format.count, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(format[index]) {
        // SQLite keeps the lower 31 bits; larger numbers are refused.
        number = min(1 << 40, number * 10 + Int64(format[index] - UInt8(ascii: "0")))
        index += 1
      }
      return number
    }

    while index < format.count {
      defer { index += 1 }
      guard format[index] == UInt8(ascii: "%") else { continue }
      index += 1
      while index < format.count, "-+ #!,0".utf8.contains(format[index]) { index += 1 }
      var length = number()
      var precision: Int64 = 0
      if index < format.count, format[index] == UInt8(ascii: ".") {
        index += 1
        precision = number()
      }
      while index < format.count, format[index] == UInt8(ascii: "l") { index += 1 }
      guard index < format.count else { return saturating(sum, length) }
      // For text, the precision is a maximum.
      if !"szqQw".utf8.contains(format[index]) { length = saturating(length, precision) }
      sum = saturating(sum, length)
      if format[index] != UInt8(ascii: "%"), format[index] != UInt8(ascii: "n") { place += 1 }
    }
    return sum
  }

  private static func saturating(_ one: Int64, _ other: Int64) -> Int64 {
    let (sum, isOver) = one.addingReportingOverflow(other)
    return isOver ? .max : sum
  }
}
