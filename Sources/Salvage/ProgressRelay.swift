internal import Platform

/// Serializes progress calls, and polls for cancellation while SQLite works.
final class ProgressRelay: Sendable {
  typealias Progress = @Sendable (_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool

  private struct State {
    var phase = SalvagePhase.survey
    var done: Int64 = 0
    var total: Int64 = 0
    var isCancelled = false
  }

  private let state = Mutex(State())
  private let progress: Progress

  init(_ progress: @escaping Progress) { self.progress = progress }

  /// Reports progress; returns false if cancelled.
  func tell(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool {
    state.withLock { state in
      (state.phase, state.done, state.total) = (phase, done, total)
      if !progress(phase, done, total) { state.isCancelled = true }
      return !state.isCancelled
    }
  }

  /// Whether the caller cancels; repeats the last report to ask.
  func isCancelled() -> Bool {
    state.withLock { state in
      if !progress(state.phase, state.done, state.total) { state.isCancelled = true }
      return state.isCancelled
    }
  }
}
