internal import Backup

/// How far a piece of work on a store has come.
public struct StoreProgress: Sendable, Hashable {
  /// Called now and then, on the thread that does the work.
  public typealias Handler = @Sendable (StoreProgress) -> Void

  /// What is being done.
  public enum Phase: String, Sendable, CaseIterable {
    /// The store is being looked at.
    case examining

    /// The store is being moved into quarantine.
    case quarantining

    /// A new store is being made.
    case creating

    /// What the store lacks of its own model is being added, on a copy.
    case repairing

    /// The store is being migrated, on a copy; ``StoreProgress/step`` says by which step.
    case migrating

    /// Records are being recovered.
    case salvaging

    /// A store is being put into its place.
    case installing

    /// The store is being opened.
    case opening

    /// The pages that changed since the last backup are being looked for.
    case comparing

    /// A backup is being packed.
    case packing

    /// The large values beside the store are being packed.
    case externalData = "external-data"

    /// What was written is being read back.
    case proving

    /// A backup is being unpacked.
    case unpacking

    /// A restored store is being checked.
    case checking

    /// A bundle for support is being made.
    case exporting
  }

  /// What is being done now.
  public let phase: Phase

  /// How much of the phase is done, from 0 to 1; nil where that cannot be told.
  public let fraction: Double?

  /// The step of a migration, such as `V1 → V2`, or the part of an export; nil otherwise.
  public let step: String?

  /// How long it will take yet, by how long it has taken so far; nil where that cannot be told.
  public let timeLeft: Duration?

  /// A report.
  package init(_ phase: Phase, done: Int64 = 0, of total: Int64 = 0, step: String? = nil, timeLeft: Duration? = nil) {
    self.phase = phase
    fraction = total > 0 ? min(1, max(0, Double(done) / Double(total))) : nil
    self.step = step
    self.timeLeft = timeLeft
  }
}

extension StoreProgress {
  /// How far an opening has come.
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

  /// How far a backup or a restore has come.
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
  /// Tells the app of an opening, and ends it when the app's task is cancelled.
  init(
    _ progress: @escaping StoreProgress.Handler, _ cancellation: Cancellation,
    foundDamage: @escaping @Sendable (FoundDamage) -> Void = { _ in }
  ) {
    self.init(
      progress: { progress(StoreProgress($0)) }, isCancelled: { cancellation.isAsked }, foundDamage: foundDamage)
  }
}
