public import Foundation
public import Logging
public import ManagedObjectModel
public import Migration
package import PersistentStore
internal import Platform
internal import Salvage
public import SystemPackage

/// An app's store in any state.
///
/// ```swift
/// let model = try StoreModel(contentsOf: modelURL)
/// let store = RecoverableStore(at: storeURL, model: model, home: homeURL)
/// let opening = try await store.open { progress in show(progress.fraction) }
/// if let notice = opening.notice { alert(notice) }
/// // The store is ready and closed: load it with Core Data, SwiftData or GRDB.
/// ```
///
/// First close your process's other connections to the store: SQLite's locks belong to the process, and reading a file
/// can drop those of another connection (https://sqlite.org/howtocorrupt.html, section 2.2).
public struct RecoverableStore: Sendable {
  /// The main file.
  public let path: FilePath

  /// The app's model.
  public let model: StoreModel

  /// The folder for the quarantine catalogue, `Backups/` and reports; nil keeps these beside the store, without a
  /// catalogue.
  public var home: FilePath?

  /// The rules for a store that does not open directly.
  public var policy: Policy

  /// For receipts and reports.
  public var appVersion: String?

  /// Custom mappings and code, from the product `LazaretMigration`.
  ///
  /// The library itself sets target version, place, permitted losses and records.
  public var migration = Migrator.Options()

  /// Receives no values of records.
  public var logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }

  /// Creates a store by URL.
  public init(at url: URL, model: StoreModel, home: URL? = nil, policy: Policy = Policy(), appVersion: String? = nil) {
    self.init(
      at: FilePath(file: url), model: model, home: home.map { FilePath(file: $0) }, policy: policy,
      appVersion: appVersion)
  }

  /// Creates a store by path.
  public init(
    at path: FilePath, model: StoreModel, home: FilePath? = nil, policy: Policy = Policy(), appVersion: String? = nil
  ) {
    self.path = path
    self.model = model
    self.home = home
    self.policy = policy
    self.appVersion = appVersion
  }

  /// The main file.
  public var url: URL { URL(file: path) }

  var coordinator: StoreCoordinator {
    StoreCoordinator(
      model: model.model, policy: policy, home: home, appVersion: appVersion, migration: migration, logger: logger)
  }

  /// Adds a mapping file (`.json`) or a mapping model (`.xcmappingmodel`, `.cdm`).
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
  /// Prepares a store in any state for opening.
  ///
  /// By default a missing store is created, an earlier version migrated on a copy with its original kept, and a damaged
  /// or incompatible store quarantined, salvaged and replaced by a copy of the result. Cancellation leaves the store
  /// unchanged, or whole in quarantine with a salvage that the next opening continues.
  ///
  /// - Parameters:
  ///   - progress: called with the work done.
  ///   - foundDamage: called later on its own thread if the background check finds damage; the next opening acts on it.
  /// - Throws: `StoreError`, and `CancellationError`. The old store is whole at its path or in quarantine.
  public func open(
    progress: @escaping StoreProgress.Handler = { _ in }, foundDamage: @escaping @Sendable (Damage) -> Void = { _ in }
  ) async throws -> Opening {
    try await work { cancellation in
      let observer = OpeningObserver(progress, cancellation) { foundDamage(Damage($0)) }
      let opening = try coordinator.open(path, observer: observer)
      // The app opens it with a library of its own.
      try opening.store.close()
      return Opening(opening)
    }
  }

  /// Examines the store without changing it.
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

  /// Forecasts a migration to the current version without changing the store.
  ///
  /// - Parameter tryingSteps: runs steps with uncountable results on a private copy.
  public func planMigration(tryingSteps: Bool = true) async throws -> Migration.Plan {
    try await work { _ in
      guard let migrator = coordinator.migrator else { throw StoreError.noVersions(path) }
      return Migration.Plan(try migrator.plan(path, options: options(nil, .migrating), tryingSteps: tryingSteps))
    }
  }

  /// Migrates the store on a copy, which is installed after every check; the original is kept.
  ///
  /// After a cancellation the next migration reuses finished steps.
  public func migrate(progress: @escaping StoreProgress.Handler = { _ in }) async throws -> Migration {
    try await work { cancellation in
      guard let migrator = coordinator.migrator else { throw StoreError.noVersions(path) }
      return Migration(try migrator.migrate(path, options: options((progress, cancellation), .migrating)))
    }
  }

  /// Adds missing parts of the store's own model on a copy; the original is kept.
  ///
  /// - Parameters:
  ///   - includingRecords: also fixes records and references that break the model's rules, setting removed data aside.
  ///   - dryRun: only reports the changes.
  ///   - progress: called with the work done.
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

  /// Salvages every record in the store's bytes into a new store; this one is only read.
  ///
  /// - Parameters:
  ///   - url: a free path.
  ///   - findsDeleted: also looks for deleted records, which are set aside.
  ///   - progress: called with the work done.
  public func salvage(
    to url: URL, findsDeleted: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Salvage {
    try await salvage(to: FilePath(file: url), findsDeleted: findsDeleted, progress: progress)
  }

  /// Salvages the store to a path.
  public func salvage(
    to output: FilePath, findsDeleted: Bool = false, progress: @escaping StoreProgress.Handler = { _ in }
  ) async throws -> Salvage {
    try await work { cancellation in
      let kits = [KitFolder(for: path, home: home), KitFolder(for: path, home: nil)]
      var options = Salvager.Options(
        findsDeleted: findsDeleted, kit: .folders(kits), scope: try EvidenceScope(of: path)
      ) { _, done, total in
        progress(StoreProgress(.salvaging, done: done, of: total))
        return !cancellation.isAsked
      }
      options.writesReport = true
      let report = try Salvager().salvage(
        path, to: output, model: SalvageModel(model.model), options: options, migration: SalvageMigration(migration))
      return Salvage(report, writtenTo: SalvageReport.path(beside: output))
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

extension RecoverableStore {
  /// A store ready to be opened.
  public struct Opening: Sendable {
    /// The main file; only a background check keeps it open.
    public let path: FilePath

    /// The condition at the beginning.
    public let condition: Condition

    /// The actions taken, in order.
    public let events: [Event]

    /// The notice for the app's user.
    public let notice: Notice?

    /// Whether the user lost data or lacks it for now: an empty store, lost or doubtful records, losses of a migration.
    public let isWithLosses: Bool

    /// The migration's losses.
    public let losses: [Loss]

    /// The salvage.
    public let salvage: Salvage?

    /// The quarantined store.
    public let quarantined: URL?

    private let pass: BackgroundPass?

    /// The main file.
    public var url: URL { URL(file: path) }

    /// Waits for the background check, for an app that exits soon.
    ///
    /// - Returns: the damage found.
    @discardableResult public func waitForCheck() async throws -> Damage? {
      guard let pass else { return nil }
      return try await work { _ in
        switch pass.wait().check {
        case .damaged(let damage): Damage(damage)
        case .sound, .notDue: nil
        case .failed(let error): throw error
        }
      }
    }

    init(_ opening: Lazaret.Opening) {
      path = opening.store.path
      condition = Condition(opening.examination)
      events = opening.events.map(Event.init)
      notice = opening.notice.map { Notice($0, opening.events) }
      isWithLosses = opening.isWithLosses
      losses = opening.losses.map(Loss.init)
      salvage = opening.salvage.map(Salvage.init)
      quarantined = opening.quarantinedPath.map { URL(file: $0) }
      pass = opening.backgroundPass
    }
  }

  /// The app's rules for a store that does not open directly.
  public typealias Policy = OpeningPolicy

  /// An examination's depth.
  public enum Depth: String, Sendable, Hashable, CaseIterable {
    /// Header, log, schema, metadata and model, in milliseconds at any size; every page on damage.
    case quick

    /// Every page.
    case full

    var depth: Examination.Depth { self == .quick ? .quick : .full }
  }
}

/// The versions of a managed object model, or a plain SQLite schema.
public struct StoreModel: Sendable {
  /// A managed object model's version.
  public struct Version: Sendable, Hashable {
    /// The name.
    public let name: String

    /// Core Data's checksum over the entities' hashes.
    public let checksum: String

    /// Whether the app opens its store with it.
    public let isCurrent: Bool
  }

  package let model: AppModel

  init(_ model: AppModel) { self.model = model }

  /// Loads a `.xcdatamodeld`, `.xcdatamodel`, `.momd`, `.mom`, or a `.sql` schema file.
  ///
  /// - Parameters:
  ///   - url: the model or schema.
  ///   - order: all version names, oldest first; nil takes their natural order with the current one last.
  public init(contentsOf url: URL, order: [String]? = nil) throws(StoreError) {
    try self.init(contentsOf: FilePath(file: url), order: order)
  }

  /// Loads a model or schema by path.
  public init(contentsOf path: FilePath, order: [String]? = nil) throws(StoreError) {
    model = try told { try AppModel.load(path, order: order) }
  }

  /// Wraps a model, for instance from `SwiftModelSources`.
  public init(_ bundle: ModelBundle) { model = .coreData(bundle) }

  /// Oldest first as far as known; empty for a schema.
  public var versions: [Version] {
    guard case .coreData(let bundle) = model else { return [] }
    return bundle.versions.map { Version(name: $0.name, checksum: $0.checksum, isCurrent: $0.isCurrent) }
  }

  /// The current version's or the schema's name.
  public var currentVersion: String { model.currentVersionName }
}
