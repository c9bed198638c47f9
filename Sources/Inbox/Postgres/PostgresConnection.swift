internal import Platform

/// Drops server notices, which libpq would print to standard error.
private func ignoreNotice(_: UnsafeMutableRawPointer?, _: OpaquePointer?) {}

/// A self-closing connection for one thread at a time, lent by the pool.
@safe final class PostgresConnection: @unchecked Sendable {
  private let handle: OpaquePointer?
  private let library: PostgresLibrary
  private var prepared: [String: String] = [:]
  private var isBroken = false

  private let clock: @Sendable () -> Timestamp

  /// The server clock's lead in seconds, and both local clocks then.
  private var measured: (offset: Int64, date: Timestamp, instant: ContinuousClock.Instant)?

  /// Connects within `connect_timeout`, by default 10 seconds per host.
  ///
  /// - Throws: `0A000` for a server before version 12 or a database not in UTF-8, and other errors.
  init(
    _ address: PostgresAddress, _ library: PostgresLibrary, clock: @escaping @Sendable () -> Timestamp
  ) throws(PostgresFailure) {
    self.library = library
    self.clock = clock
    // The address overrides earlier settings; keepalives detect a dead connection before a lease ends.
    let settings: [(String, String)] = [
      ("connect_timeout", "10"), ("fallback_application_name", "lazaret"), ("keepalives_idle", "20"),
      ("keepalives_interval", "10"), ("keepalives_count", "3"), ("tcp_user_timeout", "20000"),
      ("dbname", address.text), ("client_encoding", "UTF8"),
    ]
    let names = CTexts(settings.map { Array($0.0.utf8) + [0] })
    let values = CTexts(settings.map { Array($0.1.utf8) + [0] })
    unsafe handle = unsafe names.withPointers { names in
      unsafe values.withPointers { values in unsafe library.connect(names, values, 1) }
    }
    guard unsafe handle != nil, unsafe library.status(handle) == 0 else { throw PostgresFailure(.connecting(words)) }
    _ = unsafe library.setNoticeReceiver(handle, ignoreNotice, nil)
    guard unsafe library.serverVersion(handle) >= 120_000 else { throw PostgresFailure(.state("0A000")) }
    try run(
      """
      SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
      SET statement_timeout = '30s'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s';
      SET jit = off; SET standard_conforming_strings = on; SET bytea_output = 'hex'; SET search_path = pg_catalog, pg_temp
      """)
    let encoding = try query("SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()")
    guard try encoding.text(0, 0) == "UTF8" else { throw PostgresFailure(.state("0A000")) }
  }

  deinit { unsafe library.finish(handle) }

  /// The server clock's lead in seconds.
  ///
  /// Measured again once the continuous clock shows a change of the local one.
  func clockOffset() throws(PostgresFailure) -> Int64 {
    let (date, instant) = (clock(), ContinuousClock.now)
    if let measured {
      let passed = date.secondsSince1970 - measured.date.secondsSince1970
      if abs(passed - measured.instant.duration(to: instant).components.seconds) <= 2 { return measured.offset }
    }
    let now = try query("SELECT floor(extract(epoch FROM clock_timestamp()))::bigint").integer(0, 0)
    let offset = now - date.secondsSince1970
    // A rounding difference.
    measured = (abs(offset) > 2 ? offset : 0, date, instant)
    return abs(offset) > 2 ? offset : 0
  }

  private var words: String {
    guard let message = unsafe library.errorMessage(handle) else { return "memory is short" }
    let line = unsafe String(cString: message).split(separator: "\n").first ?? "the server does not answer"
    return printable(String(line.prefix(300)))
  }

  var isIdle: Bool { unsafe !isBroken && library.status(handle) == 0 && library.transactionStatus(handle) == 0 }

  private var isLost: Bool { unsafe library.status(handle) != 0 }

  private func checked(_ result: consuming PostgresResult) throws(PostgresFailure) -> PostgresResult {
    if let failure = result.failure {
      if failure.isConnectionLost || isLost { isBroken = true }
      // A stopping server sends its state before the connection ends.
      throw isLost && !failure.isConnectionLost ? PostgresFailure(.lost) : failure
    }
    return result
  }

  func run(_ sql: String) throws(PostgresFailure) {
    _ = try checked(unsafe PostgresResult(library.execute(handle, sql), library))
  }

  /// Runs a statement, prepared on first use.
  ///
  /// - Parameter isPlannedAnew: plans for these values instead.
  func query(
    _ sql: String, _ values: [PostgresValue] = [], isPlannedAnew: Bool = false
  ) throws(PostgresFailure) -> PostgresResult {
    var encoded: [(bytes: [UInt8], isBinary: Bool)?] = []
    for value in values { encoded.append(try value.encoded()) }
    let name = isPlannedAnew ? nil : try prepare(sql)
    let lengths = encoded.map { CInt(clamping: $0?.bytes.count ?? 0) }
    let formats = encoded.map { CInt($0?.isBinary == true ? 1 : 0) }
    let texts = CTexts(encoded.map { $0?.bytes })
    let count = CInt(clamping: values.count)
    let result = unsafe texts.withPointers { pointers in
      if let name {
        unsafe library.executePrepared(handle, name, count, pointers, lengths, formats, 0)
      } else {
        unsafe library.executeParameters(handle, sql, count, nil, pointers, lengths, formats, 0)
      }
    }
    return try checked(unsafe PostgresResult(result, library))
  }

  /// Statements are constants, so there are few.
  private func prepare(_ sql: String) throws(PostgresFailure) -> String {
    if let name = prepared[sql] { return name }
    let name = "lazaret_\(prepared.count)"
    _ = try checked(unsafe PostgresResult(library.prepare(handle, name, sql, 0, nil), library))
    prepared[sql] = name
    return name
  }

  // MARK: Notifications

  /// The socket's descriptor; negative if not connected.
  var socket: CInt { unsafe library.socket(handle) }

  /// Reads the socket and returns the notifications' payloads.
  func notifications() throws(PostgresFailure) -> [String] {
    guard unsafe library.consumeInput(handle) == 1 else { throw PostgresFailure(.lost) }
    var payloads: [String] = []
    while let notification = unsafe library.notifies(handle) {
      defer { unsafe library.freeMemory(notification) }
      // PGnotify: char *relname; int be_pid; char *extra.
      let extra = unsafe notification.load(fromByteOffset: 2 * MemoryLayout<Int>.stride, as: UnsafePointer<CChar>?.self)
      payloads.append(unsafe extra.map { unsafe String(cString: $0) } ?? "")
    }
    return payloads
  }
}

/// A C array of texts, valid during the call.
@safe struct CTexts {
  private let bytes: [UInt8]
  private let starts: [Int?]

  /// Adds a NUL to each text; nil becomes a null pointer, which also ends the array.
  init(_ texts: [[UInt8]?]) {
    var bytes: [UInt8] = []
    var starts: [Int?] = []
    for text in texts {
      starts.append(text == nil ? nil : bytes.count)
      // An empty value needs a pointer: a null one is NULL.
      if let text { bytes += text.isEmpty ? [0] : text }
    }
    self.bytes = bytes + [0]
    self.starts = starts + [nil]
  }

  func withPointers<Result>(_ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> Result) -> Result {
    unsafe bytes.withUnsafeBytes { bytes in
      let base = unsafe bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
      let pointers = unsafe starts.map { start in unsafe start.flatMap { unsafe base?.advanced(by: $0) } }
      return unsafe pointers.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
    }
  }
}

/// A bound value, never part of the statement's text.
enum PostgresValue {
  /// Compared; a NUL is an error, as PostgreSQL cannot store it.
  case text(String)

  case maybe(String?)

  /// Displayed or searched hostile text: NUL becomes U+FFFD.
  case shown(String?)

  case integer(Int64)
  case maybeInteger(Int64?)
  case bytes([UInt8])

  /// A list for `= ANY` and `unnest`.
  case texts([String])

  static func json(_ value: some Encodable) throws -> PostgresValue { .text(try InboxRecordText.text(value)) }

  static func limit(_ count: Int) -> PostgresValue { .integer(Int64(max(0, count))) }

  /// The value in text or binary form; nil for null.
  ///
  /// - Throws: for a text with NUL.
  func encoded() throws(PostgresFailure) -> (bytes: [UInt8], isBinary: Bool)? {
    switch self {
    case .maybe(nil), .shown(nil), .maybeInteger(nil): return nil
    case .text(let text), .maybe(let text?): return (try Self.checked(text), true)
    case .shown(let text?): return (text.utf8.contains(0) ? Self.withoutNUL(text) : Array(text.utf8), true)
    case .integer(let number), .maybeInteger(let number?): return (Array("\(number)".utf8) + [0], false)
    case .bytes(let bytes): return (bytes, true)
    case .texts(let texts):
      var array: [UInt8] = [UInt8(ascii: "{")]
      for (index, text) in texts.enumerated() {
        if index > 0 { array.append(UInt8(ascii: ",")) }
        array.append(UInt8(ascii: "\""))
        for byte in try Self.checked(text) {
          if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { array.append(UInt8(ascii: "\\")) }
          array.append(byte)
        }
        array.append(UInt8(ascii: "\""))
      }
      return (array + [UInt8(ascii: "}"), 0], false)
    }
  }

  private static func checked(_ text: String) throws(PostgresFailure) -> [UInt8] {
    let bytes = Array(text.utf8)
    guard !bytes.contains(0) else { throw PostgresFailure(.badText) }
    return bytes
  }

  private static func withoutNUL(_ text: String) -> [UInt8] {
    text.utf8.flatMap { $0 == 0 ? [0xef, 0xbf, 0xbd] : [$0] }
  }
}

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

  func maybeJSON<Value: Decodable>(_ row: Int, _ column: Int) throws -> Value? {
    try maybeText(row, column).map { try InboxRecordText.value($0) }
  }

  func json<Value: Decodable>(_ row: Int, _ column: Int) throws -> Value {
    try InboxRecordText.value(try text(row, column))
  }

  /// Decodes a `bytea`: `\x` and hexadecimal digits.
  func binary(_ row: Int, _ column: Int) throws(PostgresFailure) -> [UInt8] {
    guard let text = try bytes(row, column), text.starts(with: [0x5c, 0x78]),
      let bytes = [UInt8](hexadecimal: Array(text.dropFirst(2)))
    else { throw PostgresFailure(.badRow) }
    return bytes
  }

  func map<Value>(_ body: (borrowing PostgresResult, Int) throws -> Value) throws -> [Value] {
    var values: [Value] = []
    values.reserveCapacity(count)
    for row in 0..<count { values.append(try body(self, row)) }
    return values
  }
}

/// A failure without values and server messages.
struct PostgresFailure: Error, Equatable {
  enum Kind: Equatable {
    /// No connection; libpq's message names host and user, but no secret.
    case connecting(String)

    /// The connection was lost; the last statement's outcome is unknown.
    case lost

    /// The server refused a statement, with this SQLSTATE.
    case state(String)

    /// All connections stayed in use.
    case busy

    /// A text has a NUL, which PostgreSQL cannot store, or is not UTF-8.
    case badText

    /// A row not written by this software.
    case badRow
  }

  let kind: Kind

  init(_ kind: Kind) { self.kind = kind }

  var isConnectionLost: Bool {
    switch kind {
    case .connecting, .lost: true
    // The server stops, starts or is read-only, like a former primary; another connection may reach the new one.
    case .state(let state):
      state.hasPrefix("08") || ["57P01", "57P02", "57P03", "57P05", "25P03", "25006"].contains(state)
    case .busy, .badText, .badRow: false
    }
  }

  /// Whether the transaction lost a conflict and can be retried.
  var isConflict: Bool { kind == .state("40001") || kind == .state("40P01") }

  /// Whether the environment is at fault: server, network, permissions, space or locks.
  ///
  /// Classes of [PostgreSQL's error codes](https://www.postgresql.org/docs/15/errcodes-appendix.html).
  var isEnvironmental: Bool {
    switch kind {
    case .connecting, .lost, .busy: true
    case .badText, .badRow: false
    case .state(let state):
      // Connections, authorization, conflicts, resources, operator and system; missing catalogue; permissions; lock;
      // read-only.
      ["08", "28", "3D", "40", "53", "57", "58"].contains(state.prefix(2))
        || ["42501", "55P03", "55006", "25006"].contains(state)
    }
  }

  func told(_ operation: String) -> InboxError {
    let (detail, hint): (String, String) =
      switch kind {
      case .connecting(let words):
        (
          "cannot connect to its database: \(words)",
          "Look whether the server runs there, and whether this user may use it."
        )
      case .lost: ("the connection to its database was lost", "Look whether the server runs; then do it again.")
      case .busy: ("all connections to its database are in use", "Wait a moment; then do it again.")
      case .badText: ("a text cannot be kept in PostgreSQL", "Leave control characters out.")
      case .badRow: ("a row of its database is not as this software writes it", "Restore the database from its backup.")
      case .state(let state): ("its database refused the statement (SQLSTATE \(state))", Self.hint(state))
      }
    return InboxError(.records, operation: operation, detail: detail, hint: hint, isEnvironmental: isEnvironmental)
  }

  private static func hint(_ state: String) -> String {
    switch state {
    case "42501": "Give this user the rights: it owns the schema lazaret, or the schema's owner grants them."
    case "3D000": "Create the database first: createdb."
    case "25006": "Give the address of the primary server; this one only reads."
    case "53100": "The disk of the database server is full: make room there."
    case "53300": "The server has no connection left: raise max_connections, or end some."
    case "55P03", "57014": "It took too long: look what else the server does."
    case _ where state.hasPrefix("XX"): "Look into the server's log: it reports damage of its own."
    case _ where PostgresFailure(.state(state)).isEnvironmental: "Look into the server's log, then do it again."
    default: "Please report this, with the server's log."
    }
  }
}
