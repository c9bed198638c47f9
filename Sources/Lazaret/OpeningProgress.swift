/// How far an opening has come.
public struct OpeningProgress: Sendable, Hashable {
  /// What is being done.
  public enum Phase: String, Sendable, CaseIterable {
    /// The store is being looked at.
    case examining

    /// The store is being moved into quarantine.
    case quarantining

    /// A new store is being made, before anything is moved.
    case creating

    /// The store is being migrated: `completed` of `total` steps are done, and `step` is the one that begins.
    case migrating

    /// The store is being opened with SQLite.
    case opening
  }

  /// What is being done now.
  public var phase: Phase

  /// The bytes done, of `total`; of a migration, the steps.
  public var completed: Int64

  /// The bytes in all, or the steps; 0 where they are not known.
  public var total: Int64

  /// The step of a migration, such as `V1 → V2`; nil otherwise.
  public var step: String?

  init(phase: Phase, completed: Int64 = 0, total: Int64 = 0, step: String? = nil) {
    self.phase = phase
    self.completed = completed
    self.total = total
    self.step = step
  }
}

/// Who watches an opening, and may end it.
public struct OpeningObserver: Sendable {
  /// Called now and then, on the thread that opens.
  public var progress: @Sendable (OpeningProgress) -> Void

  /// Asked now and then; true ends the opening with `cancelled`, and leaves the store as it was.
  ///
  /// Asked before each step of a migration; the finished steps are kept for the next opening. Not asked any more once the
  /// store has been replaced.
  public var isCancelled: @Sendable () -> Bool

  /// An observer; without one of its own, the opening ends when the current task is cancelled.
  public init(
    progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { Task.isCancelled }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
  }

  /// Tells how far it is, and stops where nobody wants the result any more.
  func report(
    _ phase: OpeningProgress.Phase, at path: FilePath, completed: Int64 = 0, of total: Int64 = 0
  ) throws {
    progress(OpeningProgress(phase: phase, completed: completed, total: total))
    if isCancelled() { throw LazaretError.cancelled(path) }
  }
}
