import Backup
import Logging
import Migration
import PersistentStore
import Platform
package import Salvage
import SystemPackage

/// The migration of a store to the app's version, as its opening wants it.
///
/// A packed backup is taken before where the home's policy wants one, and the migration is tried again as often as the
/// app's says.
struct StoreMigration {
  enum Outcome {
    /// The store is of the app's version now, and its original is kept; the events say so.
    case migrated(from: FilePath, [OpeningEvent])

    /// Another process has migrated it meanwhile; the events are those of the backup.
    case notNeeded([OpeningEvent])

    /// It failed for a reason in the store or in the models; the store is as it was.
    case failed(MigrationError)
  }

  let coordinator: StoreCoordinator
  let migrator: Migrator
  let place: StoreFileSet
  let examination: Examination

  /// Looks at the store once more before it is migrated.
  let examiner: PatientExaminer

  /// The store, as the app names it.
  let path: FilePath
  let observer: OpeningObserver

  private var surroundings: Surroundings { coordinator.surroundings }

  /// Migrates the store.
  ///
  /// - Throws: `LazaretError` where the surroundings are at fault or it was cancelled; finished steps are kept.
  func run() throws -> Outcome {
    // What cannot be looked at is told by the repair itself.
    if examination.verdict == .repairable, (try? migrator.hasSomethingToRepair(place.main)) == false {
      return .notNeeded([])
    }
    let backup = try backUp()
    var migrator = migrator
    let (examiner, place) = (examiner, place)
    migrator.isStillNeeded = {
      let now = try examiner.examine(place, countsRecords: false)
      // A store that cannot be looked at just now has not been migrated by another process for that.
      if now.verdict == .unavailable { throw LazaretError(.unavailable, now, path: place.main) }
      return now.verdict == .outdated || now.verdict == .repairable
    }
    var retries = max(0, coordinator.policy.migrationRetries)
    while true {
      do throws(MigrationError) {
        let result =
          examination.verdict == .repairable
          ? try migrator.repair(place.main, options: options) : try migrator.migrate(place.main, options: options)
        guard !result.isNothing, let original = result.backup else { return .notNeeded(backup) }
        return .migrated(from: original, backup + OpeningEvent.migrated(result, at: surroundings.now()))
      } catch {
        if error.kind == .cancelled { throw LazaretError.cancelled(path) }
        // What becomes of a store that is not there any more is not for its migration to say.
        if error.fileError?.kind == .notFound, error.path == place.main { throw error }
        if error.isEnvironmental { throw LazaretError(.unavailable, error, path: path, examination: examination) }
        guard retries > 0, !error.isDecidedByModels else { return .failed(error) }
        retries -= 1
        coordinator.logger.notice("migrating again", metadata: ["code": "\(error.code)"])
      }
    }
  }

  /// What is done to the store, in a word.
  private var change: String { examination.verdict == .repairable ? "repaired" : "migrated" }

  /// Takes a packed backup of the store, where the home's policy wants one.
  private func backUp() throws -> [OpeningEvent] {
    let backups = Backups(home: coordinator.home ?? place.folder, surroundings: surroundings)
    do {
      guard
        let backup = try backups.backUp(place, before: .beforeMigration, appVersion: coordinator.appVersion)
      else { return [] }
      return [
        OpeningEvent(
          .backup, at: surroundings.now(), path: try backups.place(of: place.main).path,
          words: "A backup of the store was taken before it was \(change), and proven.", id: backup.id.description)
      ]
    } catch let error as BackupError {
      // An app that wants a backup first does not want to do without because the disk is full.
      var told = LazaretError(.unavailable, because: error, path: path)
      told.examination = examination
      throw told
    }
  }

  private var options: Migrator.Options {
    var options = coordinator.migration
    options.version = nil
    options.output = nil
    options.home = coordinator.home ?? coordinator.migration.home
    options.isRecorded = true
    options.whenMigrationLoses = coordinator.policy.whenMigrationLoses
    options.repair = coordinator.policy.whenRepairable == .keep ? .nothing : .structure
    let (own, observer) = (coordinator.migration.progress, observer)
    let phase: OpeningProgress.Phase = examination.verdict == .repairable ? .repairing : .migrating
    options.progress = { step, number, count in
      observer.progress(
        OpeningProgress(phase: phase, completed: Int64(number - 1), total: Int64(count), step: step))
      return !observer.isCancelled() && own(step, number, count)
    }
    let ownEnd = coordinator.migration.isCancelled
    options.isCancelled = { observer.isCancelled() || ownEnd?() == true }
    return options
  }
}

/// How a store that is about to be opened has come to its place.
enum StoreOrigin {
  case found

  /// This opening has migrated it from an original, which is kept; the events count once the store is open.
  case migrated(from: FilePath, [OpeningEvent])

  /// This opening has put it there: what was salvaged, or an empty store.
  case installed

  /// What is told of it once it is open.
  var events: [OpeningEvent] {
    if case .migrated(_, let events) = self { events } else { [] }
  }

  /// Whether this opening has put it there, so that nothing is known of its past.
  var isInstalled: Bool {
    if case .installed = self { true } else { false }
  }
}

/// Who watches an opening, and may end it.
package struct OpeningObserver: Sendable {
  /// Called now and then, on the thread that opens.
  package var progress: @Sendable (OpeningProgress) -> Void

  /// Asked now and then; true ends the opening with `cancelled`, and leaves the store as it was, or whole in quarantine.
  ///
  /// Asked before each step of a migration; the finished steps are kept for the next opening. During a salvage the store is in
  /// quarantine already, and the next opening goes on with its salvage. Not asked any more once another store is in its
  /// place.
  package var isCancelled: @Sendable () -> Bool

  /// Called after the opening, on a thread of its own, where the background pass finds damage in the store that is open.
  ///
  /// The app goes on with the store as long as that does it good: what is in sound pages can be read. The next opening looks at
  /// every page, and does what the policy says.
  package var foundDamage: @Sendable (FoundDamage) -> Void

  /// An observer; without one of its own, the opening ends when the current task is cancelled.
  package init(
    progress: @escaping @Sendable (OpeningProgress) -> Void = { _ in },
    isCancelled: @escaping @Sendable () -> Bool = { Task.isCancelled },
    foundDamage: @escaping @Sendable (FoundDamage) -> Void = { _ in }
  ) {
    self.progress = progress
    self.isCancelled = isCancelled
    self.foundDamage = foundDamage
  }

  /// Tells how far it is, and stops where the result is not wanted any more.
  func report(
    _ phase: OpeningProgress.Phase, at path: FilePath, completed: Int64 = 0, of total: Int64 = 0
  ) throws {
    progress(OpeningProgress(phase: phase, completed: completed, total: total))
    if isCancelled() { throw LazaretError.cancelled(path) }
  }
}

/// How far an opening has come.
package struct OpeningProgress: Sendable, Hashable {
  /// What is being done.
  package enum Phase: String, Sendable, CaseIterable {
    /// The store is being looked at: `completed` of `total` pages, where every page is.
    case examining

    /// The store is being moved into quarantine.
    case quarantining

    /// A new store is being made, before anything is moved.
    case creating

    /// What the store lacks of its own model is being added on a copy.
    case repairing

    /// The store is being migrated: `completed` of `total` steps are done, and `step` is the one that begins.
    case migrating

    /// The quarantined store is being salvaged: `completed` of `total` thousandths are done, as far as that can be told.
    case salvaging

    /// A copy of the salvaged store is being put into the store's place.
    case installing

    /// The store is being opened with SQLite.
    case opening
  }

  /// What is being done now.
  package var phase: Phase

  /// The bytes done, of `total`; of a look at the store, pages; of a migration, the steps; of a salvage, thousandths.
  package var completed: Int64 = 0

  /// The bytes in all, or the pages, the steps, or a thousand; 0 where they are not known.
  package var total: Int64 = 0

  /// The step of a migration, such as `V1 → V2`; nil otherwise.
  package var step: String?

  /// What a salvage is doing; nil otherwise.
  package var salvagePhase: SalvagePhase?

  /// How long it will take yet, in seconds, by how long it has taken so far; nil where that cannot be told.
  package var secondsLeft: Double?

  /// How much of the phase is done, from 0 to 1; nil where that cannot be told.
  package var fraction: Double? { total > 0 ? min(1, max(0, Double(completed) / Double(total))) : nil }
}
