public import Foundation
public import Logging
public import ManagedObjectModel
public import Migration
package import PersistentStore
internal import Platform
internal import Salvage
public import SystemPackage

/// An app's store, whatever state it is in: opened, examined, migrated, repaired, salvaged.
///
/// ```swift
/// let model = try StoreModel(contentsOf: modelURL)
/// let store = RecoverableStore(at: storeURL, model: model, home: homeURL)
/// let opening = try await store.open { progress in show(progress.fraction) }
/// if let notice = opening.notice { alert(notice) }
/// // The store is at its place now, and nothing has it open: load it with Core Data, SwiftData or GRDB.
/// ```
///
/// Close every other connection of your process to the store before you work with it here: SQLite's locks belong to the
/// process, and looking at a file can end those of another connection (https://sqlite.org/howtocorrupt.html, section 2.2).
public struct RecoverableStore: Sendable {
  /// The store's main file.
  public let path: FilePath

  /// What the app expects of it.
  public let model: StoreModel

  /// The folder with the catalogue of quarantined stores, `Backups/` and the reports; nil keeps them beside the store and no
  /// catalogue.
  public var home: FilePath?

  /// What is done with a store that cannot simply be opened.
  public var policy: Policy

  /// The app's own version, for receipts and reports.
  public var appVersion: String?

  /// Custom mappings and code of the app's own for migrations, with the product `LazaretMigration`.
  ///
  /// Which version it leads to, where, what may be lost and what is recorded is this library's own affair.
  public var migration = Migrator.Options()

  /// Told of what is done, without values of records.
  public var logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }

  /// A store by the URL of its main file.
  public init(
    at url: URL, model: StoreModel, home: URL? = nil, policy: Policy = Policy(), appVersion: String? = nil
  ) {
    self.init(
      at: FilePath(file: url), model: model, home: home.map { FilePath(file: $0) }, policy: policy,
      appVersion: appVersion)
  }

  /// A store by the path of its main file.
  public init(
    at path: FilePath, model: StoreModel, home: FilePath? = nil, policy: Policy = Policy(), appVersion: String? = nil
  ) {
    self.path = path
    self.model = model
    self.home = home
    self.policy = policy
    self.appVersion = appVersion
  }

  /// The store's main file.
  public var url: URL { URL(file: path) }

  var coordinator: StoreCoordinator {
    StoreCoordinator(
      model: model.model, policy: policy.policy, home: home, appVersion: appVersion, migration: migration,
      logger: logger)
  }

  /// Adds custom mappings: a mapping file (`.json`) or a mapping model (`.xcmappingmodel`, `.cdm`).
  public mutating func addMappings(from url: URL) throws(StoreError) {
    guard case .coreData(let bundle) = model.model else { return }
    let path = FilePath(file: url)
    migration.mappings += try told {
      path.extension?.lowercased() == "json"
        ? try MappingFile.load(path, in: bundle) : try MappingModel.load(path: path, for: bundle).mappings
    }
  }
}

// MARK: - What is done with it

extension RecoverableStore {
  /// Gets the store ready to be opened, whatever state it is in.
  ///
  /// A sound store of the current model stays as it is, and a missing one is created. One of an earlier version is migrated on a
  /// copy, and the original is kept. One that is damaged or incompatible is moved into quarantine as it is and salvaged
  /// there, and a copy of what was salvaged takes its place, unless the policy says otherwise.
  ///
  /// When the task is cancelled the store is as it was, or whole in quarantine with a salvage that the next opening goes on
  /// with.
  ///
  /// - Parameters:
  ///   - progress: reports how far it is.
  ///   - foundDamage: called later, on a thread of its own, where a look at every page in the background finds damage; the
  ///     next opening acts on it.
  /// - Throws: `StoreError`, and `CancellationError`. The old store is whole in its place, or whole in quarantine.
  public func open(
    progress: @escaping StoreProgress.Handler = { _ in }, foundDamage: @escaping @Sendable (Damage) -> Void = { _ in }
  ) async throws -> Opening {
    try await work { cancellation in
      let observer = OpeningObserver(progress, cancellation) { foundDamage(Damage($0)) }
      let opening = try coordinator.open(path, observer: observer)
      // The app opens it with a library of its own, in this process.
      try opening.store.close()
      return Opening(opening)
    }
  }

  /// Says what the store is and what can be done with it; touches nothing.
  ///
  /// - Parameters:
  ///   - depth: how closely it is looked at.
  ///   - countsRecords: whether the records of each entity are counted.
  ///   - progress: reports how far it is.
  public func examine(
    depth: Depth = .quick, countsRecords: Bool = true, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Condition {
    try await work { cancellation in
      let options = Examiner.Options(depth: depth.depth, countsRecords: countsRecords) { done, total in
        progress(StoreProgress(.examining, done: Int64(done), of: Int64(total)))
        return !cancellation.isAsked
      }
      return Condition(try coordinator.examine(path, options: options))
    }
  }

  /// Says what a migration to the current version would do and what it would lose; touches nothing.
  ///
  /// - Parameter tryingSteps: whether steps whose result counting does not tell are carried out on a private copy.
  public func planMigration(tryingSteps: Bool = true) async throws -> Migration.Plan {
    try await work { _ in
      guard let migrator = coordinator.migrator else { throw StoreError.noVersions(path) }
      return Migration.Plan(try migrator.plan(path, options: options(nil, .migrating), tryingSteps: tryingSteps))
    }
  }

  /// Migrates the store to the current version on a copy, which takes its place once it has passed every check; the
  /// original is kept.
  ///
  /// When the task is cancelled between two steps, the finished ones are kept for the next time.
  public func migrate(progress: @escaping StoreProgress.Handler = { _ in }) async throws -> Migration {
    try await work { cancellation in
      guard let migrator = coordinator.migrator else { throw StoreError.noVersions(path) }
      return Migration(try migrator.migrate(path, options: options((progress, cancellation), .migrating)))
    }
  }

  /// Adds what the store lacks of its own version of the model, on a copy; the original is kept.
  ///
  /// - Parameters:
  ///   - includingRecords: whether records and references that break the model's rules are put right too; what is taken out
  ///     is set aside.
  ///   - dryRun: whether it is only said what would be done.
  ///   - progress: reports how far it is.
  public func repair(
    includingRecords: Bool = false, dryRun: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Repair {
    try await work { cancellation in
      guard let migrator = coordinator.migrator else { throw StoreError.noVersions(path) }
      var options = options((progress, cancellation), .repairing)
      options.repair = includingRecords ? .data : .structure
      guard dryRun else { return Repair(try migrator.repair(path, options: options)) }
      return Repair(try migrator.planRepair(path, options: options), isDone: false)
    }
  }

  /// Makes a clean store of every record that is still in the bytes of this one, at another place; the store is only read.
  ///
  /// - Parameters:
  ///   - url: the new store; nothing may be there.
  ///   - findsDeleted: whether deleted records are looked for too; they are set aside.
  ///   - progress: reports how far it is.
  public func salvage(
    to url: URL, findsDeleted: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Salvage {
    try await salvage(to: FilePath(file: url), findsDeleted: findsDeleted, progress: progress)
  }

  /// The same, to a path.
  public func salvage(
    to output: FilePath, findsDeleted: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Salvage {
    try await work { cancellation in
      let kits = [KitFolder(for: path, home: home), KitFolder(for: path, home: nil)]
      let options = Salvager.Options(
        findsDeleted: findsDeleted, kit: .folders(kits), scope: try EvidenceScope(of: path)
      ) { _, done, total in
        progress(StoreProgress(.salvaging, done: done, of: total))
        return !cancellation.isAsked
      }
      let report = try Salvager().salvage(
        path, to: output, model: SalvageModel(model.model), options: options, migration: SalvageMigration(migration))
      return Salvage(report, writtenTo: try report.write(beside: output))
    }
  }

  private func options(
    _ watcher: (progress: StoreProgress.Handler, cancellation: Cancellation)?, _ phase: StoreProgress.Phase
  ) -> Migrator.Options {
    var options = migration
    options.version = nil
    options.output = nil
    options.home = home ?? migration.home
    options.isRecorded = true
    options.whenMigrationLoses = policy.whenMigrationLoses.remedy
    guard let watcher else { return options }
    let own = migration.progress
    options.progress = { step, number, count in
      watcher.progress(StoreProgress(phase, done: Int64(number - 1), of: Int64(count), step: step))
      return !watcher.cancellation.isAsked && own(step, number, count)
    }
    let isCancelled = migration.isCancelled
    options.isCancelled = { watcher.cancellation.isAsked || isCancelled?() == true }
    return options
  }
}

extension StoreError {
  /// The error for a plain SQLite store, whose schema is its app's own affair.
  static func noVersions(_ path: FilePath) -> StoreError {
    StoreError(
      MigrationError(
        .sourceModelMissing, path: path, detail: "a plain SQLite store has no versions of a model",
        hint: "Its app's own migrator changes the schema."))
  }
}

extension RecoverableStore {
  /// What an app wants done with a store that cannot simply be opened.
  public struct Policy: Sendable, Hashable {
    /// What is done with a store that is damaged, or that no way leads from to the app's model.
    public enum Remedy: String, Sendable, Hashable, CaseIterable {
      /// Quarantine it, make a clean store of every record that is still in its bytes, and put a copy of that into its place.
      case salvage

      /// Quarantine it, and begin with an empty store at once; ``StoreQuarantine`` recovers the records later.
      case salvageLater = "salvage-later"

      /// Quarantine it, and begin with an empty store.
      case emptyStore = "empty-store"

      /// Leave it where it is, and throw.
      case refuse
    }

    /// What is done with a sound store that lacks something of its own model.
    public enum RepairRule: String, Sendable, Hashable, CaseIterable {
      /// Add what is missing on a copy, verify that, and put it into the store's place; the original is kept.
      case repair

      /// Open it as it is.
      case keep

      /// Quarantine it and salvage it, as a damaged store.
      case quarantine

      /// Leave it where it is, and throw.
      case refuse
    }

    /// What is done where a migration would delete what the app's version still has.
    public enum LossRule: String, Sendable, Hashable, CaseIterable {
      /// Leave the store as it is, and throw.
      case refuse

      /// Migrate it as Core Data would; the original is kept.
      case migrate
    }

    /// What is done with a file that is nothing of the app's.
    public enum ForeignRule: String, Sendable, Hashable, CaseIterable {
      /// Leave it where it is, and throw.
      case refuse

      /// Treat it as a damaged or an incompatible store.
      case replace
    }

    /// What is done where a salvage gave nothing that the app could open.
    public enum Fallback: String, Sendable, Hashable, CaseIterable {
      /// Begin with an empty store; the old one stays in quarantine.
      case emptyStore = "empty-store"

      /// Throw, and leave the place empty; the next opening tries again.
      case refuse
    }

    /// What is done with a store whose bytes are damaged, or that is no store at all.
    public var whenDamaged: Remedy = .salvage

    /// What is done with a sound store that is not of the app's model, and that no way leads from to it.
    public var whenIncompatible: Remedy = .salvage

    /// What is done with a sound store of an earlier version whose migration failed for a reason in it, and with records of a
    /// damaged one that cannot be migrated.
    ///
    /// Refused, a sound store stays in its place. So does a damaged one, unsalvaged, whose metadata shows that no way leads from its
    /// version; where only the salvage shows that its records cannot be migrated, what was salvaged waits in quarantine. Every
    /// other remedy begins with an empty store then.
    public var whenMigrationFails: Remedy = .refuse

    /// What is done with a sound store whose migration would delete what the app's version still has.
    public var whenMigrationLoses: LossRule = .refuse

    /// What is done with a sound store that lacks something of its own model.
    public var whenRepairable: RepairRule = .repair

    /// What is done where a salvage gave nothing that the app could open; where only a migration failed, ``whenMigrationFails``
    /// decides.
    public var whenSalvageFails: Fallback = .emptyStore

    /// What is done with a file that is nothing of the app's: a sound store of another app, or a file of another kind (a text, a
    /// picture), at a path where no store of the app's was opened, quarantined or backed up before.
    public var whenForeign: ForeignRule = .refuse

    /// How many times a migration that failed for a reason in the store is tried again at once.
    public var migrationRetries = 0

    /// How closely a store is looked at before it is opened.
    public var depth: Depth = .quick

    /// How old the last look at every page is at least when the next one is taken in the background; nil takes none.
    public var checkInterval: Duration? = .seconds(7 * 86400)

    /// How old the newest recovery kit is at least when the next one is noted in the background; nil notes none.
    public var recoveryKitInterval: Duration? = .seconds(86400)

    /// A policy by which nothing is refused but to replace a store that could not be migrated.
    public init() {}

    /// A policy by which every store stays where it is unless it can be opened as it is or repaired, for servers.
    public static var refusing: Policy {
      var policy = Policy()
      (policy.whenDamaged, policy.whenIncompatible, policy.whenMigrationFails) = (.refuse, .refuse, .refuse)
      policy.whenSalvageFails = .refuse
      return policy
    }
  }

  /// How closely a store is looked at.
  public enum Depth: String, Sendable, Hashable, CaseIterable {
    /// Header, log, schema, metadata and model: some milliseconds, whatever the size; every page where damage is met.
    case quick

    /// Every page.
    case full

    /// The same, for the modules below.
    var depth: Examination.Depth { self == .quick ? .quick : .full }
  }
}

extension RecoverableStore.Policy {
  /// The same, for the modules below.
  var policy: OpeningPolicy {
    var policy = OpeningPolicy(
      whenDamaged: whenDamaged.remedy, whenIncompatible: whenIncompatible.remedy,
      whenMigrationFails: whenMigrationFails.remedy, whenMigrationLoses: whenMigrationLoses.remedy,
      whenSalvageFails: whenSalvageFails == .refuse ? .refuse : .emptyStore, migrationRetries: migrationRetries,
      depth: depth.depth, checkInterval: checkInterval, recoveryKitInterval: recoveryKitInterval)
    policy.whenForeign = whenForeign == .refuse ? .refuse : .replace
    policy.whenRepairable =
      switch whenRepairable {
      case .repair: .repair
      case .keep: .keep
      case .quarantine: .quarantine
      case .refuse: .refuse
      }
    return policy
  }
}

extension RecoverableStore.Policy.Remedy {
  /// The same, for the modules below.
  var remedy: OpeningPolicy.Remedy {
    switch self {
    case .salvage: .salvage
    case .salvageLater: .salvageLater
    case .emptyStore: .emptyStore
    case .refuse: .refuse
    }
  }
}

extension RecoverableStore.Policy.LossRule {
  /// The same, for the modules below.
  var remedy: LossRemedy { self == .refuse ? .refuse : .migrate }
}

/// What an app expects of its store: the versions of a managed object model, or the schema of a plain SQLite store.
public struct StoreModel: Sendable {
  /// A version of a managed object model.
  public struct Version: Sendable, Hashable {
    /// What it is called.
    public let name: String

    /// The checksum over the hashes of its entities, as Core Data computes it.
    public let checksum: String

    /// Whether it is the one that the app opens its store with.
    public let isCurrent: Bool
  }

  /// The same, for the modules below.
  package let model: AppModel

  /// A model that was loaded.
  init(_ model: AppModel) { self.model = model }

  /// Loads a `.xcdatamodeld`, `.xcdatamodel`, `.momd`, `.mom`, or a `.sql` schema file.
  ///
  /// - Parameters:
  ///   - url: the file or folder.
  ///   - order: the names of all versions, oldest first; nil for their natural order with the current one last.
  public init(contentsOf url: URL, order: [String]? = nil) throws(StoreError) {
    try self.init(contentsOf: FilePath(file: url), order: order)
  }

  /// The same, by a path.
  public init(contentsOf path: FilePath, order: [String]? = nil) throws(StoreError) {
    model = try told { try AppModel.load(path, order: order) }
  }

  /// The versions of a model that was put together by other means, such as the product `SwiftModelSources`.
  public init(_ bundle: ModelBundle) { model = .coreData(bundle) }

  /// The versions, oldest first as far as that is known; empty for a schema file.
  public var versions: [Version] {
    guard case .coreData(let bundle) = model else { return [] }
    return bundle.versions.map { Version(name: $0.name, checksum: $0.checksum, isCurrent: $0.isCurrent) }
  }

  /// The name of the version that the app opens its store with, or that of the schema file.
  public var currentVersion: String { model.currentVersionName }
}
