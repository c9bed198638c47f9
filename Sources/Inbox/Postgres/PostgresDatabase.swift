internal import Dispatch
internal import Foundation
package import Platform

/// An inbox's PostgreSQL database for many machines.
///
/// Calls are thread-safe, one transaction each. One that did not start or was undone is retried for a few seconds, as
/// when a server restarts; after a connection lost during commit, only an idempotent one.
package final class PostgresDatabase: Sendable {
  private let pool: PostgresPool

  /// Identifies this process's own notifications.
  let mark: String

  static let channel = "lazaret_inbox"

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
    do {
      try pool.withConnection { try PostgresSchema.bring($0) }
    } catch {
      throw Self.told(error, operation)
    }
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
