package import Examination
package import StoreFiles
package import SystemPackage

extension AppModel {
  /// The same, with what the mappings and stages of migrations tell of the order of its versions.
  func knowing(_ migration: Migrator.Options) -> AppModel {
    guard case .coreData(let bundle) = self else { return self }
    return .coreData(bundle.knowing(migration.mappings, migration.stages))
  }

  /// The model of several that fits a store best; nil for none.
  ///
  /// Where nothing tells, because the store is damaged, it is the first.
  package static func fitting(
    _ models: [AppModel], _ store: FilePath, in fileSystem: FileSystem = FileSystem()
  ) -> AppModel? {
    guard models.count > 1 else { return models.first }
    return Examiner(fileSystem: fileSystem).ranked(models, for: store) { $0 }.first?.model
  }
}
