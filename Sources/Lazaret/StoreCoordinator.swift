internal import Backup
package import Logging
internal import ManagedObjectModel
package import Migration
package import PersistentStore
package import Platform
package import SystemPackage

/// Opens an app's store in any state.
///
/// ```swift
/// let coordinator = StoreCoordinator(model: try AppModel.load("App.xcdatamodeld"))
/// let opening = try coordinator.open("Stores/App.sqlite")
/// if let notice = opening.notice { show(notice) }
/// ```
///
/// By default a missing store is created, an earlier version migrated on a copy with its original kept, and a damaged
/// or incompatible store quarantined, salvaged and replaced by a copy of the result. An unavailable store (locked,
/// forbidden, newer than the app) stays at its path.
///
/// First close the process's other connections to the store: reading a file can drop their locks
/// (https://sqlite.org/howtocorrupt.html, section 2.2).
package struct StoreCoordinator: Sendable {
  let model: AppModel

  let policy: OpeningPolicy

  /// The folder for the quarantine catalogue and migrations' backups, reports and metrics; nil keeps these beside the
  /// store, without a catalogue.
  let home: FilePath?

  /// Custom mappings and their options.
  ///
  /// The coordinator sets version, output, home, recording and permitted losses (``OpeningPolicy/whenMigrationLoses``).
  let migration: Migrator.Options

  /// For receipts.
  let appVersion: String?

  /// The final connection's options.
  let storeOptions: PersistentStore.Options

  let surroundings: Surroundings
  let logger: Logger

  package init(
    model: AppModel, policy: OpeningPolicy = OpeningPolicy(), home: FilePath? = nil, appVersion: String? = nil,
    storeOptions: PersistentStore.Options = PersistentStore.Options(), migration: Migrator.Options = Migrator.Options(),
    surroundings: Surroundings = .machine, logger: Logger = Logger(label: "lazaret") { _ in SwiftLogNoOpLogHandler() }
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

  package func examine(_ path: FilePath, options: Examiner.Options = Examiner.Options()) throws -> Examination {
    try Examiner(fileSystem: fileSystem).examine(path, model: model, options: options)
  }

  /// Opens the store at a path.
  ///
  /// - Throws: `LazaretError` if the store stays closed; `FileError`, `PersistentStoreError`, `MigrationError` if a
  ///   step failed. After any error the old store is whole at its path or in quarantine, and opening again continues.
  package func open(_ path: FilePath, observer: OpeningObserver = OpeningObserver()) throws -> Opening {
    try FileError.requireDescriptors(to: "open the store", path: path)
    return try OpeningMachine(coordinator: self, path: path, observer: observer).run()
  }
}

// MARK: - What an opening works with

extension StoreCoordinator {
  var fileSystem: FileSystem { surroundings.fileSystem }

  var currentModel: ManagedObjectModel? {
    if case .coreData(let bundle) = model { bundle.current.model } else { nil }
  }

  /// Nil for a schema without Core Data's tables.
  var migrator: Migrator? {
    guard case .coreData(let bundle) = model else { return nil }
    var migrator = Migrator(bundle, surroundings: surroundings, logger: logger)
    migrator.appVersion = appVersion
    migrator.keepOriginals(by: surroundings)
    let (current, options) = (bundle.current.model, storeOptions)
    // With the final connection's options: a fault brings the original back.
    migrator.checkOpening = { path in
      let store = try PersistentStore(opening: path, model: current, options: options)
      _ = try store.metadata()
      try store.close()
    }
    return migrator
  }
}

extension AppModel {
  func knowing(_ migration: Migrator.Options) -> AppModel {
    guard case .coreData(let bundle) = self else { return self }
    return .coreData(bundle.knowing(migration.mappings, migration.stages))
  }

  /// Returns the best-fitting model, or the merge of all; the first if the store is too damaged to decide.
  package static func fitting(
    _ models: [AppModel], _ store: FilePath, in fileSystem: FileSystem = FileSystem()
  ) -> AppModel? {
    guard models.count > 1 else { return models.first }
    let bundles = models.compactMap { model -> ModelBundle? in
      if case .coreData(let bundle) = model { bundle } else { nil }
    }
    let merged = bundles.count == models.count ? ModelBundle.merging(bundles).map { [AppModel.coreData($0)] } : nil
    return Examiner(fileSystem: fileSystem).ranked(models + (merged ?? []), for: store) { $0 }.first?.model
  }
}

extension Migrator {
  /// Keeps originals in the backup places of their stores.
  package mutating func keepOriginals(by surroundings: Surroundings = .machine) {
    backupsFolder = { (store, home) throws(FileError) in
      do {
        return try Backups(home: home, surroundings: surroundings).claimPlace(of: store.main).path
      } catch {
        let error = BackupError(any: error)
        throw error.fileError
          ?? FileError(.other, because: error, operation: "make the folder of the backups", path: home)
      }
    }
  }
}
