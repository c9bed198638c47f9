internal import ManagedObjectModel
package import PersistentStore
package import Platform

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

extension QuarantineCase {
  /// The reason's code of a store that was quarantined on request.
  package static let requestCode = "by-request"

  /// The reason's code where no main file was there.
  static let leftoversCode = "no-store-but-leftovers"

  /// What an examination knows that belongs on a receipt.
  ///
  /// - Parameter appVersion: the app's own version, as its makers write it.
  package init(_ examination: Examination, appVersion: String?) {
    let metadata = examination.metadata
    var reason = Receipt.Reason(code: examination.reason.code, words: examination.reason.words)
    if examination.verdict == .missing, reason.code != Self.leftoversCode {
      // The one part that an examination does not call a leftover, because it harms no new store.
      reason = .init(
        code: Self.leftoversCode,
        words: "There was no store at this path, but the folder with the large values of one was left over.")
    }
    self.init(
      reason: reason,
      error: .init(coreData: examination.reason.coreDataCode, sqlite: examination.reason.sqliteCode),
      model: metadata.map {
        .init(
          version: examination.modelVersion, identifiers: $0.versionIdentifiers,
          checksum: $0.versionHashes.isEmpty ? nil : ManagedObjectModel.versionChecksum(of: $0.versionHashes),
          isCompared: examination.isComparedWithModel)
      },
      entities: examination.entities.isEmpty ? nil : examination.entities,
      versions: .init(
        app: appVersion, library: LibraryVersion.current, sqlite: SQLiteLibrary.version,
        storeWrittenBySQLite: examination.health.writtenBySQLite, operatingSystem: LibraryVersion.operatingSystem))
  }
}
