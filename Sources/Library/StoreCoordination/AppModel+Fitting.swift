package import Examination
package import StoreFiles
package import SystemPackage

extension AppModel {
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
