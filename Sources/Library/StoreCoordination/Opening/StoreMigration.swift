import Logging

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
