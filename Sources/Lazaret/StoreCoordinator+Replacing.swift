import Logging

extension StoreCoordinator {
  /// The set that a path stands for; a link whose store is in quarantine leads to the empty place it left.
  func locate(_ path: FilePath) throws -> StoreFileSet {
    do throws(FileError) {
      return try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      let target = try targetOfLink(path)
      let quarantine = QuarantineFolder(beside: target, surroundings: surroundings)
      let isOurs = try quarantine.stores().contains { $0.receipt?.originalPath.path == target.main }
      guard isOurs else { throw error }
      return target
    }
  }

  private func targetOfLink(_ path: FilePath) throws(FileError) -> StoreFileSet {
    let target = path.folder.pushing(try fileSystem.linkTarget(path))
    guard let name = target.lastComponent else { throw FileError(.danglingLink, operation: "find the store", path: path) }
    guard try fileSystem.status(of: target.folder) != nil else {
      throw FileError(.danglingLink, operation: "find the store", path: path)
    }
    return StoreFileSet(main: try fileSystem.realPath(target.folder).appending(name))
  }

  /// Brings a quarantine that an earlier run left unfinished to its end, before anything else is looked at.
  func finishInterrupted(_ path: FilePath) throws -> [OpeningEvent] {
    let place: StoreFileSet
    do throws(FileError) {
      place = try StoreFileSet.locate(path, in: fileSystem)
    } catch {
      guard error.kind == .danglingLink else { throw error }
      place = try targetOfLink(path)
    }
    let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
    guard try quarantine.hasInterrupted() else { return [] }
    let lock = try FolderLock(place.folder, in: fileSystem)
    let finished = try quarantine.finishInterrupted()
    _ = consume lock
    return finished.filter { $0.path == nil || $0.path == place.main }.map { step in
      logger.notice("finished an interrupted step", metadata: ["kind": "\(step.kind)", "id": "\(step.id)"])
      return OpeningEvent(
        .recovery, at: surroundings.now(), path: quarantine.path,
        words: step.isDone
          ? "An interrupted \(step.kind.rawValue) of an earlier run was finished."
          : "An interrupted \(step.kind.rawValue) of an earlier run was taken back; nothing was lost.",
        id: step.id)
    }
  }

  /// Moves whatever is at the place into quarantine and puts an empty store there.
  ///
  /// The new store is complete, verified and on the disk before anything is moved.
  func replace(
    _ place: StoreFileSet, _ examination: Examination, _ observer: OpeningObserver
  ) throws -> [OpeningEvent] {
    try observer.report(.creating, at: place.main)
    let bytes = try newStoreBytes()
    let lock = try FolderLock(place.folder, in: fileSystem)
    // Another process may have done the same while this one waited for the lock.
    let now = try Examiner(fileSystem: fileSystem).examine(
      place.main, model: model, options: .init(depth: .quick, countsRecords: true))
    if now.verdict == .compatible { return [] }
    guard now.verdict == examination.verdict else { throw LazaretError(.unavailable, now, path: place.main) }
    let staged = try StagedStore(bytes, for: place, in: fileSystem)
    try verify(staged.path)
    var events: [OpeningEvent] = []
    if !(try place.members(in: fileSystem)).isEmpty {
      events.append(try quarantine(place, now, observer))
    } else if let earlier = try earlierQuarantine(of: place) {
      events.append(earlier)
    }
    try staged.install()
    _ = consume lock
    logger.info("created a store", metadata: ["bytes": "\(bytes.count)"])
    events.append(
      OpeningEvent(
        .create, at: surroundings.now(), path: place.main,
        words: "An empty store for \(model.currentVersionName) was created."))
    return events
  }

  private func quarantine(
    _ place: StoreFileSet, _ examination: Examination, _ observer: OpeningObserver
  ) throws -> OpeningEvent {
    let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
    let facts = QuarantineCase(examination, appVersion: appVersion)
    let stored = try quarantine.add(place, because: facts) { done, total in
      try observer.report(.quarantining, at: place.main, completed: done, of: total)
    }
    if let home { try QuarantineCatalogue(home: home, surroundings: surroundings).add(quarantine) }
    logger.notice("quarantined a store", metadata: ["id": "\(stored.id)", "reason": "\(facts.reason.code)"])
    return OpeningEvent(
      .quarantine, at: surroundings.now(), path: stored.files.main,
      words: "The old store was moved into quarantine, complete and unchanged.", id: stored.id, reason: facts.reason,
      receipt: stored.receiptPath)
  }

  /// Says where the store is that used to be at an empty place, for a run that ended between the two steps.
  private func earlierQuarantine(of place: StoreFileSet) throws -> OpeningEvent? {
    let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
    guard let stored = try quarantine.stores().first(where: { $0.receipt?.originalPath.path == place.main }) else {
      return nil
    }
    return OpeningEvent(
      .recovery, at: surroundings.now(), path: stored.files.main,
      words: "The store that was here before lies in quarantine, complete and unchanged.", id: stored.id,
      reason: stored.receipt?.reason, receipt: stored.receiptPath)
  }

  /// The bytes of an empty store for the app's model.
  func newStoreBytes() throws -> [UInt8] {
    switch model {
    case .coreData(let bundle):
      let model = bundle.current.model
      return try StoreCreation(
        model: model, uuid: surroundings.makeUUID().description, modelCache: try model.modelCache()
      ).bytes()
    case .sqlite(let script, _):
      return try StoreCreation.bytes(of: script)
    }
  }

  /// Walks over every page of a new store before anything makes room for it.
  private func verify(_ path: FilePath) throws {
    let examination = try Examiner(fileSystem: fileSystem).examine(
      path, model: model, options: .init(depth: .full, countsRecords: false))
    guard examination.verdict == .compatible else {
      throw LazaretError(
        .creationFailed, operation: "create the store", path: path,
        detail: "what was written is \(examination.verdict.rawValue): \(examination.reason.words)",
        hint: "Nothing was moved. Please report this, with the model.", examination: examination)
    }
  }
}

extension QuarantineCase {
  /// What an examination knows that belongs on a receipt.
  public init(_ examination: Examination, appVersion: String?) {
    let metadata = examination.metadata
    self.init(
      reason: .init(code: examination.reason.code, words: examination.reason.words),
      error: .init(coreData: examination.reason.coreDataCode, sqlite: examination.reason.sqliteCode),
      model: metadata.map {
        .init(
          version: examination.modelVersion, identifiers: $0.versionIdentifiers,
          checksum: $0.versionHashes.isEmpty ? nil : ManagedObjectModel.versionChecksum(of: $0.versionHashes))
      },
      entities: examination.entities.isEmpty
        ? nil : examination.entities.map { .init(name: $0.name, table: $0.table, rows: $0.rows) },
      versions: .init(
        app: appVersion, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
        storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem))
  }
}
