package import ManagedObjectModel

extension StoreDrift {
  /// What a store lacks of a layout, and what its bookkeeping has other than it.
  ///
  /// - Parameters:
  ///   - outline: what the store has.
  ///   - layout: that of the model which the store's metadata names.
  ///   - hashes: the version hashes of that model.
  package init(of outline: StoreOutline, to layout: StoreLayout, hashes: [String: VersionHash]) {
    self.init()
    var comparison = DriftComparison(outline, layout)
    comparison.compareTables()
    comparison.compareIndexes()
    comparison.compareTriggers()
    comparison.compareKeyRows()
    comparison.compareRows()
    if case .model(let cached) = outline.cachedModel, cached != hashes {
      comparison.drift.differences.append(.otherModelCached)
    }
    self = comparison.drift
  }
}
