internal import Dispatch
internal import Platform

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What the threads of a running server share.
final class DaemonContext: Sendable {
  private struct State {
    var rules: RequestRules?
    var connections: ConnectionTable

    /// The connection of each of the library's threads that has begun to read a request.
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

  /// Notes a connection, whose request must be there in time; another may end for it.
  ///
  /// - Parameter isProxy: whether it is that of a proxy, which has those of many clients.
  func open(_ connection: UInt, socket: CInt, client: UInt64, isProxy: Bool) {
    let now = ContinuousClock.now
    state.withLock { state in
      let ended = state.connections.open(connection, socket: socket, client: client, isProxy: isProxy, at: now)
      state.connections.update(connection) { $0.deadline = now + .seconds(options.headerSeconds) }
      if let ended { Self.cut(ended.socket) }
    }
  }

  /// Forgets a connection; its socket is not closed before this returns.
  func close(_ connection: UInt) {
    state.withLock { state in
      state.connections.close(connection)
      state.threads = state.threads.filter { $0.value != connection }
    }
  }

  /// Sets within how many seconds a connection's client must have sent what it is to send next; nil for nothing.
  ///
  /// - Parameter isRequest: whether that is a request, and no more of one.
  func expect(_ connection: UInt, within seconds: Int?, isRequest: Bool = false) {
    let now = ContinuousClock.now
    state.withLock { state in
      state.connections.update(connection) { known in
        known.deadline = known.isEnding ? nil : seconds.map { now + .seconds($0) }
        known.waitingSince = isRequest ? now : nil
      }
    }
  }

  /// Looks twice a second for clients that took too long, until `stop`.
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

  /// Cuts a connection: the library's own thread notices, and closes.
  ///
  /// Called under the lock, so that the number is still this socket's.
  private static func cut(_ socket: CInt) { _ = shutdown(socket, CInt(SHUT_RDWR)) }

  // MARK: What the library refuses by itself

  /// Notes on which of the library's threads the requests of a connection are read.
  func begin(_ connection: UInt, on thread: UInt) { state.withLock { $0.threads[thread] = connection } }

  /// Answers in place of the library where that is about to refuse a request.
  ///
  /// libmicrohttpd 0.9.75 sends the line and the fields of such an answer twice, and without the fields that every answer
  /// has. So this one is sent whole, and what the library sends then goes nowhere. With TLS there is no answer: only the
  /// library has the keys.
  func refuse(_ status: Status, on thread: UInt) {
    state.withLock { state in
      guard let key = state.threads[thread], let connection = state.connections.connections[key] else { return }
      if options.tls == nil {
        var response = SecurityHeaders.added(to: Refusal(status, "the request is malformed or too large").response)
        response.headers.set("Connection", "close")
        let bytes = response.wholeBytes
        // Where it cannot be sent at once, the client has sent without reading, and gets none.
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

  /// Notes a body that is being made; false where the server stops and none is to be begun.
  func begin(_ source: ChunkSource) -> Bool {
    state.withLock { state in
      guard !state.isStopping else { return false }
      state.sources[ObjectIdentifier(source)] = source
      return true
    }
  }

  func end(_ source: ChunkSource) { state.withLock { _ = $0.sources.removeValue(forKey: ObjectIdentifier(source)) } }

  /// Ends the watch and every body that is being made.
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
