internal import Platform
package import Salvage
import SystemPackage

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

/// The observer of an opening, which may cancel it.
package struct OpeningObserver: Sendable {
  /// Called repeatedly on the opening thread.
  var progress: @Sendable (OpeningProgress) -> Void

  /// Polled repeatedly; true ends the opening with `cancelled` and leaves the store unchanged, or whole in quarantine.
  ///
  /// Polled before each migration step, and the next opening keeps finished steps or continues a salvage. Not polled
  /// after another store is installed.
  var isCancelled: @Sendable () -> Bool

  /// Called on its own thread if the background pass finds damage in the open store.
  ///
  /// The app may go on: sound pages stay readable. The next opening checks every page and follows the policy.
  var foundDamage: @Sendable (FoundDamage) -> Void

  /// Creates an observer that by default cancels with the current task.
  package init(
    progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { Task.isCancelled },
    foundDamage: @escaping @Sendable (FoundDamage) -> Void = { _ in }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
    self.foundDamage = foundDamage
  }

  /// Reports progress; throws on cancellation.
  func report(_ phase: OpeningProgress.Phase, at path: FilePath, completed: Int64 = 0, of total: Int64 = 0) throws {
    progress(OpeningProgress(phase: phase, completed: completed, total: total))
    if isCancelled() { throw LazaretError.cancelled(path) }
  }
}

package struct OpeningProgress: Sendable, Hashable {
  package enum Phase: String, Sendable, CaseIterable {
    /// `completed` of `total` pages, if every page is examined.
    case examining

    case quarantining

    /// A new store is made before any move.
    case creating

    /// Missing parts are added on a copy.
    case repairing

    /// `completed` of `total` steps are done; `step` is starting.
    case migrating

    /// `completed` of `total` thousandths, estimated.
    case salvaging

    case installing, opening
  }

  package var phase: Phase

  /// Bytes; pages of an examination, steps of a migration, thousandths of a salvage.
  package var completed: Int64 = 0

  /// In the same unit; 0 if unknown.
  package var total: Int64 = 0

  /// A migration's step, such as `V1 → V2`.
  package var step: String?

  package var salvagePhase: SalvagePhase?

  /// Estimated from the time so far; nil if unknown.
  package var secondsLeft: Double?

  /// The completed share of the phase, from 0 to 1; nil if unknown.
  package var fraction: Double? { total > 0 ? min(1, max(0, Double(completed) / Double(total))) : nil }
}

package final class Cancellation: Sendable {
  private let asked = Mutex(false)

  package var isAsked: Bool { asked.withLock { $0 } }

  func ask() { asked.withLock { $0 = true } }
}

/// Runs work on its own thread, and ends it when the task is cancelled.
///
/// - Throws: `CancellationError` then, `StoreError` on failure.
package func work<Value: Sendable>(_ body: @escaping @Sendable (Cancellation) throws -> Value) async throws -> Value {
  let cancellation = Cancellation()
  return try await withTaskCancellationHandler {
    try await withCheckedThrowingContinuation { continuation in
      WorkThread.start {
        let result = Result { () throws -> Value in
          if cancellation.isAsked { throw CancellationError() }
          return try body(cancellation)
        }
        continuation.resume(with: result.mapError { told($0, cancellation) })
      }
    }
  } onCancel: {
    cancellation.ask()
  }
}

/// Runs short work on the caller's thread, with errors as `StoreError`.
package func told<Value>(_ body: () throws -> Value) throws(StoreError) -> Value {
  do { return try body() } catch { throw StoreError(error) }
}

private func told(_ error: any Error, _ cancellation: Cancellation) -> any Error {
  if error is CancellationError { return error }
  let told = StoreError(error)
  // Each module has its own code for cancelled work.
  return cancellation.isAsked && told.code.hasSuffix("cancelled") ? CancellationError() : told
}
