internal import Compatibility
internal import Dispatch
internal import StoreFiles

/// The making of a side, on a thread of its own.
final class SidePreparation: Sendable {
  struct State {
    var phase = "reading"
    var done: Int64 = 0
    var total: Int64 = 0
    var result: Result<OpenedSide, any Error>?
    var ended: Timestamp?
  }

  private let state = Mutex(State())
  private let group = DispatchGroup()

  init() { group.enter() }

  var snapshot: State { state.withLock { $0 } }

  func tell(_ phase: String, _ done: Int64, _ total: Int64) {
    state.withLock { state in
      state.phase = phase
      state.done = done
      state.total = total
    }
  }

  func finish(_ result: Result<OpenedSide, any Error>, at time: Timestamp) {
    state.withLock { state in
      state.result = result
      state.ended = time
    }
    group.leave()
  }

  /// Waits for the end, but no longer than so many milliseconds.
  func wait(milliseconds: Int) { _ = group.wait(timeout: .now() + .milliseconds(milliseconds)) }
}
