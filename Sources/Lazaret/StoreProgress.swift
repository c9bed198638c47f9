internal import Backup

/// The progress of work on a store.
public struct StoreProgress: Sendable, Hashable {
  /// Called repeatedly on the working thread.
  public typealias Handler = @Sendable (StoreProgress) -> Void

  /// The kind of work.
  public enum Phase: String, Sendable, CaseIterable {
    /// Examining the store.
    case examining

    /// Moving the store into quarantine.
    case quarantining

    /// Making a new store.
    case creating

    /// Adding missing parts on a copy.
    case repairing

    /// Migrating on a copy; see ``StoreProgress/step``.
    case migrating

    /// Recovering records.
    case salvaging

    /// Installing a store.
    case installing

    /// Opening the store.
    case opening

    /// Searching pages changed since the last backup.
    case comparing

    /// Packing a backup.
    case packing

    /// Packing external large values.
    case externalData = "external-data"

    /// Reading the backup back.
    case proving

    /// Unpacking a backup.
    case unpacking

    /// Checking a restored store.
    case checking

    /// Making a support bundle.
    case exporting
  }

  /// The current work.
  public let phase: Phase

  /// From 0 to 1; nil if unknown.
  public let fraction: Double?

  /// A migration's step, such as `V1 → V2`, or an export's part.
  public let step: String?

  /// Estimated from the time so far.
  public let timeLeft: Duration?

  package init(_ phase: Phase, done: Int64 = 0, of total: Int64 = 0, step: String? = nil, timeLeft: Duration? = nil) {
    self.phase = phase
    fraction = total > 0 ? min(1, max(0, Double(done) / Double(total))) : nil
    self.step = step
    self.timeLeft = timeLeft
  }
}

extension StoreProgress {
  init(_ progress: OpeningProgress) {
    let phase: Phase =
      switch progress.phase {
      case .examining: .examining
      case .quarantining: .quarantining
      case .creating: .creating
      case .repairing: .repairing
      case .migrating: .migrating
      case .salvaging: .salvaging
      case .installing: .installing
      case .opening: .opening
      }
    self.init(
      phase, done: progress.completed, of: progress.total, step: progress.step,
      timeLeft: progress.secondsLeft.map { .seconds($0) })
  }

  init(_ phase: BackupPhase, _ done: Int64, _ total: Int64) {
    let phase: Phase =
      switch phase {
      case .comparing: .comparing
      case .packing: .packing
      case .externalData: .externalData
      case .proving: .proving
      case .unpacking: .unpacking
      case .checking: .checking
      }
    self.init(phase, done: done, of: total)
  }
}

extension OpeningObserver {
  /// Creates an observer that reports to the app and cancels with its task.
  init(
    _ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation,
    foundDamage: @escaping @Sendable (FoundDamage) -> Void = { _ in }
  ) {
    self.init(
      progress: { progress(StoreProgress($0)) }, isCancelled: { cancellation.isAsked }, foundDamage: foundDamage)
  }
}
