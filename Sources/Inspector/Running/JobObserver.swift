import Backup
import Lazaret
import Platform
import SupportBundle

/// Through which a job tells how far it is, and learns that it is not wanted any more.
package final class JobObserver: Sendable {
  /// How far a job is.
  package struct Progress: Sendable, Hashable {
    /// What is being done, in a word or two.
    package var phase: String

    /// How much of the whole is done, from 0 to 1; nil where that cannot be told.
    package var fraction: Double?

    /// How long it will take yet; nil where that cannot be told.
    package var secondsLeft: Double?
  }

  private struct State {
    var listener: (@Sendable (Progress) -> Void)?
    var highest = 0.0
  }

  private let state = Mutex(State())
  private let cancelled = Mutex(false)
  private let start = ContinuousClock.now

  /// What is told of each report.
  var listener: (@Sendable (Progress) -> Void)? {
    get { state.withLock(\.listener) }
    set { state.withLock { $0.listener = newValue } }
  }

  /// Whether the job is to end.
  package var isCancelled: Bool { cancelled.withLock { $0 } }

  /// Asks the job to end.
  func cancel() { cancelled.withLock { $0 = true } }

  /// Tells how far it is: a share of the whole that never shrinks; the time left is reckoned from it unless it is given.
  package func report(_ phase: String, _ fraction: Double?, secondsLeft: Double? = nil) {
    let (listener, share) = state.withLock { state in
      if let fraction { state.highest = max(state.highest, min(1, max(0, fraction))) }
      return (state.listener, fraction == nil ? nil : state.highest)
    }
    let elapsed = start.duration(to: .now) / .seconds(1)
    let left = share.flatMap { elapsed > 0.5 && $0 > 0.03 ? elapsed * (1 - $0) / $0 : nil }
    listener?(Progress(phase: phase, fraction: share, secondsLeft: secondsLeft ?? left))
  }

  /// An observer for the main flow, and for what is done with quarantined stores.
  var opening: OpeningObserver {
    OpeningObserver { progress in
      let phase = progress.salvagePhase.map { Words.salvage($0) } ?? progress.phase.rawValue
      self.report(phase, progress.fraction, secondsLeft: progress.secondsLeft)
    } isCancelled: {
      self.isCancelled
    }
  }

  /// A watcher of what is done with backups.
  ///
  /// - Parameter shares: the phases that there are, with what each takes of the whole.
  func backup(_ shares: [(phase: BackupPhase, length: Double)]) -> BackupProgress {
    { phase, done, total in
      var start = 0.0
      for share in shares {
        if share.phase == phase {
          let part = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
          self.report(Words.backup(phase), start + part * share.length)
          break
        }
        start += share.length
      }
      return !self.isCancelled
    }
  }

  /// A watcher of an export.
  ///
  /// - Parameter writes: whether the bundle is being written; else it is made ready.
  func export(writes: Bool) -> ExportProgress {
    let shares: [(ExportPhase, Double)] =
      writes
      ? [(.packing, 1)]
      : [(.copying, 0.05), (.examining, 0.1), (.analysing, 0.25), (.scrubbing, 0.4), (.checking, 0.2)]
    return { phase, done, total in
      var start = 0.0
      for (known, length) in shares {
        if known == phase {
          let part = total > 0 ? min(1, max(0, Double(done) / Double(total))) : 0
          self.report(phase.words, start + part * length)
          break
        }
        start += length
      }
      return !self.isCancelled
    }
  }
}
