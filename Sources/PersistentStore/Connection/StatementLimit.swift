package import GRDB
internal import GRDBSQLite

/// Limits on statements: steps, memory and value length for a store's own expressions, time where a user waits.
///
/// SQLite counts virtual machine steps, so a statement ends at the same point on every machine. It polls the clock
/// itself, so a deadline needs no free thread. Ending a writing statement rolls back its transaction.
@safe package final class StatementLimit {
  private let steps: Int64
  private let valueLength: Int32
  private let end: ContinuousClock.Instant
  private let isCancelled: (() -> Bool)?
  private let waited: (() -> Duration)?
  private var taken: Int64 = 0

  package enum Excess: Sendable {
    case steps, time
    /// SQLite counts all connections of the process together, so another may be the cause and a retry may succeed.
    case memory
  }

  package private(set) var excess: Excess?

  package var isExceeded: Bool { excess != nil }

  private static let longestPattern: Int32 = 200

  /// SQLite can make a hundred such values harmlessly.
  private static let shortValue: Int64 = 64 << 10

  /// The memory growth allowed with a value length: an expression can hold thousands of values at a time.
  static let mostMemory: Int64 = 128 << 20
  private let memoryLimit: Int64
  private var memory: Int64 = 0

  private let interval: Int32

  /// Creates a time limit that starts now.
  ///
  /// - Parameters:
  ///   - memory: the allowed memory growth in bytes while value length is limited.
  ///   - isCancelled: polled between steps.
  ///   - waited: the time spent waiting for others, such as a server, which does not count.
  package init(
    time: Duration, steps: Int64 = .max, valueLength: Int64 = .max, memory: Int64 = mostMemory,
    isCancelled: (() -> Bool)? = nil, waited: (() -> Duration)? = nil
  ) {
    memoryLimit = memory
    self.steps = steps
    self.valueLength = Int32(clamping: valueLength)
    self.isCancelled = isCancelled
    self.waited = waited
    end = .now + time
    // Microseconds of work, so that polling is cheap; fewer steps where one may call a function on a long value.
    interval = valueLength == .max ? 1_000 : valueLength > Self.shortValue ? 10 : 100
  }

  /// Runs the work and restores the connection.
  ///
  /// - Throws: the work's errors; `SQLITE_INTERRUPT` with ``excess`` beyond a limit; `SQLITE_TOOBIG` for a long value.
  package func apply<Value>(to database: Database, _ work: () throws -> Value) throws -> Value {
    guard let connection = unsafe database.sqliteConnection else { return try work() }
    let before = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, -1)
    memory = sqlite3_memory_used()
    let pattern = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, -1)
    _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, min(before, valueLength))
    if valueLength < .max {
      // Matching takes value length times pattern length steps.
      _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, min(pattern, Self.longestPattern))
    }
    unsafe sqlite3_progress_handler(
      connection, interval,
      { context in
        guard let context = unsafe context else { return 0 }
        return unsafe Unmanaged<StatementLimit>.fromOpaque(context).takeUnretainedValue().count() ? 1 : 0
      }, Unmanaged.passUnretained(self).toOpaque())
    defer {
      unsafe sqlite3_progress_handler(connection, 0, nil, nil)
      _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LENGTH, before)
      _ = unsafe sqlite3_limit(connection, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, pattern)
    }
    return try work()
  }

  private func count() -> Bool {
    taken += Int64(interval)
    if valueLength < .max, sqlite3_memory_used() - memory > memoryLimit { excess = .memory }
    if taken > steps { excess = .steps }
    if .now >= end + (waited?() ?? .zero) { excess = .time }
    return isExceeded || isCancelled?() == true
  }
}

/// SQLite's `printf` and `format`, with limited widths and precisions.
///
/// SQLite pads character by character without checking limits: `printf('%.2000000000c', 'x')` takes seconds. Accepted
/// formats run in SQLite itself, on a connection without a file.
@safe final class BoundedFormat {
  private var connection: OpaquePointer?

  private var statements: [Int32: OpaquePointer] = unsafe [:]

  deinit {
    while let known = unsafe statements.popFirst() { unsafe sqlite3_finalize(known.value) }
    unsafe sqlite3_close(connection)
  }

  /// Replaces SQLite's own functions, in statements and declarations alike.
  static func add(to database: Database) throws {
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

  private func call(_ context: OpaquePointer?, _ count: Int32, _ values: UnsafeMutablePointer<OpaquePointer?>?) {
    guard count > 0, let values = unsafe values, let text = unsafe sqlite3_value_text(values[0]) else { return }
    let longest = unsafe sqlite3_limit(sqlite3_context_db_handle(context), SQLITE_LIMIT_LENGTH, -1)
    let format = unsafe UnsafeBufferPointer(start: text, count: Int(sqlite3_value_bytes(values[0])))
    let asked = unsafe Self.length(of: Array(format)) { place in
      place + 1 < Int(count) ? unsafe sqlite3_value_int64(values[place + 1]) : 0
    }
    guard asked <= Int64(longest) else { return unsafe sqlite3_result_error_toobig(context) }
    guard let statement = unsafe statement(count, longest) else { return unsafe sqlite3_result_error_nomem(context) }
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
