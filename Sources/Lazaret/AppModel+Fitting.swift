internal import ManagedObjectModel
internal import Migration
package import PersistentStore
package import Platform
package import SystemPackage

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
