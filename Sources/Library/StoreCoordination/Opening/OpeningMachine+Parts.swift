import RecoveryKit

/// What the steps of an opening work with, made for its store and its app.
extension OpeningMachine {
  var policy: OpeningPolicy { coordinator.policy }
  var surroundings: Surroundings { coordinator.surroundings }
  var fileSystem: FileSystem { coordinator.fileSystem }

  /// What earlier runs have left unfinished at the place.
  var earlierRuns: EarlierRuns {
    EarlierRuns(
      path: path, home: coordinator.home, migrator: coordinator.migrator, surroundings: surroundings,
      logger: coordinator.logger)
  }

  /// Looks at a store as closely as the policy wants, and at every page where damage was found since the last opening.
  ///
  /// - Parameter reports: whether the observer is told how far the look is.
  func examiner(of place: StoreFileSet, reports: Bool = true) throws(FileError) -> PatientExaminer {
    let note = try coordinator.home.flatMap { home throws(FileError) in
      try CheckNote.read(of: place.main, home: home, in: fileSystem)
    }
    return PatientExaminer(
      model: coordinator.model, depth: note?.damage == nil ? policy.depth : .full, fileSystem: fileSystem,
      observer: observer, reports: reports)
  }

  /// Begins with what goes on in the background over a store that is open now; nil where the policy wants nothing of it, or
  /// there is no home.
  func backgroundPass(over judgement: Judgement) -> BackgroundPass? {
    guard let home = coordinator.home, policy.checkInterval != nil || policy.recoveryKitInterval != nil else {
      return nil
    }
    let health = judgement.examination.health
    return BackgroundPass(
      .init(
        place: judgement.place, home: home, appVersion: coordinator.appVersion, policy: policy,
        surroundings: surroundings, observer: observer,
        isChecked: judgement.examination.verdict == .compatible && health.integrity?.isSound == true,
        endedUncleanly: (health.log?.committedFrames ?? 0) > 0 || health.journal == .hot))
  }

  /// Forgets what was found in a store that is in its place no more.
  func forgetCheck(of place: StoreFileSet) throws(FileError) {
    guard let home = coordinator.home else { return }
    try CheckNote.remove(of: place.main, home: home, in: fileSystem)
  }

  /// The quarantine as a place sees it.
  func quarantine(of place: StoreFileSet) -> PlaceQuarantine {
    PlaceQuarantine(place: place, surroundings: surroundings, home: coordinator.home)
  }

  /// Whether a store of the app's was at a place before: one that was opened, quarantined or backed up there.
  func isOwn(_ place: StoreFileSet) throws -> Bool {
    let quarantine = quarantine(of: place)
    if try quarantine.newest() != nil || quarantine.folder.lineage(of: place.main) != nil { return true }
    guard let home = coordinator.home else { return false }
    let notes = KitFolder(for: place.main, home: home, in: fileSystem).path
    if try fileSystem.status(of: notes) != nil { return true }
    return try Backups(home: home, surroundings: surroundings).catalogs(of: place.main).contains { !$0.backups.isEmpty }
  }

  /// A new empty store of the app's model.
  func emptyStore() throws -> EmptyStore {
    try EmptyStore(for: coordinator.model, surroundings: surroundings, logger: coordinator.logger)
  }

  /// The migration of an outdated store; nil where the app's model is none of Core Data's.
  func migration(of judgement: Judgement) throws(FileError) -> StoreMigration? {
    guard let migrator = coordinator.migrator else { return nil }
    return StoreMigration(
      coordinator: coordinator, migrator: migrator, place: judgement.place, examination: judgement.examination,
      examiner: try examiner(of: judgement.place, reports: false), path: path, observer: observer)
  }

  /// The error where a store would be salvaged, and models alone show that what came out could not be migrated to the app's
  /// version; nil where it could, where only the salvage can tell, and where the policy replaces such stores.
  func obstacle(toSalvageOf judgement: Judgement) -> LazaretError? {
    let examination = judgement.examination
    guard examination.verdict == .damaged, policy.whenMigrationFails == .refuse,
      case .coreData(let bundle) = coordinator.model, let version = examination.modelVersion,
      // One of the current version is not migrated.
      bundle.version(named: version)?.versionHashes != bundle.current.versionHashes,
      let error = SalvageMigration(coordinator.migration).obstacle(from: .version(version), in: bundle)
    else { return nil }
    var refusal = LazaretError(.migrationFailed, error, path: path, examination: examination)
    refusal.hint +=
      " The store is damaged too, and stays as it is; once a way leads to the app's version it is salvaged."
    return refusal
  }

  /// The salvage that a quarantined store waits for.
  func salvage(of stored: QuarantinedStore, from place: StoreFileSet) -> WaitingSalvage {
    let quarantine = quarantine(of: place)
    let work = SalvageWork(
      of: stored.id, in: quarantine.folder, model: coordinator.model, storeOptions: coordinator.storeOptions,
      migration: SalvageMigration(coordinator.migration), surroundings: surroundings,
      observer: observer, home: coordinator.home)
    return WaitingSalvage(quarantine: quarantine, work: work, path: path, logger: coordinator.logger)
  }
}
