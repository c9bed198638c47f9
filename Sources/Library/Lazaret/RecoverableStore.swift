public import Foundation
public import Logging
public import Migration
internal import RecoveryKit
internal import StoreCoordination
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
