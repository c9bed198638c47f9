internal import Dispatch
internal import Synchronization

#if canImport(Glibc)
  internal import Glibc
#else
  internal import Darwin
#endif

/// What the threads of a running server share.
final class DaemonContext: Sendable {
  /// A connection whose request is still coming in.
  private struct Connection {
    var socket: CInt
    var deadline: ContinuousClock.Instant?
  }

  private struct State {
    var rules: RequestRules?
    var connections: [UInt: Connection] = [:]
    var sources: [ObjectIdentifier: ChunkSource] = [:]
    var isStopping = false
  }

  let options: ServerOptions
  let handler: @Sendable (Request) -> Response
  let intake: @Sendable (Request, Int64?) -> BodyIntake?
  private let state = Mutex(State())
  private let watchEnds = DispatchSemaphore(value: 0)
  private let watchEnded = DispatchSemaphore(value: 0)

  init(
    _ options: ServerOptions, intake: @escaping @Sendable (Request, Int64?) -> BodyIntake?,
    handler: @escaping @Sendable (Request) -> Response
  ) {
    self.options = options
    self.intake = intake
    self.handler = handler
  }

  /// The rules; nil until the port is known.
  var rules: RequestRules? {
    get { state.withLock(\.rules) }
    set { state.withLock { $0.rules = newValue } }
  }

  // MARK: Slow clients

  /// Notes a connection, whose request must be there in time.
  func open(_ connection: UInt, socket: CInt) {
    let deadline = ContinuousClock.now + .seconds(options.headerSeconds)
    state.withLock { $0.connections[connection] = Connection(socket: socket, deadline: deadline) }
  }

  /// Forgets a connection; its socket is not closed before this returns.
  func close(_ connection: UInt) { state.withLock { _ = $0.connections.removeValue(forKey: connection) } }

  /// Sets within how many seconds a connection's client must have sent what it is to send next; nil for nothing.
  func expect(_ connection: UInt, within seconds: Int?) {
    let deadline = seconds.map { ContinuousClock.now + .seconds($0) }
    state.withLock { $0.connections[connection]?.deadline = deadline }
  }

  /// Looks twice a second for clients that took too long, until `stop`.
  func watch() {
    let thread = DispatchQueue(label: "lazaret.http.watch")
    thread.async {
      while self.watchEnds.wait(timeout: .now() + .milliseconds(500)) == .timedOut {
        let now = ContinuousClock.now
        self.state.withLock { state in
          for (key, connection) in state.connections {
            guard let deadline = connection.deadline, deadline < now else { continue }
            // The library's own thread notices, and closes; under the lock, so that the number is still this socket's.
            _ = shutdown(connection.socket, CInt(SHUT_RDWR))
            state.connections[key]?.deadline = nil
          }
        }
      }
      self.watchEnded.signal()
    }
  }

  // MARK: Streams

  /// Notes a body that is being made; false where the server stops and none is to be begun.
  func begin(_ source: ChunkSource) -> Bool {
    state.withLock { state in
      guard !state.isStopping else { return false }
      state.sources[ObjectIdentifier(source)] = source
      return true
    }
  }

  /// Forgets a body.
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
