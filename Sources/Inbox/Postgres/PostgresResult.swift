import Platform

/// A statement's rows.
@safe struct PostgresResult: ~Copyable {
  private let result: OpaquePointer?
  private let library: PostgresLibrary

  /// Takes ownership of a libpq result; nil means out of memory or a lost connection.
  init(_ result: OpaquePointer?, _ library: PostgresLibrary) {
    unsafe self.result = unsafe result
    self.library = library
  }

  deinit { unsafe library.clear(result) }

  var failure: PostgresFailure? {
    // PGRES_COMMAND_OK, PGRES_TUPLES_OK
    let status = unsafe result == nil ? -1 : library.resultStatus(result)
    if status == 1 || status == 2 { return nil }
    // PG_DIAG_SQLSTATE
    if let state = unsafe library.resultErrorField(result, CInt(UInt8(ascii: "C"))) {
      return PostgresFailure(.state(String(unsafe String(cString: state).prefix(5))))
    }
    // Without SQLSTATE the error is libpq's own: the connection is unusable.
    return PostgresFailure(.lost)
  }

  var count: Int { Int(unsafe library.rowCount(result)) }

  var changed: Int {
    guard let text = unsafe library.changedRows(result) else { return 0 }
    return Int(unsafe String(cString: text)) ?? 0
  }

  /// A value in the server's text form; nil for null.
  func bytes(_ row: Int, _ column: Int) throws(PostgresFailure) -> [UInt8]? {
    guard row >= 0, row < count, column >= 0, column < Int(unsafe library.columnCount(result)) else {
      throw PostgresFailure(.badRow)
    }
    let (row, column) = (CInt(row), CInt(column))
    guard unsafe library.isNull(result, row, column) == 0 else { return nil }
    let length = Int(unsafe library.length(result, row, column))
    guard let start = unsafe library.value(result, row, column), length >= 0 else { throw PostgresFailure(.badRow) }
    return unsafe Array(UnsafeBufferPointer(start: start, count: length))
  }

  func maybeText(_ row: Int, _ column: Int) throws(PostgresFailure) -> String? {
    guard let bytes = try bytes(row, column) else { return nil }
    guard let text = String(utf8: bytes) else { throw PostgresFailure(.badText) }
    return text
  }

  func text(_ row: Int, _ column: Int) throws(PostgresFailure) -> String {
    guard let text = try maybeText(row, column) else { throw PostgresFailure(.badRow) }
    return text
  }

  func maybeInteger(_ row: Int, _ column: Int) throws(PostgresFailure) -> Int64? {
    guard let text = try maybeText(row, column) else { return nil }
    guard let number = Int64(text) else { throw PostgresFailure(.badRow) }
    return number
  }

  func integer(_ row: Int, _ column: Int) throws(PostgresFailure) -> Int64 {
    guard let number = try maybeInteger(row, column) else { throw PostgresFailure(.badRow) }
    return number
  }

  /// Decodes a `bytea`: `\x` and hexadecimal digits.
  func binary(_ row: Int, _ column: Int) throws(PostgresFailure) -> [UInt8] {
    guard let text = try bytes(row, column), text.starts(with: [0x5c, 0x78]), text.count % 2 == 0 else {
      throw PostgresFailure(.badRow)
    }
    let digits = text.dropFirst(2).map { digit -> UInt8? in
      switch digit {
      case 48...57: digit - 48
      case 97...102: digit - 87
      default: nil
      }
    }
    return try stride(from: 0, to: digits.count, by: 2).map { index throws(PostgresFailure) in
      guard let high = digits[index], let low = digits[index + 1] else { throw PostgresFailure(.badRow) }
      return high << 4 | low
    }
  }

  func map<Value>(_ body: (borrowing PostgresResult, Int) throws -> Value) throws -> [Value] {
    var values: [Value] = []
    values.reserveCapacity(count)
    for row in 0..<count { values.append(try body(self, row)) }
    return values
  }
}
