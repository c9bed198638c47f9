internal import Dispatch
internal import Platform

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// A running server's shared state.
final class DaemonContext: Sendable {
  private struct State {
    var rules: RequestRules?
    var connections: ConnectionTable

    /// The connection that each thread reads.
    var threads: [UInt: UInt] = [:]
    var sources: [ObjectIdentifier: ChunkSource] = [:]
    var isStopping = false
  }

  let options: ServerOptions
  let proxies: TrustedProxies
  let handler: @Sendable (Request) -> Response
  let intake: @Sendable (Request, Int64?) -> BodyIntake?
  private let state: Mutex<State>
  private let watchEnds = DispatchSemaphore(value: 0)
  private let watchEnded = DispatchSemaphore(value: 0)

  init(
    _ options: ServerOptions, intake: @escaping @Sendable (Request, Int64?) -> BodyIntake?,
    handler: @escaping @Sendable (Request) -> Response
  ) {
    self.options = options
    proxies = TrustedProxies(addresses: options.proxies)
    let table = ConnectionTable(limit: options.connectionLimit, addressLimit: options.addressLimit)
    state = Mutex(State(connections: table))
    self.intake = intake
    self.handler = handler
  }

  /// The rules; nil until the port is known.
  var rules: RequestRules? {
    get { state.withLock(\.rules) }
    set { state.withLock { $0.rules = newValue } }
  }

  // MARK: Slow clients

  /// Adds a connection with a deadline, perhaps ending another.
  ///
  /// - Parameter isProxy: exempts a proxy from the address limit.
  func open(_ connection: UInt, socket: CInt, client: UInt64, isProxy: Bool) {
    let now = ContinuousClock.now
    state.withLock { state in
      let ended = state.connections.open(connection, socket: socket, client: client, isProxy: isProxy, at: now)
      state.connections.update(connection) { $0.deadline = now + .seconds(options.headerSeconds) }
      if let ended { Self.cut(ended.socket) }
    }
  }

  /// Removes a connection; its socket stays open until this returns.
  func close(_ connection: UInt) {
    state.withLock { state in
      state.connections.close(connection)
      state.threads = state.threads.filter { $0.value != connection }
    }
  }

  /// Sets or clears the deadline of the client's next data.
  ///
  /// - Parameter isRequest: whether a request or collected body is due.
  func expect(_ connection: UInt, within seconds: Int?, isRequest: Bool = false) {
    let now = ContinuousClock.now
    state.withLock { state in
      state.connections.update(connection) { known in
        known.deadline = known.isEnding ? nil : seconds.map { now + .seconds($0) }
        known.waitingSince = isRequest ? now : nil
      }
    }
  }

  /// Ends overdue connections twice a second.
  func watch() {
    let thread = DispatchQueue(label: "lazaret.http.watch")
    thread.async {
      while self.watchEnds.wait(timeout: .now() + .milliseconds(500)) == .timedOut {
        self.state.withLock { state in
          let pressed = Duration.seconds(self.options.pressedHeaderSeconds)
          for late in state.connections.late(at: .now, pressed: pressed) { Self.cut(late.socket) }
        }
      }
      self.watchEnded.signal()
    }
  }

  /// libmicrohttpd's thread then closes the socket.
  ///
  /// The caller holds the lock, so that the descriptor is still this connection's.
  private static func cut(_ socket: CInt) { _ = shutdown(socket, CInt(SHUT_RDWR)) }

  // MARK: What the library refuses by itself

  func begin(_ connection: UInt, on thread: UInt) { state.withLock { $0.threads[thread] = connection } }

  /// Answers in place of a libmicrohttpd refusal.
  ///
  /// Version 0.9.75 sends that header twice and without the security fields, so it is discarded. With TLS there is no
  /// answer: only the library has the keys.
  func refuse(_ status: Status, on thread: UInt) {
    state.withLock { state in
      guard let key = state.threads[thread], let connection = state.connections.connections[key] else { return }
      if options.tls == nil {
        var response = SecurityHeaders.added(to: Refusal(status, "the request is malformed or too large").response)
        response.headers.set("Connection", "close")
        let bytes = response.wholeBytes
        // A client that does not read gets no answer, rather than blocking this thread.
        _ = unsafe bytes.withUnsafeBytes { buffer in
          unsafe send(connection.socket, buffer.baseAddress, buffer.count, Self.sendFlags)
        }
      }
      _ = shutdown(connection.socket, CInt(SHUT_WR))
    }
  }

  #if canImport(Glibc)
    private static let sendFlags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
  #else
    private static let sendFlags = MSG_DONTWAIT
  #endif

  // MARK: Streams

  /// Registers a generated body; false if the server is stopping.
  func begin(_ source: ChunkSource) -> Bool {
    state.withLock { state in
      guard !state.isStopping else { return false }
      state.sources[ObjectIdentifier(source)] = source
      return true
    }
  }

  func end(_ source: ChunkSource) { state.withLock { _ = $0.sources.removeValue(forKey: ObjectIdentifier(source)) } }

  func stop() {
    let sources = state.withLock { state in
      state.isStopping = true
      return Array(state.sources.values)
    }
    for source in sources { source.cancel() }
    watchEnds.signal()
    watchEnded.wait()
  }
}

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
