internal import Compatibility
internal import Dispatch
internal import Inbox
internal import StoreFiles

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
