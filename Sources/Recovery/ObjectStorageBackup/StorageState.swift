import Backup
import Compatibility

/// What a place knows of its own process: the backups that it writes, and how long its lock holds.
final class StorageState: Sendable {
  private let begun = Mutex<Set<BackupIdentifier>>([])
  private let lockedUntil = Mutex<ContinuousClock.Instant?>(nil)

  /// Whether it is the first file of a backup that is begun.
  func begins(_ id: BackupIdentifier) -> Bool { begun.withLock { $0.insert(id).inserted } }

  /// Takes down that a backup is there, or given up.
  func ends(_ id: BackupIdentifier) { begun.withLock { _ = $0.remove(id) } }

  let ahead = ReadAhead()

  private let looks = Mutex(false)

  /// Takes down whether a file is looked for before it is written, since the server passes over the condition.
  func looksFirst(_ does: Bool) { looks.withLock { $0 = does } }

  /// Whether a file is looked for before it is written.
  var looksFirst: Bool { looks.withLock { $0 } }

  /// Takes down how long the lock holds; nil for no lock.
  func holds(until moment: ContinuousClock.Instant?) { lockedUntil.withLock { $0 = moment } }

  /// Whether a lock was taken that holds no more, so that another process may have it.
  var hasLostLock: Bool { lockedUntil.withLock { $0.map { $0 < .now } ?? false } }
}
