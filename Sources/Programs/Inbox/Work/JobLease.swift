internal import Compatibility

/// How long a worker may believe that a job is its own.
final class JobLease: Sendable {
  private struct State {
    var ends: Int64
    var isLost = false
  }

  private let state: Mutex<State>

  /// - Parameter ends: in seconds since 1970.
  init(until ends: Int64) { state = Mutex(State(ends: ends)) }

  /// Until when it holds, in seconds since 1970.
  var ends: Int64 { state.withLock { $0.ends } }

  /// Whether another may have the job.
  var isLost: Bool { state.withLock { $0.isLost } }

  /// It was gone on with.
  func extend(until ends: Int64) { state.withLock { $0.ends = ends } }

  /// Another may have the job; it never comes back.
  func lose() { state.withLock { $0.isLost = true } }
}
