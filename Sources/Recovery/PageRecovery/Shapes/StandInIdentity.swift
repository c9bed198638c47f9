package import ManagedObjectModel
package import PersistentStore

/// What stands in for a store's own metadata and model where nothing of them is found in its bytes.
package struct StandInIdentity: Sendable {
  /// The metadata.
  package var metadata: StoreMetadata

  /// The model that the store was written with; nil where it is not at hand.
  package var model: ManagedObjectModel?

  /// Where it is from, such as `the backup b-2026-11-21-10-11-12`.
  package var origin: String

  /// What is known of a store from elsewhere.
  package init(metadata: StoreMetadata, model: ManagedObjectModel?, origin: String) {
    self.metadata = metadata
    self.model = model
    self.origin = origin
  }
}

extension StoreIdentity {
  /// Takes what is missing from elsewhere; returns what is to be said of that.
  mutating func take(_ standIn: StandInIdentity?) -> [String] {
    guard let standIn else { return [] }
    var remarks: [String] = []
    if metadata == nil {
      metadata = standIn.metadata
      remarks.append("the store's metadata was not found; it is from \(standIn.origin)")
    }
    if cachedModel == nil, let model = standIn.model, model.versionHashes() == metadata?.versionHashes {
      cachedModel = model
      remarks.append("the model that the store carries was not found; it is from \(standIn.origin)")
    }
    return remarks
  }
}
