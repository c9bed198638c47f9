internal import Dispatch
internal import Foundation
package import Platform

/// The database of an inbox on a PostgreSQL server: what it knows and what is to be done, for many machines.
///
/// All calls may come from any thread. Each is one transaction. One that the server did not begin, or undid, is begun again for a
/// few seconds, as when a server restarts; where the connection is lost while a transaction is being committed, only a
/// call that may be made twice is made again.
package final class PostgresDatabase: Sendable {
  private let pool: PostgresPool

  /// By what this process knows its own notifications.
  let mark: String

  static let channel = "lazaret_inbox"

  /// Opens the database, and brings its schema to this version where it is earlier.
  ///
  /// - Parameters:
  ///   - connections: the most connections at a time.
  ///   - clock: this machine's, which is held against the server's.
  /// - Throws: `inbox-records` where there is no libpq, no server, or a schema of a later version.
  package init(
    _ address: PostgresAddress, connections: Int = 8,
    clock: @escaping @Sendable () -> Timestamp = Surroundings.machine.now
  ) throws(InboxError) {
    pool = try PostgresPool(address, connections: connections, clock: clock)
    mark = "\(UniversalIdentifier.random())"
    let operation = "open the records of the inbox"
    do {
      try pool.withConnection { try PostgresSchema.bring($0) }
    } catch {
      throw Self.told(error, operation)
    }
  }

  /// Reads, as of one moment.
  func read<Value>(_ operation: String, _ body: (PostgresConnection) throws -> Value) throws(InboxError) -> Value {
    try attempt(operation, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", isRepeatable: true, body)
  }

  /// Reads by one statement, which is as of one moment by itself.
  func readOnce<Value>(_ operation: String, _ body: (PostgresConnection) throws -> Value) throws(InboxError) -> Value {
    try attempt(operation, nil, isRepeatable: true, body)
  }

  /// Writes, wholly or not at all.
  ///
  /// - Parameters:
  ///   - isRepeatable: whether doing it twice is as doing it once.
  ///   - tells: whether those who listen are told of it.
  ///   - isLasting: whether it is on the server's disk when the call ends; else a crash of the server may undo it.
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

  /// Tells those who listen, once the transaction is carried out.
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
            // Where it cannot be undone the connection is closed, which undoes it.
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

  /// A connection of its own that hears of changes.
  func listen() throws(PostgresFailure) -> PostgresConnection {
    let connection = try pool.open()
    try connection.run("LISTEN \(Self.channel)")
    return connection
  }
}

/// A bounded number of connections, lent to one thread each.
final class PostgresPool: Sendable {
  private let address: PostgresAddress
  private let library: PostgresLibrary
  private let clock: @Sendable () -> Timestamp
  private let idle = Mutex<[PostgresConnection]>([])
  private let seats: DispatchSemaphore

  /// A pool that has no connection yet.
  init(_ address: PostgresAddress, connections: Int, clock: @escaping @Sendable () -> Timestamp) throws(InboxError) {
    self.address = address
    self.clock = clock
    library = try PostgresLibrary.shared()
    try address.check(by: library)
    seats = DispatchSemaphore(value: max(1, connections))
  }

  private static let patience = DispatchTimeInterval.seconds(15)

  /// Lends a connection; one that is lost or in the middle of something afterwards is closed.
  func withConnection<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    guard seats.wait(timeout: .now() + Self.patience) == .success else { throw PostgresFailure(.busy) }
    defer { seats.signal() }
    let connection = try idle.withLock { $0.popLast() } ?? open()
    defer { if connection.isIdle { idle.withLock { $0.append(connection) } } }
    return try body(connection)
  }

  /// A connection of its own, which is not counted.
  func open() throws(PostgresFailure) -> PostgresConnection { try PostgresConnection(address, library, clock: clock) }

  /// Closes the connections that are not lent: where one is lost, the others mostly are.
  func closeIdle() {
    // They close outside of the lock.
    let connections = idle.withLock { idle in
      let connections = idle
      idle = []
      return connections
    }
    _ = connections.count
  }
}
