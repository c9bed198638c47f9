import Backup
import Lazaret
import Platform
import SupportBundle

/// Reports a job's progress and receives its cancellation.
package final class JobObserver: Sendable {
  struct Progress: Sendable, Hashable {
    var phase: String

    /// The fraction done, from 0 to 1; nil if unknown.
    var fraction: Double?

    var secondsLeft: Double?
  }

  private struct State {
    var listener: (@Sendable (Progress) -> Void)?
    var highest = 0.0
  }

  private let state = Mutex(State())
  private let cancelled = Mutex(false)
  private let start = ContinuousClock.now

  var listener: (@Sendable (Progress) -> Void)? {
    get { state.withLock(\.listener) }
    set { state.withLock { $0.listener = newValue } }
  }

  package var isCancelled: Bool { cancelled.withLock { $0 } }

  func cancel() { cancelled.withLock { $0 = true } }

  /// Reports a fraction that never shrinks; the time left is estimated by default.
  package func report(_ phase: String, _ fraction: Double?, secondsLeft: Double? = nil) {
    let (listener, share) = state.withLock { state in
      if let fraction { state.highest = max(state.highest, min(1, max(0, fraction))) }
      return (state.listener, fraction == nil ? nil : state.highest)
    }
    let elapsed = start.duration(to: .now) / .seconds(1)
    let left = share.flatMap { elapsed > 0.5 && $0 > 0.03 ? elapsed * (1 - $0) / $0 : nil }
    listener?(Progress(phase: phase, fraction: share, secondsLeft: secondsLeft ?? left))
  }

  /// The observer for quarantine actions.
  var opening: OpeningObserver {
    OpeningObserver { progress in
      let phase = progress.salvagePhase.map { Words.salvage($0) } ?? progress.phase.rawValue
      self.report(phase, progress.fraction, secondsLeft: progress.secondsLeft)
    } isCancelled: {
      self.isCancelled
    }
  }

  /// - Parameter shares: each phase's share of the whole.
  func backup(_ shares: [(phase: BackupPhase, length: Double)]) -> BackupProgress {
    progress(shares) { Words.backup($0) }
  }

  private func progress<Phase: Equatable & Sendable>(
    _ shares: [(phase: Phase, length: Double)], _ words: @escaping @Sendable (Phase) -> String
  ) -> @Sendable (_ phase: Phase, _ done: Int64, _ total: Int64) -> Bool {
    { phase, done, total in
      var start = 0.0
      for share in shares {
        if share.phase == phase {
          let part = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
          self.report(words(phase), start + part * share.length)
          break
        }
        start += share.length
      }
      return !self.isCancelled
    }
  }

  /// - Parameter writes: whether the bundle is written rather than prepared.
  func export(writes: Bool) -> ExportProgress {
    progress(
      writes
        ? [(.packing, 1)]
        : [(.copying, 0.05), (.examining, 0.1), (.analysing, 0.25), (.scrubbing, 0.4), (.checking, 0.2)]
    ) { (phase: ExportPhase) in phase.words }
  }
}
