import Logging

extension Examination {
  /// Whether the same file was looked at, and nobody has written to it since.
  fileprivate func isSame(as earlier: Examination) -> Bool {
    let files = [self, earlier].map { $0.health.files.first { $0.part == .main }?.status }
    guard let now = files[0], let then = files[1] else { return false }
    return now.identity == then.identity && now.size == then.size && now.modified == then.modified
  }
}

/// Found under the folder's lock: the store is not what it was when it was looked at, and has to be looked at again.
struct BeginAnew: Error {}

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

  /// Where a chain of symbolic links ends that leads to nothing.
  private func targetOfLink(_ path: FilePath) throws(FileError) -> StoreFileSet {
    var target = path
    // As many links as the kernel of Linux follows.
    for _ in 0..<40 {
      target = target.folder.pushing(try fileSystem.linkTarget(target))
      guard let name = target.lastComponent, try fileSystem.status(of: target.folder) != nil else { break }
      if try fileSystem.status(of: target, followingLinks: false)?.kind == .symbolicLink { continue }
      return StoreFileSet(main: try fileSystem.realPath(target.folder).appending(name))
    }
    throw FileError(.danglingLink, operation: "find the store", path: path)
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
    let hasLeftover = try StagedStore.hasLeftover(for: place, in: fileSystem)
    guard try hasLeftover || quarantine.hasInterrupted() else { return [] }
    let lock = try FolderLock(place.folder, in: fileSystem)
    // Large values whose store never came; while they are there the staged store is too.
    if hasLeftover { try SalvageInstallation.removeHalf(of: place, in: fileSystem) }
    try StagedStore.removeLeftover(for: place, in: fileSystem)
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

  /// Moves whatever is at the place into quarantine and puts another store there: what was salvaged, or an empty one.
  ///
  /// An empty store is complete, verified and on the disk before anything is moved.
  func replace(
    _ place: StoreFileSet, _ examination: Examination, named path: FilePath, _ observer: OpeningObserver
  ) throws -> [OpeningEvent] {
    try observer.report(.creating, at: path)
    let bytes = try newStoreBytes()
    let lock = try FolderLock(place.folder, in: fileSystem)
    if case .coreData = model, try migrator?.isReplacing(place) == true {
      // A process that was replacing the store by its migrated self has ended: the place is not free.
      _ = consume lock
      throw BeginAnew()
    }
    // Another process may have done the same while this one waited for the lock.
    var now = try look(at: place, countsRecords: true)
    if VerdictReason.laterFindings.contains(examination.reason.code), now.isSame(as: examination) {
      now.verdict = examination.verdict
      now.reason = examination.reason
    }
    let decision = try decide(now, at: path)
    // A store of an earlier version has come here meanwhile.
    if decision == .migrate { throw BeginAnew() }
    guard decision == .replace else {
      let isReplaced = examination.verdict != .missing
      return isReplaced ? try earlierQuarantine(of: place).map { [$0] } ?? [] : []
    }
    let members = try place.members(in: fileSystem)
    let main = members.first { $0.part == .main && $0.status.kind == .regular }
    var events: [OpeningEvent] = []
    if members.isEmpty, let waiting = try waiting(for: place) {
      events.append(event(for: waiting))
      if try continuesSalvage(of: waiting, named: path) {
        _ = consume lock
        return events + (try rescue(waiting, into: place, named: path, observer))
      }
      events.append(try create(bytes, at: place, permissions: nil))
      _ = consume lock
      let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
      let salvaging = try quarantine.salvageLock(patience: 10_000)
      _ = try accept(waiting, in: quarantine, place)
      _ = consume salvaging
      return events
    }
    if salvageNote(for: now, members)?.isWanted == true { try requireSalvageSpace(for: place) }
    // Complete, verified and on the disk before anything is moved: a disk too full for it is met first.
    let staged = try stage(bytes, at: place, permissions: main?.status.permissions)
    if !members.isEmpty {
      let note = salvageNote(for: now, members)
      let (stored, quarantined) = try quarantine(place, now, note, named: path, observer)
      events.append(quarantined)
      // What was left over of a store is no reason to forget one that waits.
      let waiting = note?.isWanted == true ? stored : main == nil ? try waiting(for: place) : nil
      if let waiting, try continuesSalvage(of: waiting, named: path) {
        _ = consume staged
        _ = consume lock
        return events + (try rescue(waiting, into: place, named: path, observer))
      }
    } else if let earlier = try earlierQuarantine(of: place) {
      events.append(earlier)
    }
    try staged.install()
    _ = consume lock
    events.append(created(place))
    return events
  }

  /// Makes an empty store complete, verified and on the disk beside its place.
  ///
  /// The caller holds the folder's lock.
  private func stage(
    _ bytes: [UInt8], at place: StoreFileSet, permissions: FilePermissions?
  ) throws -> StagedStore {
    let permissions = permissions?.intersection(.init(rawValue: 0o666)) ?? .init(rawValue: 0o644)
    let staged = try StagedStore(bytes, for: place, permissions: permissions, in: fileSystem)
    try verify(staged.path)
    // Journal, receipt and SQLite's own files have to fit too; a disk too full for them is met before anything is moved.
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "make room for a new store", path: place.folder)
    }
    return staged
  }

  /// Puts an empty store into an empty place.
  ///
  /// The caller holds the folder's lock.
  func create(_ bytes: [UInt8], at place: StoreFileSet, permissions: FilePermissions?) throws -> OpeningEvent {
    try stage(bytes, at: place, permissions: permissions).install()
    return created(place)
  }

  private func created(_ place: StoreFileSet) -> OpeningEvent {
    logger.info("created a store")
    return OpeningEvent(
      .create, at: surroundings.now(), path: place.main,
      words: "An empty store for \(printable(model.currentVersionName)) was created.")
  }

  private func quarantine(
    _ place: StoreFileSet, _ examination: Examination, _ salvage: Receipt.Salvage?, named path: FilePath,
    _ observer: OpeningObserver
  ) throws -> (QuarantinedStore, OpeningEvent) {
    let quarantine = QuarantineFolder(beside: place, surroundings: surroundings)
    var facts = QuarantineCase(examination, appVersion: appVersion)
    facts.salvage = salvage
    // The catalogue first: one that cannot be written is met before anything is moved.
    if let home {
      try QuarantineCatalogue(home: home, surroundings: surroundings).add(quarantine, holding: [place.folder])
    }
    let pending = PendingNotice(for: place, in: fileSystem)
    try pending.write(previousID: try newestQuarantined(of: place)?.id)
    let stored: QuarantinedStore
    do {
      stored = try quarantine.add(place, because: facts) { done, total in
        try observer.report(.quarantining, at: path, completed: done, of: total)
      }
    } catch {
      // The first error is the one to report; a mark that stays behind tells of nothing that did not happen.
      try? pending.remove()
      throw error
    }
    logger.notice("quarantined a store", metadata: ["id": "\(stored.id)", "reason": "\(facts.reason.code)"])
    var event = OpeningEvent(
      .quarantine, at: surroundings.now(), path: stored.files.main,
      words: "The old store was moved into quarantine, complete and unchanged.", id: stored.id, reason: facts.reason,
      receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    return (stored, event)
  }

  /// What an earlier run did and could not tell any more.
  func untold(_ place: StoreFileSet) throws -> [OpeningEvent] {
    let pending = PendingNotice(for: place, in: fileSystem)
    guard try pending.isThere() else { return [] }
    if let installed = try untoldInstallation(place) { return installed }
    guard let stored = try newestQuarantined(of: place), try stored.id != pending.previousID()
    else { return [] }
    return [event(for: stored)]
  }

  /// Says where the store is that used to be at an empty place, for a run that ended between the two steps.
  private func earlierQuarantine(of place: StoreFileSet) throws -> OpeningEvent? {
    try newestQuarantined(of: place).map { event(for: $0) }
  }

  private func newestQuarantined(of place: StoreFileSet) throws -> QuarantinedStore? {
    try QuarantineFolder(beside: place, surroundings: surroundings).stores()
      .first { $0.receipt?.originalPath.path == place.main }
  }

  func event(for stored: QuarantinedStore) -> OpeningEvent {
    var event = OpeningEvent(
      .recovery, at: surroundings.now(), path: stored.files.main,
      words: "A store that was here before lies in quarantine, complete and unchanged.", id: stored.id,
      reason: stored.receipt?.reason, receipt: stored.receiptPath)
    event.salvage = OpeningSalvage(stored)
    return event
  }

  /// The bytes that must be free beside a new store: the index of its write-ahead log has 32 KiB, receipts are smaller.
  private static let reserve: Int64 = 128 << 10

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
    if examination.verdict == .unavailable { throw LazaretError(.unavailable, examination, path: path) }
    guard examination.verdict == .compatible else {
      throw LazaretError(
        .creationFailed, operation: "create the store", path: path,
        detail: "what was written is \(examination.verdict.rawValue): \(examination.reason.words)",
        details: .init(.creationFailed, examination))
    }
  }
}
