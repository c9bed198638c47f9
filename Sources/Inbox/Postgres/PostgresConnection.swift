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
    guard unsafe handle != nil, unsafe library.status(handle) == 0 else {
      throw PostgresFailure(.connecting(words))
    }
    _ = unsafe library.setNoticeReceiver(handle, ignoreNotice, nil)
    guard unsafe library.serverVersion(handle) >= 120_000 else { throw PostgresFailure(.state("0A000")) }
    try run(
      """
      SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
      SET statement_timeout = '30s'; SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s';
      SET jit = off; SET standard_conforming_strings = on; SET bytea_output = 'hex'; SET search_path = pg_catalog, pg_temp
      """)
    let encoding = try query(
      "SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()")
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
      let extra = unsafe notification.load(
        fromByteOffset: 2 * MemoryLayout<Int>.stride, as: UnsafePointer<CChar>?.self)
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
  case null

  /// Compared; a NUL is an error, as PostgreSQL cannot store it.
  case text(String)

  case maybe(String?)

  /// Displayed or searched hostile text: NUL becomes U+FFFD.
  case shown(String?)

  case integer(Int64)
  case bytes([UInt8])

  /// A list for `= ANY` and `unnest`.
  case texts([String])

  /// The value in text or binary form; nil for null.
  ///
  /// - Throws: for a text with NUL.
  func encoded() throws(PostgresFailure) -> (bytes: [UInt8], isBinary: Bool)? {
    switch self {
    case .null, .maybe(nil), .shown(nil): return nil
    case .text(let text), .maybe(let text?): return (try Self.checked(text), true)
    case .shown(let text?): return (text.utf8.contains(0) ? Self.withoutNUL(text) : Array(text.utf8), true)
    case .integer(let number): return (Array("\(number)".utf8) + [0], false)
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
