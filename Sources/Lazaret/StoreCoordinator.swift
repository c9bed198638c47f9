package import Logging
internal import ManagedObjectModel
package import Migration
package import PersistentStore
package import Platform
package import SystemPackage

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
/// it is, salvaged there, and a copy of what was salvaged takes its place, unless the policy says otherwise. One that is unavailable
/// (locked, forbidden, newer than the app) stays where it is, and the error says what to do.
///
/// Close every other connection of your process to the store before you open it: SQLite's locks belong to the process, and
/// looking at a file can end those of another connection (https://sqlite.org/howtocorrupt.html, section 2.2).
package struct StoreCoordinator: Sendable {
  /// What the app expects of its store.
  package let model: AppModel

  /// What the app wants done with a store that cannot simply be opened.
  package let policy: OpeningPolicy

  /// The folder with the catalogue of quarantined stores, the backups of migrations, their reports and their metrics; nil
  /// keeps no catalogue, and the others beside the store.
  package let home: FilePath?

  /// How stores of earlier versions are migrated: custom mappings and what belongs to them.
  ///
  /// The version, the output, the home, whether it is recorded and what may be lost (``OpeningPolicy/whenMigrationLoses``) are
  /// the coordinator's own affair.
  package let migration: Migrator.Options

  /// The app's own version, for receipts.
  package let appVersion: String?

  /// How the store is opened in the end.
  package let storeOptions: PersistentStore.Options

  let surroundings: Surroundings
  let logger: Logger

  /// A coordinator for stores of one model.
  package init(
    model: AppModel, policy: OpeningPolicy = OpeningPolicy(), home: FilePath? = nil, appVersion: String? = nil,
    storeOptions: PersistentStore.Options = PersistentStore.Options(),
    migration: Migrator.Options = Migrator.Options(), surroundings: Surroundings = .machine,
    logger: Logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
  ) {
    self.model = model.knowing(migration)
    self.policy = policy
    self.home = home
    self.appVersion = appVersion
    self.storeOptions = storeOptions
    self.migration = migration
    self.surroundings = surroundings
    self.logger = logger
  }

  /// Looks at a store; touches nothing.
  package func examine(
    _ path: FilePath, options: Examiner.Options = Examiner.Options()
  ) throws -> Examination {
    try Examiner(fileSystem: fileSystem).examine(path, model: model, options: options)
  }

  /// Opens the store at a path.
  ///
  /// - Throws: `LazaretError` where the store stays closed as it is; `FileError`, `PersistentStoreError`,
  ///   `MigrationError`, `QuarantineError` where a step failed. `isEnvironmental` tells whether the surroundings are at fault. Whatever is
  ///   thrown, the old store is whole in its place or whole in quarantine, and opening again goes on from there.
  package func open(_ path: FilePath, observer: OpeningObserver = OpeningObserver()) throws -> Opening {
    try FileError.requireDescriptors(to: "open the store", path: path)
    return try OpeningMachine(coordinator: self, path: path, observer: observer).run()
  }
}

// MARK: - What an opening works with

extension StoreCoordinator {
  var fileSystem: FileSystem { surroundings.fileSystem }

  /// The version of the model that the store is opened with; nil for a schema without Core Data's tables.
  var currentModel: ManagedObjectModel? {
    if case .coreData(let bundle) = model { bundle.current.model } else { nil }
  }

  /// Migrates the stores of the app's model; nil for a schema without Core Data's tables.
  package var migrator: Migrator? {
    guard case .coreData(let bundle) = model else { return nil }
    var migrator = Migrator(bundle, surroundings: surroundings, logger: logger)
    migrator.appVersion = appVersion
    migrator.keepOriginals(by: surroundings)
    let (current, options) = (bundle.current.model, storeOptions)
    // As it is opened in the end: what this finds wrong brings the original back.
    migrator.checkOpening = { path in
      let store = try PersistentStore(opening: path, model: current, options: options)
      _ = try store.metadata()
      try store.close()
    }
    return migrator
  }
}
