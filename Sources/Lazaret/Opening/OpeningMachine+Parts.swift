import Backup
import Foundation
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
      model: coordinator.model, depth: note?.damage == nil ? policy.depth.depth : .full, fileSystem: fileSystem,
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
      id: stored.id, folder: quarantine.folder, model: coordinator.model, storeOptions: coordinator.storeOptions,
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
