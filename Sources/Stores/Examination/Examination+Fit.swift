internal import StoreFiles
package import SystemPackage

extension Examination {
  /// How well the model that a store was compared with fits it: the more, the better; 0 where it does not, or nothing tells.
  package var fit: Int {
    switch verdict {
    case .compatible where health.notes.contains { $0.code == "lacks-tables" }: 3
    case .compatible, .repairable: 5
    case .outdated: 4
    // A version of the model was found, but the store is newer, or damaged.
    case .unavailable, .damaged, .incompatible, .missing:
      modelVersion != nil ? 2 : ["newer-model", "unknown-version"].contains(reason.code) ? 1 : 0
    }
  }
}

extension Examiner {
  /// Models with how well each fits a store, those that fit it best first; in their order where none fits better.
  ///
  /// A store that cannot be looked at tells nothing of its model.
  package func ranked<Model>(
    _ models: [Model], for store: FilePath, _ appModel: (Model) -> AppModel
  ) -> [(model: Model, fit: Int)] {
    let fits = models.enumerated().map { index, model -> (model: Model, fit: Int, index: Int) in
      do {
        let fit = try examine(store, model: appModel(model), options: .init(countsRecords: false)).fit
        return (model, fit, index)
      } catch {
        return (model, 0, index)
      }
    }
    return fits.ordered { ($1.fit, $0.index) < ($0.fit, $1.index) }.map { ($0.model, $0.fit) }
  }
}
