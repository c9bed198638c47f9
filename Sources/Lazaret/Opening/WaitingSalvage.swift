import Logging
import Migration
import PersistentStore
import Platform
import Salvage
import SystemPackage

/// The pending salvage of a quarantined store with an empty place.
///
/// Only the process with its lock continues it, holding no other lock while waiting, so that the folder's other stores
/// can be opened.
struct WaitingSalvage {
  enum Outcome {
    case usable(SalvageInstallation, SalvageFiles, Receipt.Salvage.Result)

    case newer(Examination)

    /// It is of an earlier version and could not be migrated.
    case unmigrated(LazaretError)

    /// No store that the app could open, with the reason if known.
    case nothing(LazaretError?)
  }

  let quarantine: PlaceQuarantine
  let work: SalvageWork

  let path: FilePath
  let logger: Logger

  private var place: StoreFileSet { quarantine.place }
  private var folder: QuarantineFolder { quarantine.folder }
  private var surroundings: Surroundings { quarantine.surroundings }
  private var fileSystem: FileSystem { surroundings.fileSystem }
  private var observer: OpeningObserver { work.observer }

  /// Throws if the disk is too full for the salvage, before any move.
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

  /// Waits up to ten seconds for another salvage in the folder.
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

  // The callers hold that lock.

  /// Whether another process has not yet salvaged or released the store, or filled the place.
  func isNeeded() throws -> Bool { try place.members(in: fileSystem).isEmpty && quarantine.isWaiting(work.id) }

  /// Salvages the store, unless an interrupted run left a usable result.
  ///
  /// - Parameter triesAgain: repeats a failed salvage.
  /// - Throws: errors of the environment, and `cancelled`; the salvage stays pending.
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

  /// Whether an interrupted run left an unchanged, usable result.
  private func hasReadyResult(_ stored: QuarantinedStore) throws -> Bool {
    let installation = installation(of: stored)
    guard let (files, result) = try installation.source(), try folder.isIntact(result, files) else { return false }
    let examination = try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: work.model, options: .init(countsRecords: false))
    if examination.verdict == .unavailable { throw LazaretError(.unavailable, examination, path: files.store.main) }
    return examination.isUsableAsIs
  }

  /// Examines a result that still waits for a newer app.
  ///
  /// It is not repeated: only another model can produce another result.
  private func newerResult(of stored: QuarantinedStore) throws -> Examination? {
    let codes: Set = [Receipt.Salvage.newerAppCode, Receipt.Salvage.unlistedVersionCode]
    guard let examination = try examined(stored, waitingFor: codes) else { return nil }
    return examination.isNewerThanApp ? examination : nil
  }

  /// Whether a result waits because no migration leads to the app's version yet.
  ///
  /// Without its model in the app, the salvage is repeated by the names of columns.
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

  /// Examines an unchanged result that waits for one of some reasons.
  private func examined(_ stored: QuarantinedStore, waitingFor codes: Set<String>) throws -> Examination? {
    guard let salvage = stored.receipt?.salvage, let code = salvage.failure?.code, codes.contains(code),
      let result = salvage.result, let files = folder.result(of: stored),
      try fileSystem.status(of: files.store.main, followingLinks: false)?.size == result.bytes
    else { return nil }
    return try Examiner(fileSystem: fileSystem).examine(
      files.store.main, model: work.model, options: .init(countsRecords: false))
  }

  func waitsForNewerApp(_ examination: Examination) -> LazaretError {
    var error = LazaretError(.unavailable, examination, path: path)
    let isUnlisted = examination.newer?.code == VerdictReason.unlistedVersionCode
    let next =
      isUnlisted
      ? "Name its version where it belongs in the order; the next opening then goes on"
      : "Update the app, which then goes on"
    error.hint = "\(next); the store lies in quarantine as \(printable(work.id)), with what was salvaged of it."
    return error
  }

  /// Returns the error for a result that waits for a migration.
  private func unmigrated(_ stored: QuarantinedStore) -> LazaretError? {
    guard let salvage = stored.receipt?.salvage, salvage.result != nil, let failure = salvage.failure,
      failure.code == Receipt.Salvage.notMigratedCode
    else { return nil }
    return LazaretError(
      .migrationFailed, operation: "migrate what was salvaged", path: path,
      detail: printable(failure.words.withoutFullStop),
      hint: "Correct the model or give a mapping, then open the store again; it lies in quarantine as "
        + "\(printable(work.id)), with what was salvaged of it.")
  }

  /// Puts the store back after a failure of the salvage itself, which says nothing about the store.
  ///
  /// The caller has released the salvage lock.
  ///
  /// - Returns: the error to throw; the quarantine keeps no trace.
  func putBack(because error: any ReportableError) throws -> LazaretError {
    let lock = try FolderLock(place.folder, in: fileSystem)
    _ = try folder.release(work.id, to: place)
    if try folder.released(work.id) != nil { try folder.discard(work.id) }
    try PendingNotice(for: place, in: fileSystem).remove()
    lock.release()
    logger.error("a salvage failed by itself", metadata: ["id": "\(work.id)", "code": "\(error.code)"])
    return LazaretError(
      .salvageFailed, because: error, operation: "salvage the store", path: path,
      detail: "the salvage itself failed: \(error.detail) [\(error.code)]",
      hint: "The store is in its place, as it was. Report this, with a support bundle of the store.")
  }

  // MARK: Filling the place

  /// Installs a copy of the salvaged store; nil if the place is no longer empty.
  func install(
    _ installation: SalvageInstallation, _ files: SalvageFiles, _ result: Receipt.Salvage.Result
  ) throws -> [OpeningEvent]? {
    observer.progress(.init(phase: .installing))
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard try place.members(in: fileSystem).isEmpty else { return nil }
    let staged = try installation.stage(files, result)
    try installation.announce(staged)
    let stored = try installation.install(staged, from: files)
    lock.release()
    logger.notice(
      "salvaged a store",
      metadata: ["id": "\(stored.id)", "recovered": "\(result.recovered)", "lost": "\(result.lost)"])
    return [.salvaged(stored, at: surroundings.now())]
  }

  /// Installs an empty store and ends the pending salvage; nil if the place is no longer empty.
  func giveUp(for empty: EmptyStore) throws -> [OpeningEvent]? {
    try folder.endSalvage(of: work.id)
    let lock = try FolderLock(place.folder, in: fileSystem)
    guard try place.members(in: fileSystem).isEmpty else { return nil }
    let evidence = try fileSystem.access(to: folder.store(named: work.id).files.main)
    let created = try empty.create(at: place, access: evidence)
    lock.release()
    return [.salvaged(try quarantine.stopWaiting(work.id), at: surroundings.now()), created]
  }
}
