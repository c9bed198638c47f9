import Logging

extension StoreCoordinator {
  /// What came of a migration.
  enum Migration {
    /// The store is of the app's version now; the result is nil where another process has migrated it meanwhile. The backup
    /// is the one that the policy wanted before.
    case done(Migrator.Result?, OpeningEvent?)

    /// It cannot be migrated, and the policy is to replace it.
    case failed(Examination, MigrationError)
  }

  /// Who migrates the stores of the app's model; nil for a schema without Core Data's tables.
  var migrator: Migrator? {
    guard case .coreData(let bundle) = model else { return nil }
    var migrator = Migrator(bundle, surroundings: surroundings, logger: logger)
    migrator.appVersion = appVersion
    let (current, options) = (bundle.current.model, storeOptions)
    // As it is opened in the end: what this finds wrong brings the original back.
    migrator.checkOpening = { path in
      let store = try PersistentStore(opening: path, model: current, options: options)
      _ = try store.metadata()
      try store.close()
    }
    return migrator
  }

  /// Ends a migration that an earlier run left while it was replacing the store, before anything is looked at.
  func finishBeginAnew(_ path: FilePath) throws -> [OpeningEvent] {
    guard let migrator else { return [] }
    do throws(MigrationError) {
      guard let result = try migrator.finishInterruptedSwap(path) else { return [] }
      logger.notice("finished an interrupted migration", metadata: ["steps": "\(result.steps.count)"])
      return events(of: result)
    } catch {
      // What does not open has been taken back; the migration is begun anew, and its failure is the one to tell of.
      if !error.isEnvironmental, error.kind == .verificationFailed { return [] }
      throw error
    }
  }

  /// Removes what an ended migration has left beside a store that is of the app's version.
  func removeLeftovers(_ place: StoreFileSet) {
    do throws(FileError) {
      try migrator?.removeLeftovers(place)
    } catch {
      // Nothing hangs on it; the next opening tries again.
      logger.debug("leftovers of a migration stay for now", metadata: ["code": "\(error.code)"])
    }
  }

  /// Migrates a store to the app's version.
  ///
  /// - Throws: `LazaretError` where the store stays as it is.
  func migrate(
    _ place: StoreFileSet, _ examination: Examination, named path: FilePath, _ observer: OpeningObserver
  ) throws -> Migration {
    guard var migrator else { throw LazaretError(.incompatible, examination, path: path) }
    let backup = try backUpBeforeMigration(place, examination, named: path)
    migrator.isStillNeeded = { try look(at: place, countsRecords: false).verdict == .outdated }
    let options = migrationOptions(observer)
    var retries = max(0, policy.migrationRetries)
    while true {
      do throws(MigrationError) {
        let result = try migrator.migrate(place.main, options: options)
        return .done(result.steps.isEmpty ? nil : result, backup)
      } catch {
        if error.kind == .cancelled { throw LazaretError.cancelled(path) }
        if error.isEnvironmental { throw LazaretError(.unavailable, error, path: path, examination: examination) }
        if retries > 0, !error.meansThereIsNoWay, error.kind != .wouldLose, error.kind != .notInferable {
          retries -= 1
          logger.notice("migrating again", metadata: ["code": "\(error.code)"])
          continue
        }
        return try decide(about: error, examination, at: path)
      }
    }
  }

  /// Takes a packed backup of a store that is about to be migrated, where the home's policy wants one.
  private func backUpBeforeMigration(
    _ place: StoreFileSet, _ examination: Examination, named path: FilePath
  ) throws -> OpeningEvent? {
    let backups = Backups(home: home ?? place.folder, surroundings: surroundings)
    do {
      guard let backup = try backups.backUp(place, before: .beforeMigration, appVersion: appVersion) else { return nil }
      return OpeningEvent(
        .backup, at: surroundings.now(), path: backups.place(of: place.main).path,
        words: "A backup of the store was taken before the migration, and proven.", id: backup.id.description)
    } catch let error as BackupError {
      // Whoever wants a backup first does not want to do without because the disk is full.
      throw LazaretError(.unavailable, because: error, path: path, details: .init(.unavailable, examination))
    }
  }

  /// Decides what the failure of a migration leads to, by the app's policy.
  ///
  /// - Throws: `LazaretError` where the store stays as it is.
  func decide(
    about error: MigrationError, _ examination: Examination, at path: FilePath
  ) throws(LazaretError) -> Migration {
    var examination = examination
    if error.meansThereIsNoWay {
      examination.verdict = .incompatible
      examination.reason = .notMigratable(error)
    } else {
      examination.reason = .migrationFailed(error)
    }
    let remedy: OpeningPolicy.Remedy
    let kind: LazaretError.Kind
    if error.kind == .wouldLose {
      // Refused so that nothing is lost; replacing the store would lose more.
      (remedy, kind) = (.refuse, .migrationFailed)
    } else if error.kind == .sourceDamaged {
      examination.verdict = .damaged
      (remedy, kind) = (policy.whenDamaged, .damaged)
    } else if error.meansThereIsNoWay {
      (remedy, kind) = (policy.whenIncompatible, .incompatible)
    } else {
      (remedy, kind) = (policy.whenMigrationFails, .migrationFailed)
    }
    guard remedy != .refuse else {
      throw LazaretError(
        kind, error, path: path, examination: examination)
    }
    return .failed(examination, error)
  }

  private func migrationOptions(_ observer: OpeningObserver) -> Migrator.Options {
    var options = migration
    options.version = nil
    options.output = nil
    options.home = home ?? migration.home
    options.isRecorded = true
    options.whenMigrationLoses = policy.whenMigrationLoses
    let own = migration.progress
    options.progress = { step, number, count in
      observer.progress(
        OpeningProgress(phase: .migrating, completed: Int64(number - 1), total: Int64(count), step: step))
      return !observer.isCancelled() && own(step, number, count)
    }
    return options
  }

  /// What a migration is told of.
  func events(of result: Migrator.Result) -> [OpeningEvent] {
    let migration = OpeningMigration(result)
    var events: [OpeningEvent] = []
    if let backup = result.backup {
      events.append(
        OpeningEvent(
          .backup, at: surroundings.now(), path: backup,
          words: "The store as it was before the migration was kept, complete and unchanged."))
    }
    events.append(
      OpeningEvent(
        .migration, at: surroundings.now(), path: result.store, words: migration.words, migration: migration))
    return events
  }
}

extension MigrationError {
  /// Whether the models alone decide, so that trying again changes nothing.
  fileprivate var isDecidedByModels: Bool { meansThereIsNoWay || kind == .wouldLose || kind == .notInferable }

  /// Whether the store has nothing to do with the app's models, so that it is an incompatible one.
  ///
  /// A step that cannot be inferred, or a custom mapping that is missing, stale or without its policy, is not meant: that is a
  /// mistake of the app's, which its next version mends, and a failed migration.
  fileprivate var meansThereIsNoWay: Bool {
    switch kind {
    case .sourceModelMissing, .otherModel: true
    default: false
    }
  }
}
