import Logging
import Salvage

extension StoreCoordinator {
  /// What the app's policy has for a store that makes room.
  func remedy(for examination: Examination) -> OpeningPolicy.Remedy {
    switch examination.verdict {
    case .damaged: policy.whenDamaged
    case .incompatible: policy.whenIncompatible
    case .outdated: policy.whenMigrationFails
    case .compatible, .missing, .unavailable: .emptyStore
    }
  }

  /// What is noted on the receipt as to the salvage of a store that is about to be quarantined.
  func salvageNote(for examination: Examination, _ members: [StoreFileSet.Member]) -> Receipt.Salvage? {
    guard members.contains(where: { $0.part == .main && $0.status.kind != .directory }) else { return nil }
    switch remedy(for: examination) {
    case .salvage: return Receipt.Salvage(pendingSince: surroundings.now(), isWanted: true)
    case .salvageLater: return Receipt.Salvage(pendingSince: surroundings.now(), isWanted: false)
    case .emptyStore, .refuse: return nil
    }
  }

  /// Stops where the disk is too full for the salvage of a store, before anything of it is moved.
  func requireSalvageSpace(for place: StoreFileSet) throws(FileError) {
    let needed = try SalvageNeeds(of: place, in: fileSystem).installingBytes(SalvageModel(model))
    let free = try fileSystem.freeSpace(at: place.folder)
    guard free < needed else { return }
    throw FileError(
      .noSpace, operation: "salvage the store", path: place.folder,
      detail: "the salvage needs \(needed) bytes and \(free) are free",
      hint: "Free \(needed - free) bytes, then open the store again; it is in its place, as it was.",
      details: .init(neededBytes: needed))
  }

  /// The store whose salvage an opening has begun, or whose salvaged store was being put into an empty place.
  func waiting(for place: StoreFileSet) throws -> QuarantinedStore? {
    let installing = try PendingNotice(for: place, in: fileSystem).installation()?.id
    return try QuarantineFolder(beside: place, surroundings: surroundings).stores().first { stored in
      guard let salvage = stored.receipt?.salvage, stored.receipt?.originalPath.path == place.main else {
        return stored.id == installing && stored.receipt?.salvage?.result?.isUsable == true
      }
      return salvage.isWanted || stored.id == installing && salvage.result?.isUsable == true
    }
  }

  /// Whether a policy lets an interrupted salvage go on.
  ///
  /// - Throws: `salvage-pending` where every remedy is to refuse.
  func continuesSalvage(of stored: QuarantinedStore, named path: FilePath) throws(LazaretError) -> Bool {
    let remedies = [policy.whenDamaged, policy.whenIncompatible, policy.whenMigrationFails]
    if remedies.contains(.salvage) { return true }
    guard remedies.allSatisfy({ $0 == .refuse }) else { return false }
    throw LazaretError(
      .salvagePending, path: path,
      detail: "the store that was here lies in quarantine as \(printable(stored.id)), and its salvage was not finished",
      hint: "Salvage it with: lazaret quarantine salvage \(printable(stored.id)) --install.")
  }

  /// Salvages a quarantined store and puts a copy of the result into its empty place.
  ///
  /// The caller does not hold the folder's lock, so that other stores in it can be opened meanwhile.
  ///
  /// - Returns: what was done; the place has a store then.
  func rescue(
    _ waiting: QuarantinedStore, into place: StoreFileSet, named path: FilePath, _ observer: OpeningObserver
  ) throws -> [OpeningEvent] {
    let quarantine = QuarantineFolder(waiting.files.folder, surroundings: surroundings)
    let lock = try salvageLock(of: quarantine, named: path, observer)
    // Another process may have done it while this one waited, or put the store back.
    guard try place.members(in: fileSystem).isEmpty, try isWaiting(waiting, in: quarantine, for: place) else {
      throw BeginAnew()
    }
    var stored = try quarantine.store(named: waiting.id)
    if try readyResult(of: stored, in: quarantine, for: place) == nil {
      if let newer = try newerResult(of: stored, in: quarantine) {
        throw LazaretError(.unavailable, newer, path: path)
      }
      guard stored.receipt?.salvage?.state != .failed || policy.whenSalvageFails == .refuse else {
        return try giveUp(stored, in: quarantine, place, named: path, observer)
      }
      logger.info("salvaging a store", metadata: ["id": "\(stored.id)"])
      do {
        stored =
          try SalvageWork(
            of: stored.id, in: quarantine, model: model, storeOptions: storeOptions, surroundings: surroundings,
            observer: observer, home: home
          ).run().stored
      } catch let error as LazaretError {
        guard error.kind == .salvageFailed else { throw error }
        logger.notice("a salvage failed", metadata: ["id": "\(stored.id)"])
        if policy.whenSalvageFails == .refuse { throw error }
        return try giveUp(try quarantine.store(named: stored.id), in: quarantine, place, named: path, observer)
      }
      if let newer = try newerResult(of: stored, in: quarantine) {
        throw LazaretError(.unavailable, newer, path: path)
      }
    }
    let installation = SalvageInstallation(
      place: place, folder: quarantine, stored: stored, surroundings: surroundings)
    guard let (files, result) = try installation.source() else {
      if policy.whenSalvageFails == .refuse, let failure = stored.receipt?.salvage?.failure {
        throw LazaretError.salvageFailed(path, failure)
      }
      return try giveUp(stored, in: quarantine, place, named: path, observer)
    }
    observer.progress(.init(phase: .installing))
    let folder = try FolderLock(place.folder, in: fileSystem)
    guard try place.members(in: fileSystem).isEmpty else { throw BeginAnew() }
    let staged = try installation.stage(files, result)
    try installation.announce(staged)
    stored = try installation.install(staged, from: files)
    _ = consume folder
    _ = consume lock
    logger.notice(
      "salvaged a store",
      metadata: ["id": "\(stored.id)", "recovered": "\(result.recovered)", "lost": "\(result.lost)"])
    return [salvageEvent(for: stored)]
  }

  /// The result that an interrupted run has left and that nobody has changed since; nil where there is none.
  private func readyResult(
    of stored: QuarantinedStore, in quarantine: QuarantineFolder, for place: StoreFileSet
  ) throws -> SalvageFiles? {
    let installation = SalvageInstallation(
      place: place, folder: quarantine, stored: stored, surroundings: surroundings)
    guard let (files, result) = try installation.source(), !(try installation.isChanged(files, result)) else {
      return nil
    }
    // The app may have been updated since.
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: model, options: .init(countsRecords: false))
    if examination.verdict == .unavailable { throw LazaretError(.unavailable, examination, path: files.store.main) }
    return examination.verdict == .compatible ? files : nil
  }

  /// What is found out about a result that waits for a newer version of the app; nil where it does not, or no longer.
  ///
  /// A result that does not fit is not made again and again: only another model can make another one of it.
  private func newerResult(
    of stored: QuarantinedStore, in quarantine: QuarantineFolder
  ) throws -> Examination? {
    guard let salvage = stored.receipt?.salvage, salvage.failure?.code == Receipt.Salvage.newerAppCode,
      let result = salvage.result, let files = quarantine.result(of: stored),
      try fileSystem.status(of: files.store.main, followingLinks: false)?.size == result.bytes
    else { return nil }
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: model, options: .init(countsRecords: false))
    return examination.isNewerThanApp ? examination : nil
  }

  private func isWaiting(
    _ stored: QuarantinedStore, in quarantine: QuarantineFolder, for place: StoreFileSet
  ) throws -> Bool {
    do {
      let now = try quarantine.store(named: stored.id)
      let installing = try PendingNotice(for: place, in: fileSystem).installation()?.id
      return now.receipt?.salvage?.isWanted == true || installing == stored.id
    } catch let error as QuarantineError where error.kind == .notFound {
      return false
    }
  }

  /// Waits for whoever else is salvaging in the folder, ten seconds at most.
  private func salvageLock(
    of quarantine: QuarantineFolder, named path: FilePath, _ observer: OpeningObserver
  ) throws -> FolderLock {
    var rounds = 40
    while true {
      do throws(FileError) {
        return try quarantine.salvageLock(patience: 250)
      } catch {
        rounds -= 1
        guard error.kind == .locked, rounds > 0 else { throw error }
      }
      observer.progress(.init(phase: .salvaging))
      if observer.isCancelled() { throw LazaretError.cancelledSalvage(path) }
    }
  }

  // MARK: Where nothing came out

  /// Puts an empty store into the place of one whose salvage gave nothing that the app could open.
  ///
  /// The caller holds the salvage lock.
  private func giveUp(
    _ stored: QuarantinedStore, in quarantine: QuarantineFolder, _ place: StoreFileSet, named path: FilePath,
    _ observer: OpeningObserver
  ) throws -> [OpeningEvent] {
    observer.progress(.init(phase: .creating))
    // What the attempt could not remove at once goes now, or by the next opening.
    try quarantine.endSalvage(of: stored.id)
    let bytes = try newStoreBytes()
    let folder = try FolderLock(place.folder, in: fileSystem)
    guard try place.members(in: fileSystem).isEmpty else { throw BeginAnew() }
    let status = try fileSystem.status(of: stored.files.main)
    let created = try create(bytes, at: place, permissions: status?.permissions)
    _ = consume folder
    let now = try accept(stored, in: quarantine, place)
    return [salvageEvent(for: now), created]
  }

  /// Notes that an empty store is in the place now, so that no opening goes on with the salvage by itself.
  func accept(
    _ stored: QuarantinedStore, in quarantine: QuarantineFolder, _ place: StoreFileSet
  ) throws -> QuarantinedStore {
    let date = surroundings.now()
    return try quarantine.update(stored.id) { receipt in
      receipt.salvage?.isWanted = false
      receipt.add(Receipt.Moment(.replaced, at: date, words: "An empty store was created.", path: PathText(place.main)))
    }
  }

  // MARK: Telling

  /// The event of a salvage.
  func salvageEvent(for stored: QuarantinedStore) -> OpeningEvent {
    let salvage = OpeningSalvage(stored)
    var words: String
    switch salvage?.state {
    case .installed?:
      words = stored.receipt?.salvage?.result?.words ?? "The store was salvaged."
      words += " A copy of the salvaged store is in its place."
    case .failed?: words = salvage?.failure?.words ?? "Nothing could be salvaged."
    default: words = "The store was salvaged; what came out is beside it in quarantine."
    }
    var event = OpeningEvent(
      .salvage, at: surroundings.now(), path: salvage?.store?.path ?? stored.files.main, words: words, id: stored.id,
      receipt: stored.receiptPath)
    event.salvage = salvage
    return event
  }

  /// Ends, on the receipt, what a run that was killed had put into the place; tells of it.
  ///
  /// - Returns: nil where no salvaged store was being put there.
  func untoldInstallation(_ place: StoreFileSet) throws -> [OpeningEvent]? {
    guard let installing = try PendingNotice(for: place, in: fileSystem).installation(),
      let main = try fileSystem.status(of: place.main, followingLinks: false),
      main.identity.inode == installing.inode
    else { return nil }
    let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
    guard var stored = try quarantine.stores().first(where: { $0.id == installing.id }) else { return nil }
    if stored.receipt?.salvage?.state != .installed {
      let lock = try quarantine.salvageLock(patience: 10_000)
      // Whoever put it there may only have been about to note it.
      stored = try quarantine.store(named: stored.id)
      if stored.receipt?.salvage?.state != .installed {
        stored = try SalvageInstallation(
          place: place, folder: quarantine, stored: stored, surroundings: surroundings
        ).note()
      }
      _ = consume lock
    }
    return [event(for: stored), salvageEvent(for: stored)]
  }
}
