package import StoreFiles

/// When the next backup by itself is due.
package struct BackupSchedule: Sendable, Hashable {
  /// The policy.
  package var policy: BackupPolicy

  /// A schedule by a policy.
  package init(_ policy: BackupPolicy) { self.policy = policy }

  /// Whether a backup is due.
  ///
  /// A backup that is dated in the future tells nothing, for a clock is or was wrong; without another one a backup is due.
  ///
  /// - Parameters:
  ///   - backups: the dates of the backups there are.
  ///   - openings: how many times the store was opened since the last backup, this one included.
  ///   - now: what the clock says.
  package func isDue(_ backups: [Timestamp], openings: Int, now: Timestamp) -> Bool {
    if let every = policy.everyOpenings, openings >= every { return true }
    guard let hours = policy.everyHours else { return false }
    // Clocks of several machines differ by some minutes.
    let latest = backups.filter { $0.secondsSince1970 <= now.secondsSince1970 &+ 300 }.max()
    guard let latest else { return true }
    return now.secondsSince1970 &- latest.secondsSince1970 >= Int64(hours) * 3600
  }
}
