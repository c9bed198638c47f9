/// The connections of a server: whose they are, and which of them are waiting for their client.
///
/// A client that opens many and sends nothing locks no other out: a new connection takes the place of the one that has
/// waited longest.
struct ConnectionTable {
  struct Connection {
    var socket: CInt
    var client: UInt64

    /// Until when what its client is to send next must be there; nil where it is the server's turn.
    var deadline: ContinuousClock.Instant?

    /// Since when its client has been expected to send a request, or a body that is collected; nil while one is being answered,
    /// or a stream comes in.
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

  /// Notes a connection.
  ///
  /// - Returns: the connection that is to end for it; the new one itself where every other of its client is being answered.
  mutating func open(
    _ key: UInt, socket: CInt, client: UInt64, isProxy: Bool = false, at now: ContinuousClock.Instant
  ) -> Connection? {
    connections[key] = Connection(socket: socket, client: client, waitingSince: now)
    counts[client, default: 0] += 1
    if !isProxy, counts[client, default: 0] > addressLimit { return end(oldest(of: client) ?? key) }
    let alive = counts.values.reduce(0, +)
    guard alive > limit else { return nil }
    // Of the one who has most; where several have as many, any of them.
    let most = counts.max { ($0.value, $0.key) < ($1.value, $1.key) }?.key ?? client
    return end(oldest(of: most) ?? oldest(of: nil) ?? key)
  }

  mutating func close(_ key: UInt) {
    guard let connection = connections.removeValue(forKey: key), !connection.isEnding else { return }
    release(connection.client)
  }

  /// Changes what is known of a connection.
  mutating func update(_ key: UInt, _ change: (inout Connection) -> Void) {
    guard var connection = connections[key] else { return }
    change(&connection)
    connections[key] = connection
  }

  /// The connections whose client took too long, which end now.
  ///
  /// - Parameter pressed: how long a client may take for a request while more than half of the connections are taken.
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

  /// Notes that a connection is ending; it counts no more.
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

  /// The connection of a client, or of any, that has waited longest for a request.
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
