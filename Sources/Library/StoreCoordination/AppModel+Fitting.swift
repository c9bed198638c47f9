package import Examination
package import StoreFiles
package import SystemPackage

extension AppModel {
  /// The model of several that fits a store best; nil for none.
  ///
  /// Where nothing tells, because the store is damaged, it is the first.
  ///
  /// - Throws: what the file system says.
  package static func fitting(
    _ models: [AppModel], _ store: FilePath, in fileSystem: FileSystem = FileSystem()
  ) throws -> AppModel? {
    guard models.count > 1 else { return models.first }
    let examiner = Examiner(fileSystem: fileSystem)
    var best: (model: AppModel, fit: Int)?
    for model in models {
      let fit = try examiner.examine(store, model: model, options: .init(countsRecords: false)).fit
      if fit > best?.fit ?? -1 { best = (model, fit) }
    }
    return best?.model
  }
}
