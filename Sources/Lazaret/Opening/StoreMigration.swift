import Backup
import Logging
import Migration
import PersistentStore
import Platform
import SystemPackage

/// The migration of a store during its opening, with a packed backup first if the home's policy wants one.
struct StoreMigration {
  enum Outcome {
    /// The original is kept.
    case migrated(from: FilePath, [OpeningEvent])

    /// Another process migrated it; the events are the backup's.
    case notNeeded([OpeningEvent])

    /// The store or the models are at fault; the store is unchanged.
    case failed(MigrationError)
  }

  let coordinator: StoreCoordinator
  let migrator: Migrator
  let place: StoreFileSet
  let examination: Examination

  /// Examines the store again before the migration.
  let examiner: RetryingExaminer

  let path: FilePath
  let observer: OpeningObserver

  private var surroundings: Surroundings { coordinator.surroundings }

  /// Migrates the store.
  ///
  /// - Throws: `LazaretError` on a failure of the environment or cancellation; finished steps are kept.
  func run() throws -> Outcome {
    // The repair itself reports a failed examination.
    if examination.verdict == .repairable, (try? migrator.hasSomethingToRepair(place.main)) == false {
      return .notNeeded([])
    }
    let backup = try backUp()
    var migrator = migrator
    let (examiner, place) = (examiner, place)
    migrator.isStillNeeded = {
      let now = try examiner.examine(place, countsRecords: false)
      // An unavailable store was not necessarily migrated by another process.
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
        // The opening handles a missing store.
        if error.fileError?.kind == .notFound, error.path == place.main { throw error }
        if error.isEnvironmental { throw LazaretError(.unavailable, error, path: path, examination: examination) }
        guard retries > 0, !error.isDecidedByModels else { return .failed(error) }
        retries -= 1
        coordinator.logger.notice("migrating again", metadata: ["code": "\(error.code)"])
      }
    }
  }

  private func backUp() throws -> [OpeningEvent] {
    let backups = Backups(home: coordinator.home ?? place.folder, surroundings: surroundings)
    let change = examination.verdict == .repairable ? "repaired" : "migrated"
    do {
      guard
        let backup = try backups.backUp(place, before: .beforeMigration, appVersion: coordinator.appVersion)
      else { return [] }
      return [
        OpeningEvent(
          .backup, at: surroundings.now(), path: try backups.place(of: place.main).path,
          words: "A backup of the store was taken before it was \(change), and proven.", id: backup.id.description)
      ]
    } catch {
      // A full disk must not skip a wanted backup.
      var told = LazaretError(.unavailable, because: BackupError(any: error), path: path)
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
    options.whenMigrationLoses = coordinator.policy.whenMigrationLoses.remedy
    options.repair = coordinator.policy.whenRepairable == .keep ? .nothing : .structure
    let (own, observer) = (coordinator.migration.progress, observer)
    let phase: OpeningProgress.Phase = examination.verdict == .repairable ? .repairing : .migrating
    options.progress = { step, number, count in
      observer.progress(OpeningProgress(phase: phase, completed: Int64(number - 1), total: Int64(count), step: step))
      return !observer.isCancelled() && own(step, number, count)
    }
    let ownEnd = coordinator.migration.isCancelled
    options.isCancelled = { observer.isCancelled() || ownEnd?() == true }
    return options
  }
}

enum StoreOrigin {
  case found

  /// Migrated by this opening; the original is kept, and the events count once the store is open.
  case migrated(from: FilePath, [OpeningEvent])

  /// A salvaged or an empty store from this opening.
  case installed

  /// The events to report once the store is open.
  var events: [OpeningEvent] { if case .migrated(_, let events) = self { events } else { [] } }

  /// Whether this opening installed it, so that its past is unknown.
  var isInstalled: Bool { if case .installed = self { true } else { false } }
}

extension MigrationError {
  /// Whether the store is incompatible with the app's models.
  ///
  /// Steps that cannot be inferred and missing, stale or incomplete custom mappings are failed migrations, which the
  /// app's next version can fix.
  var meansNoWay: Bool { kind == .sourceModelMissing || kind == .otherModel }

  /// Whether the models alone decide, so that a retry cannot help.
  var isDecidedByModels: Bool { meansNoWay || kind == .wouldLose || kind == .notInferable }
}

extension VerdictReason {
  /// No migration leads from the earlier version to the app's.
  static let notMigratableCode = "not-migratable"

  static let migrationFailedCode = "migration-failed"

  static let repairFailedCode = "repair-failed"

  /// Only SQLite saw the damage.
  static let foundBySQLiteCode = "damage-found-by-sqlite"

  /// The longest quotation of an error.
  private static let limit = 1_000

  static func notMigratable(_ error: MigrationError) -> VerdictReason {
    var words = "No migration leads from the store's version of the model to the app's: \(printable(error.detail))"
    for refusal in error.refusals.dropFirst().prefix(4) { words += "; \(printable(refusal.detail))" }
    return VerdictReason(
      notMigratableCode, words.prefix(limit) + reportWords(error), hint: error.hint, coreData: error.coreDataCode)
  }

  /// Returns the reason of a failed migration, or the repair before it.
  static func migrationFailed(_ error: MigrationError) -> VerdictReason {
    VerdictReason(
      error.isOfRepair ? repairFailedCode : migrationFailedCode,
      "The \(error.isOfRepair ? "repair" : "migration") of the store failed (\(error.code)): "
        + printable(error.detail).prefix(limit) + reportWords(error), hint: error.hint, coreData: error.coreDataCode)
  }

  /// Creates the reason of damage that SQLite reported; nil for other errors.
  init?(damageFoundBy error: PersistentStoreError) {
    guard error.kind == .damaged || error.kind == .notADatabase else { return nil }
    self.init(
      Self.foundBySQLiteCode, "SQLite refuses to open the store: \(error.detail).",
      hint: Self.salvageHint, coreData: 259, sqlite: error.resultCode.map { Int($0 & 0xFF) })
  }

  private static func reportWords(_ error: MigrationError) -> String {
    guard let report = error.reportPath?.lastComponent?.string else { return "." }
    return ". Its report is \(printable(report))."
  }
}
