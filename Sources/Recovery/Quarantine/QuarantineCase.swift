package import StoreFiles

/// What is known of a store when it is quarantined: the receipt's content apart from names, times and digests.
package struct QuarantineCase: Sendable, Hashable, Codable {
  /// Why it is quarantined.
  package var reason: Receipt.Reason

  /// The numbers that SQLite and Core Data would have reported.
  package var error: Receipt.ErrorCodes

  /// The model it was written with; nil where it could not be told.
  package var model: Receipt.Model?

  /// The records that could be counted; nil where it could not be read so far.
  package var entities: [EntityCount]?

  /// The versions of everything that had a part in it.
  package var versions: Receipt.Versions

  /// What is asked for as to its salvage; nil for nothing.
  package var salvage: Receipt.Salvage?

  /// The backup that is put into the place after it; nil for none.
  package var makesRoomFor: StoreLineage.Restored?

  /// What is known of a store.
  package init(
    reason: Receipt.Reason, error: Receipt.ErrorCodes = .init(), model: Receipt.Model? = nil,
    entities: [EntityCount]? = nil, versions: Receipt.Versions
  ) {
    self.reason = reason
    self.error = error
    self.model = model
    self.entities = entities
    self.versions = versions
  }
}
