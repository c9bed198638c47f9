internal import Platform

/// Passes on how far a salvage is, one call at a time, and asks again whether it is to end while SQLite works.
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

  /// Tells how far it is; false where it is to end.
  func tell(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) -> Bool {
    state.withLock { state in
      (state.phase, state.done, state.total) = (phase, done, total)
      if !progress(phase, done, total) { state.isCancelled = true }
      return !state.isCancelled
    }
  }

  /// Whether it is to end; asks by telling once more what was told last.
  func isCancelled() -> Bool {
    state.withLock { state in
      if !progress(state.phase, state.done, state.total) { state.isCancelled = true }
      return state.isCancelled
    }
  }
}
