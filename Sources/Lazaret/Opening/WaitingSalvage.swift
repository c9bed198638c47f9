import Logging
import Migration
import PersistentStore
import Platform
import Salvage
import SystemPackage

/// The salvage that a quarantined store waits for while its place is empty.
///
/// Only one process at a time goes on with it: the one that holds its lock. No other lock is held while it is waited
/// for, so that other stores of the folder can be opened meanwhile.
struct WaitingSalvage {
  enum Outcome {
    /// A salvaged store that the app can open lies in quarantine.
    case usable(SalvageInstallation, SalvageFiles, Receipt.Salvage.Result)

    /// What was salvaged is newer than the app.
    case newer(Examination)

    /// What was salvaged is of an earlier version, and could not be migrated to the app's.
    case unmigrated(LazaretError)

    /// Nothing came out that the app could open; the error says why, where that is known.
    case nothing(LazaretError?)
  }

  let quarantine: PlaceQuarantine
  let work: SalvageWork

  /// The store, as the app names it.
  let path: FilePath
  let logger: Logger

  private var place: StoreFileSet { quarantine.place }
  private var folder: QuarantineFolder { quarantine.folder }
  private var surroundings: Surroundings { quarantine.surroundings }
  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var observer: OpeningObserver { work.observer }

  /// Stops where the disk is too full for the salvage of a store, before anything of it is moved.
  static func requireSpace(for place: StoreFileSet, _ model: AppModel, in fileSystem: FileSystem) throws(FileError) {
    let needed = try SalvageNeeds(of: place, in: fileSystem).installingBytes(SalvageModel(model))
    let free = try fileSystem.freeSpace(at: place.folder)
    guard free < needed else { return }
    throw FileError(
      .noSpace, operation: "salvage the store", path: place.folder,
      detail: "the salvage needs \(needed) bytes and \(free) are free",
      hint: "Free \(needed - free) bytes, then open the store again; it is in its place, as it was.",
      details: .init(neededBytes: needed))
  }

  /// Waits for another process that is salvaging in the folder, ten seconds at most.
  func lock() throws -> FolderLock {
    var rounds = 40
    while true {
      do throws(FileError) {
        return try folder.salvageLock(patience: 250)
      } catch {
        rounds -= 1
        guard error.kind == .locked, rounds > 0 else { throw error }
      }
      observer.progress(.init(phase: .salvaging))
      if observer.isCancelled() { throw LazaretError.cancelledSalvage(path) }
    }
  }

  // The caller of all that follows holds that lock.

  /// Whether it still has to be done: another process may have done it, or put the store back, or filled the place.
  func isNeeded() throws -> Bool {
    try place.members(in: fileSystem).isEmpty && quarantine.isWaiting(work.id)
  }

  /// Salvages the store, unless an interrupted run has left a result that the app can open.
  ///
  /// - Parameter triesAgain: whether one that has failed before is tried again.
  /// - Throws: what the surroundings say, and `cancelled`; the store goes on waiting.
  func run(triesAgain: Bool) throws -> Outcome {
    var stored = try folder.store(named: work.id)
    if try !hasReadyResult(stored) {
      if let newer = try newerResult(of: stored) { return .newer(newer) }
      if try hasResultWithoutWay(stored), let error = unmigrated(stored) { return .unmigrated(error) }
      guard stored.receipt?.salvage?.state != .failed || triesAgain else { return .nothing(nil) }
      logger.info("salvaging a store", metadata: ["id": "\(stored.id)"])
      do {
        stored = try work.run().stored
      } catch let error as LazaretError where error.kind == .salvageFailed {
        logger.notice("a salvage failed", metadata: ["id": "\(stored.id)"])
        return .nothing(error)
      }
      if let newer = try newerResult(of: stored) { return .newer(newer) }
    }
    let installation = installation(of: stored)
    guard let (files, result) = try installation.source() else {
      if let error = unmigrated(stored) { return .unmigrated(error) }
      return .nothing(stored.receipt?.salvage?.failure.map { LazaretError.salvageFailed(path, $0) })
    }
    return .usable(installation, files, result)
  }

  private func installation(of stored: QuarantinedStore) -> SalvageInstallation {
    SalvageInstallation(place: place, folder: folder, stored: stored, surroundings: surroundings)
  }

  /// Whether an interrupted run has left a result that was not changed since, and that the app can open as it is now.
  private func hasReadyResult(_ stored: QuarantinedStore) throws -> Bool {
    let installation = installation(of: stored)
    guard let (files, result) = try installation.source(), !(try installation.isChanged(files, result)) else {
      return false
    }
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: work.model, options: .init(countsRecords: false))
    if examination.verdict == .unavailable { throw LazaretError(.unavailable, examination, path: files.store.main) }
    return examination.isUsableAsIs
  }

  /// What is found out about a result that waits for a newer version of the app; nil where it does not, or no longer.
  ///
  /// A result that does not fit is not made again and again: only another model can make another one of it.
  private func newerResult(of stored: QuarantinedStore) throws -> Examination? {
    let codes: Set = [Receipt.Salvage.newerAppCode, Receipt.Salvage.unlistedVersionCode]
    guard let examination = try examined(stored, waitingFor: codes) else { return nil }
    return examination.isNewerThanApp ? examination : nil
  }

  /// Whether a result waits that could not be migrated, and no way leads from its version to the app's yet.
  ///
  /// One of a model that the app lacks altogether is made anew where no way leads from that: then by the names of columns.
  private func hasResultWithoutWay(_ stored: QuarantinedStore) throws -> Bool {
    guard case .coreData(let bundle) = work.model,
      let examination = try examined(stored, waitingFor: [Receipt.Salvage.notMigratedCode]),
      examination.verdict == .outdated
    else { return false }
    if let version = examination.modelVersion {
      return work.migration.obstacle(from: .version(version), in: bundle) != nil
    }
    guard let model = examination.storeModel else { return false }
    return work.migration.obstacle(from: .model(model), in: bundle).map { !$0.kind.leavesNoWay } ?? false
  }

  /// What a look finds out now about a result that waits for one of some reasons; nil where none does, or it is not there as it was.
  private func examined(_ stored: QuarantinedStore, waitingFor codes: Set<String>) throws -> Examination? {
    guard let salvage = stored.receipt?.salvage, let code = salvage.failure?.code, codes.contains(code),
      let result = salvage.result,
      let files = folder.result(of: stored),
      try fileSystem.status(of: files.store.main, followingLinks: false)?.size == result.bytes
    else { return nil }
    return try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: work.model, options: .init(countsRecords: false))
  }

  /// The error where what was salvaged waits for a newer version of the app.
  func waitsForNewerApp(_ examination: Examination) -> LazaretError {
    var error = LazaretError(.unavailable, examination, path: path)
    let isUnlisted = examination.newer?.code == VerdictReason.unlistedVersionCode
    let next =
      isUnlisted
      ? "Name its version where it belongs in the order; the next opening then goes on"
      : "Update the app, which then goes on"
    error.hint =
      "\(next); the store lies in quarantine as \(printable(work.id)), with what was salvaged of it."
    return error
  }

  /// The error where what was salvaged could not be migrated, and waits for an app that can; nil where it does not.
  private func unmigrated(_ stored: QuarantinedStore) -> LazaretError? {
    guard let salvage = stored.receipt?.salvage, salvage.result != nil, let failure = salvage.failure,
      failure.code == Receipt.Salvage.notMigratedCode
    else { return nil }
    return LazaretError(
      .migrationFailed, operation: "migrate what was salvaged", path: path,
      detail: printable(failure.words.hasSuffix(".") ? String(failure.words.dropLast()) : failure.words),
      hint: "Correct the model or give a mapping, then open the store again; it lies in quarantine as "
        + "\(printable(work.id)), with what was salvaged of it.")
  }

  /// Puts the store back where it was, since the salvage itself has failed: that says nothing of the store.
  ///
  /// The caller does not hold the salvage lock any more.
  ///
  /// - Returns: the error to throw; the store is in its place then, and nothing is left of its quarantine.
  func putBack(because error: any ReportableError) throws -> LazaretError {
    let lock = try FolderLock(place.folder, in: fileSystem)
    _ = try folder.release(work.id, to: place)
    if try folder.released(work.id) != nil { try folder.discard(work.id) }
    try PendingNotice(for: place, in: fileSystem).remove()
    _ = consume lock
    logger.error("a salvage failed by itself", metadata: ["id": "\(work.id)", "code": "\(error.code)"])
    return LazaretError(
      .salvageFailed, because: error, operation: "salvage the store", path: path,
      detail: "the salvage itself failed: \(error.detail) [\(error.code)]",
      hint: "The store is in its place, as it was. Report this, with a support bundle of the store.")
  }

  // MARK: Filling the place

  /// Puts a copy of the salvaged store into the place.
  ///
  /// - Returns: nil where the place is not empty any more.
  func install(
    _ installation: SalvageInstallation, _ files: SalvageFiles, _ result: Receipt.Salvage.Result
  ) throws -> [OpeningEvent]? {
    observer.progress(.init(phase: .installing))
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard try place.members(in: fileSystem).isEmpty else { return nil }
    let staged = try installation.stage(files, result)
    try installation.announce(staged)
    let stored = try installation.install(staged, from: files)
    _ = consume lock
    logger.notice(
      "salvaged a store",
      metadata: ["id": "\(stored.id)", "recovered": "\(result.recovered)", "lost": "\(result.lost)"])
    return [.salvaged(stored, at: surroundings.now())]
  }

  /// Puts an empty store into the place, and notes that the salvage is not waited for any more.
  ///
  /// - Returns: nil where the place is not empty any more.
  func giveUp(for empty: EmptyStore) throws -> [OpeningEvent]? {
    // What the attempt could not remove at once goes now, or by the next opening.
    try folder.endSalvage(of: work.id)
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard try place.members(in: fileSystem).isEmpty else { return nil }
    let evidence = try fileSystem.access(to: folder.store(named: work.id).files.main)
    let created = try empty.create(at: place, access: evidence)
    _ = consume lock
    return [.salvaged(try quarantine.stopWaiting(work.id), at: surroundings.now()), created]
  }
}
