internal import Dispatch
internal import Foundation
package import Platform

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// An inbox's PostgreSQL database for many machines.
///
/// Calls are thread-safe, one transaction each. One that did not start or was undone is retried for a few seconds, as
/// when a server restarts; after a connection lost during commit, only an idempotent one.
package final class PostgresDatabase: Sendable {
  private let pool: PostgresPool

  /// Identifies this process's own notifications.
  let mark: String

  static let channel = "lazaret_inbox"

  /// The most bundles searched at a time without index.
  package static let maximumLooked = 2000

  package var records: any InboxRecords { PostgresInboxRecords(database: self) }

  package func queue(_ rules: JobRules = JobRules()) -> any JobQueue { PostgresJobQueue(database: self, rules: rules) }

  /// Opens the database and upgrades its schema.
  ///
  /// - Throws: `inbox-records` without libpq or server, or for a later schema.
  package init(
    _ address: PostgresAddress, connections: Int = 8,
    clock: @escaping @Sendable () -> Timestamp = Surroundings.machine.now
  ) throws(InboxError) {
    pool = try PostgresPool(address, connections: connections, clock: clock)
    mark = "\(UniversalIdentifier.random())"
    let operation = "open the records of the inbox"
    do { try pool.withConnection { try PostgresSchema.bring($0) } } catch { throw Self.told(error, operation) }
  }

  /// Reads in one snapshot.
  func read<Value>(_ operation: String, _ body: (PostgresConnection) throws -> Value) throws(InboxError) -> Value {
    try attempt(operation, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", isRepeatable: true, body)
  }

  /// Reads with one statement, which is a snapshot itself.
  func readOnce<Value>(_ operation: String, _ body: (PostgresConnection) throws -> Value) throws(InboxError) -> Value {
    try attempt(operation, nil, isRepeatable: true, body)
  }

  /// Writes in one transaction.
  ///
  /// - Parameters:
  ///   - isRepeatable: whether the write is idempotent.
  ///   - tells: whether listeners are notified.
  ///   - isLasting: whether it is durable on return; otherwise a server crash may undo it.
  func write<Value>(
    _ operation: String, isRepeatable: Bool, tells: Bool = true, isLasting: Bool = true,
    _ body: (PostgresConnection) throws -> Value
  ) throws(InboxError) -> Value {
    let begin = isLasting ? "BEGIN" : "BEGIN; SET LOCAL synchronous_commit = off"
    return try attempt(operation, begin, isRepeatable: isRepeatable) { connection in
      let value = try body(connection)
      if tells { try tell(connection) }
      return value
    }
  }

  /// Notifies listeners at commit.
  func tell(_ connection: PostgresConnection) throws {
    _ = try connection.query("SELECT pg_notify('\(Self.channel)', $1)", [.text(mark)])
  }

  private static let patience = Duration.seconds(6)

  private func attempt<Value>(
    _ operation: String, _ begin: String?, isRepeatable: Bool, _ body: (PostgresConnection) throws -> Value
  ) throws(InboxError) -> Value {
    let start = ContinuousClock.now
    var pause = 0.02
    while true {
      var isCommitting = false
      do {
        return try pool.withConnection { connection in
          guard let begin else { return try body(connection) }
          try connection.run(begin)
          let value: Value
          do {
            value = try body(connection)
          } catch {
            // If the rollback fails, closing the connection undoes the transaction.
            try? connection.run("ROLLBACK")
            throw error
          }
          isCommitting = true
          try connection.run("COMMIT")
          return value
        }
      } catch {
        guard let failure = error as? PostgresFailure else { throw Self.told(error, operation) }
        if failure.isConnectionLost { pool.closeIdle() }
        let isUnknown = isCommitting && failure.isConnectionLost && !isRepeatable
        guard failure.isConnectionLost || failure.isConflict, !isUnknown, start.duration(to: .now) < Self.patience
        else { throw failure.told(operation) }
        Thread.sleep(forTimeInterval: pause)
        pause = min(0.5, pause * 2)
      }
    }
  }

  private static func told(_ error: any Error, _ operation: String) -> InboxError {
    if let error = error as? InboxError { return error }
    if let failure = error as? PostgresFailure { return failure.told(operation) }
    return PostgresFailure(.badRow).told(operation)
  }

  /// Opens a connection that receives notifications.
  func listen() throws(PostgresFailure) -> PostgresConnection {
    let connection = try pool.open()
    try connection.run("LISTEN \(Self.channel)")
    return connection
  }
}

/// A bounded pool of connections.
final class PostgresPool: Sendable {
  private let address: PostgresAddress
  private let library: PostgresLibrary
  private let clock: @Sendable () -> Timestamp
  private let idle = Mutex<[PostgresConnection]>([])
  private let seats: DispatchSemaphore

  init(_ address: PostgresAddress, connections: Int, clock: @escaping @Sendable () -> Timestamp) throws(InboxError) {
    self.address = address
    self.clock = clock
    library = try PostgresLibrary.shared()
    try address.check(by: library)
    seats = DispatchSemaphore(value: max(1, connections))
  }

  private static let patience = DispatchTimeInterval.seconds(15)

  /// Lends a connection, and closes one that is not idle afterwards.
  func withConnection<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    guard seats.wait(timeout: .now() + Self.patience) == .success else { throw PostgresFailure(.busy) }
    defer { seats.signal() }
    let connection = try idle.withLock { $0.popLast() } ?? open()
    defer { if connection.isIdle { idle.withLock { $0.append(connection) } } }
    return try body(connection)
  }

  /// Opens a connection outside the pool.
  func open() throws(PostgresFailure) -> PostgresConnection { try PostgresConnection(address, library, clock: clock) }

  /// Closes idle connections: if one is lost, most are.
  func closeIdle() {
    // Close outside the lock.
    let connections = idle.withLock { idle in
      let connections = idle
      idle = []
      return connections
    }
    _ = connections.count
  }
}

/// A `postgresql://…` address, which is never shown.
package struct PostgresAddress: Sendable {
  package enum Origin: Sendable {
    /// Readable by other users of the machine, so it may hold no password.
    case commandLine

    /// Readable by this user only.
    case environment
  }

  let text: String
  private let origin: Origin

  private static let operation = "open the database of the inbox"

  /// Checks an address without connecting.
  ///
  /// - Throws: `inbox-address` if malformed or with a forbidden password.
  package init(_ text: String, from origin: Origin) throws(InboxError) {
    guard ["postgresql://", "postgres://"].contains(where: text.hasPrefix), !text.utf8.contains(0) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "that is no address of a PostgreSQL database",
        hint: "Give postgresql://HOST/DATABASE, or leave it away: then the records are in a file of the home.")
    }
    self.text = text
    self.origin = origin
    if origin == .commandLine, Self.hasPassword(text) { throw Self.password }
    guard Self.endsItsCredentials(text) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "a name or a password in it has characters that end it too early",
        hint: "Write @ as %40, / as %2F and : as %3A in names and passwords, or give the password by PGPASSFILE.")
    }
  }

  /// Lets libpq parse it.
  ///
  /// - Throws: `inbox-address`, without libpq's message, which may quote the address.
  func check(by library: PostgresLibrary) throws(InboxError) {
    guard let names = library.names(in: text) else {
      throw InboxError(
        .address, operation: Self.operation, detail: "that is no address of a PostgreSQL database",
        hint: "Give postgresql://HOST/DATABASE; other characters than letters and digits in names are written %XX.")
    }
    if origin == .commandLine, names.contains("password") || names.contains("sslpassword") { throw Self.password }
  }

  /// Whether the credentials end where they seem to: libpq takes the rest of a password after `@` or `/` for a host,
  /// and names it in messages.
  private static func endsItsCredentials(_ text: String) -> Bool {
    guard let start = text.range(of: "://") else { return true }
    let rest = text[start.upperBound...].prefix { $0 != "?" }
    let authority = rest.prefix { $0 != "/" }
    let signs = rest.filter { $0 == "@" }.count
    return signs == 0 || signs == 1 && authority.contains("@")
  }

  private static var password: InboxError {
    InboxError(
      .address, operation: operation, detail: "it holds a password, which other users of this machine can see",
      hint: """
        Leave the password out, and give it by ~/.pgpass, PGPASSFILE, PGPASSWORD or a service file; or give the whole \
        address in LAZARET_DATABASE. Then change it: it was seen.
        """)
  }

  /// Whether a password is before the host or among the parameters.
  private static func hasPassword(_ text: String) -> Bool {
    guard let start = text.range(of: "://") else { return false }
    let rest = text[start.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    if let end = rest.firstIndex(of: "@"), rest[..<end].contains(":"), end < authority.endIndex { return true }
    // A password with a slash: libpq takes the text before it for a host.
    let path = rest[authority.endIndex...].prefix { $0 != "?" }
    if authority.contains(":"), path.contains("@") { return true }
    guard let question = rest.firstIndex(of: "?") else { return false }
    return rest[rest.index(after: question)...].split(separator: "&").contains { parameter in
      let name = parameter.prefix { $0 != "=" }
      let plain = String(name).removingPercentEncoding ?? String(name)
      return ["password", "sslpassword"].contains(plain.lowercased())
    }
  }
}

/// Notifies the inbox's listeners of other processes' changes, on its own connection and thread.
///
/// It also notifies after reconnecting, since it may have missed one.
package final class PostgresListener: Sendable {
  private let isStopping = Mutex(false)
  private let database: PostgresDatabase
  private let changes: InboxChanges

  package init(_ database: PostgresDatabase, to changes: InboxChanges) {
    self.database = database
    self.changes = changes
    WorkThread.start(named: "lazaret.inbox.listen") { [self] in listen() }
  }

  /// Stops within a second.
  package func stop() { isStopping.withLock { $0 = true } }

  private func listen() {
    var connection: PostgresConnection?
    var pause = 0.1
    while !isStopping.withLock({ $0 }) {
      do {
        let current: PostgresConnection
        if let connection {
          current = connection
        } else {
          current = try database.listen()
          connection = current
          pause = 0.1
          changes.tell()
        }
        var descriptor = pollfd(fd: current.socket, events: Int16(POLLIN), revents: 0)
        // On timeout, or a signal.
        guard unsafe poll(&descriptor, 1, 1000) > 0 else { continue }
        // This process has announced its own changes already.
        if try current.notifications().contains(where: { $0 != database.mark }) { changes.tell() }
      } catch {
        connection = nil
        Thread.sleep(forTimeInterval: pause)
        pause = min(5, pause * 2)
      }
    }
  }
}
