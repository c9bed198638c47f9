/// The open connections.
///
/// An idle client with many connections locks no other out: a new one replaces the one that waited longest for its
/// client.
struct ConnectionTable {
  struct Connection {
    var socket: CInt
    var client: UInt64

    /// When the client's next data is due; nil while the server acts.
    var deadline: ContinuousClock.Instant?

    /// Since when a request or collected body is due; nil while answering or streaming.
    var waitingSince: ContinuousClock.Instant?

    var isEnding = false
  }

  private(set) var connections: [UInt: Connection] = [:]
  private var counts: [UInt64: Int] = [:]
  private let limit: Int
  private let addressLimit: Int

  init(limit: Int, addressLimit: Int) {
    self.limit = limit
    self.addressLimit = addressLimit
  }

  /// Adds a connection.
  ///
  /// - Returns: the connection to end for it, or itself if the client's others are being answered.
  mutating func open(
    _ key: UInt, socket: CInt, client: UInt64, isProxy: Bool = false, at now: ContinuousClock.Instant
  ) -> Connection? {
    connections[key] = Connection(socket: socket, client: client, waitingSince: now)
    counts[client, default: 0] += 1
    if !isProxy, counts[client, default: 0] > addressLimit { return end(oldest(of: client) ?? key) }
    let alive = counts.values.reduce(0, +)
    guard alive > limit else { return nil }
    let most = counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key ?? client
    return end(oldest(of: most) ?? oldest(of: nil) ?? key)
  }

  mutating func close(_ key: UInt) {
    guard let connection = connections.removeValue(forKey: key), !connection.isEnding else { return }
    release(connection.client)
  }

  mutating func update(_ key: UInt, _ change: (inout Connection) -> Void) {
    guard var connection = connections[key] else { return }
    change(&connection)
    connections[key] = connection
  }

  /// Ends and returns overdue connections.
  ///
  /// - Parameter pressed: the time for a request with over half of the connections in use.
  mutating func late(at now: ContinuousClock.Instant, pressed: Duration) -> [Connection] {
    let isPressed = counts.values.reduce(0, +) > limit / 2
    let late = connections.filter { _, connection in
      guard !connection.isEnding else { return false }
      if let deadline = connection.deadline, deadline < now { return true }
      guard isPressed, let since = connection.waitingSince else { return false }
      return since + pressed < now
    }
    return late.keys.compactMap { end($0) }
  }

  /// Marks a connection as ending, so that it no longer counts.
  private mutating func end(_ key: UInt) -> Connection? {
    guard var connection = connections[key], !connection.isEnding else { return nil }
    connection.isEnding = true
    connection.deadline = nil
    connections[key] = connection
    release(connection.client)
    return connection
  }

  private mutating func release(_ client: UInt64) {
    let count = counts[client, default: 1] - 1
    counts[client] = count > 0 ? count : nil
  }

  /// The client's connection that waited longest; nil stands for any client.
  private func oldest(of client: UInt64?) -> UInt? {
    let waiting = connections.filter { _, connection in
      !connection.isEnding && connection.waitingSince != nil && (client == nil || connection.client == client)
    }
    return waiting.min { first, second in
      guard let one = first.value.waitingSince, let other = second.value.waitingSince else { return false }
      return one < other
    }?.key
  }
}
