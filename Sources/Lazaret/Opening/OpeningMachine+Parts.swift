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

  /// The quarantine as a place sees it.
  func quarantine(of place: StoreFileSet) -> PlaceQuarantine {
    PlaceQuarantine(place: place, surroundings: surroundings)
  }

  /// A new empty store of the app's model.
  func emptyStore() throws -> EmptyStore {
    try EmptyStore(for: coordinator.model, surroundings: surroundings, logger: coordinator.logger)
  }

  /// The migration of an outdated store; nil where the app's model is none of Core Data's.
  func migration(of judgement: Judgement) -> StoreMigration? {
    coordinator.migrator.map { migrator in
      StoreMigration(
        coordinator: coordinator, migrator: migrator, place: judgement.place, examination: judgement.examination,
        path: path, observer: observer)
    }
  }

  /// The salvage that a quarantined store waits for.
  func salvage(of stored: QuarantinedStore, from place: StoreFileSet) -> WaitingSalvage {
    let quarantine = quarantine(of: place)
    let work = SalvageWork(
      of: stored.id, in: quarantine.folder, model: coordinator.model, storeOptions: coordinator.storeOptions,
      surroundings: surroundings, observer: observer, home: coordinator.home)
    return WaitingSalvage(quarantine: quarantine, work: work, path: path, logger: coordinator.logger)
  }
}
