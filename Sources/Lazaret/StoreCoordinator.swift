import Foundation
public import Logging
internal import RecoveryKit

/// Opens an app's store, whatever state it is in.
///
/// ```swift
/// let coordinator = StoreCoordinator(model: try AppModel.load("App.xcdatamodeld"))
/// let opening = try coordinator.open("Stores/App.sqlite")
/// if let notice = opening.notice { show(notice) }
/// ```
///
/// A sound store of the current model is simply opened, and a missing one created. One of an earlier version is migrated on a
/// copy, step by step, and the original is kept as a backup. One that is damaged or incompatible is moved into quarantine as
/// it is, salvaged there, and a copy of what was salvaged takes its place, unless the policy says otherwise. One that cannot be had now
/// (locked, forbidden, newer than the app) stays where it is, and the error says what to do.
///
/// Close every other connection of your process to the store before you open it: SQLite's locks belong to the process, and
/// looking at a file can end those of another connection (https://sqlite.org/howtocorrupt.html, section 2.2).
public struct StoreCoordinator: Sendable {
  /// What the app expects of its store.
  public let model: AppModel

  /// What the app wants done with a store that cannot simply be opened.
  public let policy: OpeningPolicy

  /// The folder with the catalogue of quarantined stores, the backups of migrations, their reports and their metrics; nil
  /// keeps no catalogue, and the others beside the store.
  public let home: FilePath?

  /// How stores of earlier versions are migrated: custom mappings and what belongs to them.
  ///
  /// The version, the output, the home, whether it is recorded and what may be lost (``OpeningPolicy/whenMigrationLoses``) are
  /// the coordinator's own affair.
  public let migration: Migrator.Options

  /// The app's own version, for receipts.
  public let appVersion: String?

  /// How the store is opened in the end.
  public let storeOptions: PersistentStore.Options

  let surroundings: Surroundings
  let logger: Logger

  /// A coordinator for stores of one model.
  public init(
    model: AppModel, policy: OpeningPolicy = OpeningPolicy(), home: FilePath? = nil, appVersion: String? = nil,
    storeOptions: PersistentStore.Options = PersistentStore.Options(),
    migration: Migrator.Options = Migrator.Options(), surroundings: Surroundings = .machine,
    logger: Logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
  ) {
    if case .coreData(let bundle) = model {
      // Where mappings and stages lead tells which versions came before which.
      self.model = .coreData(bundle.knowing(migration.mappings, migration.stages))
    } else {
      self.model = model
    }
    self.policy = policy
    self.home = home
    self.appVersion = appVersion
    self.storeOptions = storeOptions
    self.migration = migration
    self.surroundings = surroundings
    self.logger = logger
  }

  var fileSystem: FileSystem { surroundings.fileSystem }

  /// Looks at a store; touches nothing.
  public func examine(
    _ path: FilePath, options: Examiner.Options = Examiner.Options()
  ) throws -> Examination {
    try Examiner(fileSystem: fileSystem).examine(path, model: model, options: options)
  }

  /// Opens the store at a path.
  ///
  /// - Throws: `LazaretError` where the store stays closed as it is; `FileError`, `PersistentStoreError`,
  ///   `MigrationError`, `QuarantineError` where a step failed. `isEnvironmental` tells whether the surroundings are at fault. Whatever is
  ///   thrown, the old store is whole in its place or whole in quarantine, and opening again goes on from there.
  public func open(_ path: FilePath, observer: OpeningObserver = OpeningObserver()) throws -> Opening {
    var events: [OpeningEvent] = []
    for _ in 0..<Self.beginnings {
      do {
        return try open(path, observer, &events)
      } catch is BeginAnew {
        // Another process was at it meanwhile; if it ended while it was replacing the store, that is finished first.
        continue
      }
    }
    throw FileError(.changed, operation: "open the store", path: path)
  }

  /// How many times an opening begins anew because other processes end while they replace the store.
  private static let beginnings = 5

  private func open(
    _ path: FilePath, _ observer: OpeningObserver, _ events: inout [OpeningEvent]
  ) throws -> Opening {
    try observer.report(.examining, at: path)
    events += try finishInterrupted(path)
    events += try finishRestore(path)
    events += try finishBeginAnew(path)
    let place = try locate(path)
    RecoveryKitNote.waitForRunning(of: place.main)
    var examination = try look(at: place, countsRecords: false)
    logger.debug("examined", metadata: ["verdict": "\(examination.verdict)", "reason": "\(examination.reason.code)"])
    var isReplaced = false
    var migrated: Migrator.Result?
    var failure: MigrationError?
    switch try decide(examination, at: path) {
    case .open:
      events += try untold(place)
      removeLeftovers(place)
    case .replace:
      events += try replace(place, examination, named: path, observer)
      isReplaced = true
    case .migrate:
      events += try untold(place)
      switch try migrate(place, examination, named: path, observer) {
      case .done(let result, let backup):
        migrated = result
        if let backup { events.append(backup) }
        if let result { events += self.events(of: result) }
      case .failed(let judged, let error):
        (examination, failure) = (judged, error)
        events += try replace(place, examination, named: path, observer)
        isReplaced = true
      }
    }
    // Once a store has been replaced there is no way back, so nobody is asked any more.
    if isReplaced || migrated != nil {
      observer.progress(.init(phase: .opening))
    } else {
      try observer.report(.opening, at: path)
    }
    let store: PersistentStore
    do {
      store = try PersistentStore(opening: place.main, model: currentModel, options: storeOptions)
    } catch {
      guard !isReplaced, let damage = VerdictReason(damageFoundBy: error) else { throw error }
      if let migrated, let backup = migrated.backup {
        failure = try takeBack(place, from: backup, because: error, &events)
        guard let failure, case .failed(let judged, _) = try decide(about: failure, examination, at: path) else {
          throw error
        }
        examination = judged
      } else {
        // SQLite sees damage where a quick look saw none.
        examination.verdict = .damaged
        examination.reason = damage
        guard try decide(examination, at: path) == .replace else { throw error }
      }
      events += try replace(place, examination, named: path, observer)
      observer.progress(.init(phase: .opening))
      store = try PersistentStore(opening: place.main, model: currentModel, options: storeOptions)
    }
    let pending = PendingNotice(for: place, in: fileSystem)
    do {
      if try pending.isThere() { try pending.remove() }
    } catch {
      // The next opening tells of it. The first error is the one to report; nothing was written through this connection.
      try? store.close()
      throw error
    }
    // Whoever set the store aside, in this run or an interrupted earlier one, its owner is told.
    let reason = events.last { $0.reason != nil }?.reason
    let report = failure?.reportPath.map { PathText($0) }
    if let last = events.lastIndex(where: { $0.kind == .quarantine }) { events[last].report = report }
    let salvage = events.last { $0.salvage != nil }?.salvage
    return Opening(
      store: store, examination: examination, events: events,
      notice: reason.map { .setAside($0, salvage, report: report) } ?? .leftOut(by: events),
      recoveryKit: isReplaced ? nil : noteKit(of: place))
  }

  /// Begins to note a recovery kit of the store that is open now, where the policy wants one and there is a home for it.
  private func noteKit(of place: StoreFileSet) -> RecoveryKitNote? {
    guard let home, let interval = policy.recoveryKitInterval else { return nil }
    return RecoveryKitNote(
      of: place, in: KitFolder(for: place.main, home: home, in: fileSystem), every: interval, surroundings: surroundings
    )
  }

  /// Brings the original back, because the migrated store does not open after all.
  private func takeBack(
    _ place: StoreFileSet, from backup: FilePath, because error: PersistentStoreError, _ events: inout [OpeningEvent]
  ) throws -> MigrationError {
    try migrator?.takeBack(place.main, from: backup)
    events.removeAll { $0.kind == .backup || $0.kind == .migration }
    return MigrationError(
      .verificationFailed, operation: "open the migrated store", path: place.main,
      detail: "it does not open in its place: \(error.detail)")
  }

  /// Looks at a store, and waits a moment for a lock that is only passing: SQLite takes one whenever a last connection
  /// closes.
  func look(at place: StoreFileSet, countsRecords: Bool) throws -> Examination {
    let options = Examiner.Options(depth: policy.depth, countsRecords: countsRecords)
    for _ in 0..<10 {
      let examination = try examine(place.main, options: options)
      guard examination.verdict == .unavailable, examination.reason.code == "locked" else { return examination }
      Thread.sleep(forTimeInterval: 0.03)
    }
    return try examine(place.main, options: options)
  }

  /// What is done about a verdict.
  enum Decision {
    /// The store is opened as it is.
    case open

    /// What is there makes room for what is salvaged of it, or for an empty store.
    case replace

    /// The store is migrated to the app's version.
    case migrate
  }

  /// Decides what a verdict leads to, by the app's policy.
  ///
  /// - Throws: `LazaretError` where the store stays as it is.
  func decide(_ examination: Examination, at path: FilePath) throws(LazaretError) -> Decision {
    switch examination.verdict {
    case .compatible: return .open
    case .missing: return .replace
    case .unavailable: throw LazaretError(.unavailable, examination, path: path)
    case .outdated:
      // Once its migration has failed, the policy has been asked already.
      return examination.reason.code == VerdictReason.migrationFailedCode ? .replace : .migrate
    case .incompatible:
      if policy.whenIncompatible == .refuse { throw LazaretError(.incompatible, examination, path: path) }
      return .replace
    case .damaged:
      if policy.whenDamaged == .refuse { throw LazaretError(.damaged, examination, path: path) }
      return .replace
    }
  }

  private var currentModel: ManagedObjectModel? {
    if case .coreData(let bundle) = model { bundle.current.model } else { nil }
  }
}

extension VerdictReason {
  /// The code of damage that only SQLite saw.
  static let foundBySQLiteCode = "damage-found-by-sqlite"

  /// The damage that SQLite reported when it opened a store; nil for any other error.
  fileprivate init?(damageFoundBy error: PersistentStoreError) {
    guard error.kind == .damaged || error.kind == .notADatabase else { return nil }
    self.init(
      Self.foundBySQLiteCode, words: "SQLite refuses to open the store: \(error.detail).",
      hint: "Open it with the app's model to have it quarantined and replaced; nothing of it is thrown away.",
      coreData: 259, sqlite: error.resultCode.map { Int($0 & 0xFF) })
  }
}
