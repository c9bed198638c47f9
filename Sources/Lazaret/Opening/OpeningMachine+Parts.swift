import Backup
import Foundation
import Logging
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

extension OpeningMachine {
  var policy: OpeningPolicy { coordinator.policy }
  var surroundings: Surroundings { coordinator.surroundings }
  var fileSystem: FileSystem { coordinator.fileSystem }

  var earlierRuns: EarlierRuns {
    EarlierRuns(
      path: path, home: coordinator.home, migrator: coordinator.migrator, surroundings: surroundings,
      logger: coordinator.logger)
  }

  /// Returns an examiner of the policy's depth, or a full one if damage was found since the last opening.
  func examiner(of place: StoreFileSet, reports: Bool = true) throws(FileError) -> RetryingExaminer {
    let note = try coordinator.home.flatMap { home throws(FileError) in
      try CheckNote.read(of: place.main, home: home, in: fileSystem)
    }
    return RetryingExaminer(
      model: coordinator.model, depth: note?.damage == nil ? policy.depth : .full, fileSystem: fileSystem,
      observer: observer, reports: reports)
  }

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

  func forgetCheck(of place: StoreFileSet) throws(FileError) {
    guard let home = coordinator.home else { return }
    try CheckNote.remove(of: place.main, home: home, in: fileSystem)
  }

  func quarantine(of place: StoreFileSet) -> PlaceQuarantine {
    PlaceQuarantine(place: place, surroundings: surroundings, home: coordinator.home)
  }

  /// Whether a store was opened, quarantined or backed up at the place before.
  func isOwn(_ place: StoreFileSet) throws -> Bool {
    let quarantine = quarantine(of: place)
    if try quarantine.newest() != nil || quarantine.folder.lineage(of: place.main) != nil { return true }
    guard let home = coordinator.home else { return false }
    let notes = KitFolder(for: place.main, home: home, in: fileSystem).path
    if try fileSystem.status(of: notes) != nil { return true }
    return try Backups(home: home, surroundings: surroundings).catalogs(of: place.main).contains { !$0.backups.isEmpty }
  }

  func emptyStore() throws -> EmptyStore {
    try EmptyStore(for: coordinator.model, surroundings: surroundings, logger: coordinator.logger)
  }

  /// Nil if the app's model is not a Core Data model.
  func migration(of judgement: Judgement) throws(FileError) -> StoreMigration? {
    guard let migrator = coordinator.migrator else { return nil }
    return StoreMigration(
      coordinator: coordinator, migrator: migrator, place: judgement.place, examination: judgement.examination,
      examiner: try examiner(of: judgement.place, reports: false), path: path, observer: observer)
  }

  /// Returns the error if the models alone show that salvaged records could not be migrated.
  ///
  /// Nil if the policy replaces such stores.
  func obstacle(toSalvageOf judgement: Judgement) -> LazaretError? {
    let examination = judgement.examination
    guard examination.verdict == .damaged, policy.whenMigrationFails == .refuse,
      case .coreData(let bundle) = coordinator.model, let version = examination.modelVersion,
      bundle.version(named: version)?.versionHashes != bundle.current.versionHashes,
      let error = SalvageMigration(coordinator.migration).obstacle(from: .version(version), in: bundle)
    else { return nil }
    var refusal = LazaretError(.migrationFailed, error, path: path, examination: examination)
    refusal.hint +=
      " The store is damaged too, and stays as it is; once a way leads to the app's version it is salvaged."
    return refusal
  }

  func salvage(of stored: QuarantinedStore, from place: StoreFileSet) -> WaitingSalvage {
    let quarantine = quarantine(of: place)
    let work = SalvageWork(
      of: stored.id, in: quarantine.folder, model: coordinator.model, storeOptions: coordinator.storeOptions,
      migration: SalvageMigration(coordinator.migration), surroundings: surroundings,
      observer: observer, home: coordinator.home)
    return WaitingSalvage(quarantine: quarantine, work: work, path: path, logger: coordinator.logger)
  }
}

/// The last check of every page: `checked.json` beside the store's recovery kits.
struct CheckNote: Codable, Equatable {
  /// RFC 3339.
  var date: String

  var appVersion: String?

  /// The damage found, as a stable word.
  var damage: String?

  private static let limit = 4_096

  /// Reads a note; nil if missing or unreadable.
  static func read(of store: FilePath, home: FilePath, in fileSystem: FileSystem) throws(FileError) -> CheckNote? {
    let path = path(of: store, home: home, in: fileSystem)
    guard try fileSystem.status(of: path) != nil else { return nil }
    let bytes = try fileSystem.contents(of: path, limit: limit)
    // An unreadable note only causes a new check.
    return try? JSONDecoder().decode(CheckNote.self, from: Data(bytes))
  }

  func write(of store: FilePath, home: FilePath, in fileSystem: FileSystem) throws(FileError) {
    let path = Self.path(of: store, home: home, in: fileSystem)
    let bytes = try JSON.bytes(of: self, .line, to: "note what was found", at: path)
    try fileSystem.makeDirectory(path.folder, permissions: .init(rawValue: 0o700))
    try fileSystem.writeAtomically(bytes, to: path, replacing: true, permissions: .ownerReadWrite)
  }

  static func remove(of store: FilePath, home: FilePath, in fileSystem: FileSystem) throws(FileError) {
    try fileSystem.unlink(path(of: store, home: home, in: fileSystem))
  }

  private static func path(of store: FilePath, home: FilePath, in fileSystem: FileSystem) -> FilePath {
    KitFolder(for: store, home: home, in: fileSystem).path.appending("checked.json")
  }
}

/// An examiner that waits briefly for a passing lock, which SQLite takes when a last connection closes.
struct RetryingExaminer: Sendable {
  let model: AppModel
  var depth: Examination.Depth
  let fileSystem: FileSystem
  let observer: OpeningObserver

  /// False between the steps of another phase.
  var reports = true

  private static let looks = 11

  private static let pause = 0.03

  func examine(_ place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    var remaining = Self.looks
    while true {
      let examination = try look(at: place, countsRecords: countsRecords)
      remaining -= 1
      let isLocked = examination.verdict == .unavailable && examination.reason.code == FileError.Kind.locked.rawValue
      guard isLocked, remaining > 0 else { return examination }
      Thread.sleep(forTimeInterval: Self.pause)
    }
  }

  private func look(at place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    let (observer, reports) = (observer, reports)
    do {
      return try Examiner(fileSystem: fileSystem).examine(
        place.main, model: model,
        options: .init(depth: depth, countsRecords: countsRecords) { done, total in
          if reports {
            observer.progress(OpeningProgress(phase: .examining, completed: Int64(done), total: Int64(total)))
          }
          return !observer.isCancelled()
        })
    } catch let error as FileError where error.kind == .cancelled {
      throw LazaretError.cancelled(place.main)
    }
  }
}

/// An empty store, complete in memory before it has a place.
struct EmptyStore {
  private let model: AppModel
  private let surroundings: Surroundings
  private let logger: Logger
  private let bytes: [UInt8]

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// The space needed beside a new store: the WAL index has 32 KiB, receipts are smaller.
  private static let reserve: Int64 = 128 << 10

  init(for model: AppModel, surroundings: Surroundings, logger: Logger) throws {
    self.model = model
    self.surroundings = surroundings
    self.logger = logger
    switch model {
    case .coreData(let bundle):
      let current = bundle.current.model
      bytes = try StoreCreation(
        model: current, uuid: surroundings.makeUUID().description, modelCache: try current.modelCache()
      ).bytes()
    case .sqlite(let script, _):
      bytes = try StoreCreation.bytes(of: script)
    }
  }

  /// Writes the store, verified and synced, beside a place, under the caller's folder lock.
  ///
  /// - Parameter access: the replaced store's permissions; nil limits access to the owner.
  func stage(at place: StoreFileSet, access: FileAccess? = nil) throws -> StagedStore {
    let staged = try StagedStore(bytes, for: place, in: fileSystem)
    if let access { try fileSystem.adoptAccess(of: access.usable, to: staged.path) }
    try verify(staged.path)
    // Journal, receipt and SQLite's files must fit too; a full disk must fail before any move.
    guard try fileSystem.freeSpace(at: place.folder) >= Self.reserve else {
      throw FileError(.noSpace, operation: "make room for a new store", path: place.folder)
    }
    return staged
  }

  /// Moves the staged store to its place, under the caller's folder lock.
  func install(_ staged: consuming StagedStore) throws -> OpeningEvent {
    let place = staged.target
    try staged.install()
    logger.info("created a store")
    return .created(place, for: model, at: surroundings.now())
  }

  /// Creates the store, under the caller's folder lock.
  func create(at place: StoreFileSet, access: FileAccess? = nil) throws -> OpeningEvent {
    try install(try stage(at: place, access: access))
  }

  /// Checks every page before another store makes room.
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

/// The copy of a log or journal, not fully understood, that SQLite would fold in or remove.
struct KeptLog {
  let place: StoreFileSet
  let home: FilePath?
  let surroundings: Surroundings

  private var fileSystem: FileSystem { surroundings.fileSystem }

  /// Copies log and journal byte for byte into `Evidence/` of the backup folder, once.
  func keep() throws -> [OpeningEvent] {
    var events: [OpeningEvent] = []
    for part in [StoreFileSet.Part.wal, .journal] {
      let source = place.path(of: part)
      guard let status = try fileSystem.status(of: source), status.size > 0 else { continue }
      let folder = try Backups(home: home ?? place.folder, surroundings: surroundings).claimPlace(of: place.main).path
        .appending("Evidence")
      try fileSystem.makeDirectory(folder)
      let name = part == .wal ? "write-ahead log" : "rollback journal"
      events.append(
        OpeningEvent(
          .backup, at: surroundings.now(),
          path: try copy(source, status.size, named: ".sqlite-\(part.rawValue)", into: folder),
          words: "The store's \(name) does not end as it should: it was kept as it was before the store was opened."))
    }
    return events
  }

  private func copy(_ source: FilePath, _ size: Int64, named ending: String, into folder: FilePath) throws -> FilePath {
    var digest: FileDigest?
    for entry in try fileSystem.entries(of: folder) where entry.string.hasSuffix(ending) {
      let other = folder.appending(entry)
      guard try fileSystem.status(of: other, followingLinks: false)?.size == size else { continue }
      let own = try digest ?? FileDigest(of: fileSystem.open(source))
      digest = own
      if try FileDigest(of: fileSystem.open(other)) == own { return other }
    }
    let unfinished = folder.appending(".log.unfinished")
    _ = try fileSystem.copy(source, to: unfinished)
    var number = 1
    while true {
      let path = folder.appending("\(BackupIdentifier(date: surroundings.now(), number: number))\(ending)")
      number += 1
      if try fileSystem.status(of: path, followingLinks: false) != nil { continue }
      try fileSystem.install(unfinished, at: path, replacing: false)
      try fileSystem.synchronizeDirectory(folder.folder)
      return path
    }
  }
}
