import Backup
import Compatibility

/// Passes on the progress of work that may begin anew in another way: in no phase does what is done become less.
final class RisingProgress: Sendable {
  private let progress: BackupProgress
  private let highest = Mutex<[BackupPhase: Share]>([:])

  private struct Share {
    var done: Int64
    var total: Int64
    var part: Double { total > 0 ? Double(done) / Double(total) : 0 }
  }

  /// Progress that is passed on to a function.
  init(_ progress: @escaping BackupProgress) { self.progress = progress }

  /// Passes on what is done, or what was before where that was more; false ends the work.
  func report(_ phase: BackupPhase, _ done: Int64, _ total: Int64) -> Bool {
    let share = highest.withLock { highest in
      let (before, now) = (highest[phase], Share(done: done, total: total))
      let share = if let before, before.part > now.part { before } else { now }
      highest[phase] = share
      return share
    }
    return progress(phase, share.done, share.total)
  }
}
