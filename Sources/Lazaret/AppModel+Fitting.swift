internal import ManagedObjectModel
internal import Migration
package import PersistentStore
package import Platform
package import SystemPackage

extension AppModel {
  /// The same, with what the mappings and stages of migrations tell of the order of its versions.
  func knowing(_ migration: Migrator.Options) -> AppModel {
    guard case .coreData(let bundle) = self else { return self }
    return .coreData(bundle.knowing(migration.mappings, migration.stages))
  }

  /// The model of several that fits a store best, or all of them merged; nil for none.
  ///
  /// Where nothing tells, because the store is damaged, it is the first.
  package static func fitting(
    _ models: [AppModel], _ store: FilePath, in fileSystem: FileSystem = FileSystem()
  ) -> AppModel? {
    guard models.count > 1 else { return models.first }
    // An app may merge its models into one.
    let bundles = models.compactMap { model -> ModelBundle? in
      if case .coreData(let bundle) = model { bundle } else { nil }
    }
    let merged = bundles.count == models.count ? ModelBundle.merging(bundles).map { [AppModel.coreData($0)] } : nil
    return Examiner(fileSystem: fileSystem).ranked(models + (merged ?? []), for: store) { $0 }.first?.model
  }
}
