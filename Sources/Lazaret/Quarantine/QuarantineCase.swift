internal import ManagedObjectModel
package import PersistentStore
package import Platform

/// The receipt's content except names, times and digests.
package struct QuarantineCase: Sendable, Hashable, Codable {
  package var reason: Receipt.Reason

  /// The errors that SQLite and Core Data would have reported.
  package var error: Receipt.ErrorCodes

  /// The store's own model.
  package var model: Receipt.Model?

  /// The numbers of records; nil if unreadable.
  package var entities: [EntityCount]?

  package var versions: Receipt.Versions

  /// The requested salvage.
  package var salvage: Receipt.Salvage?

  /// The backup that takes the place.
  var makesRoomFor: StoreLineage.Restored?

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
  package static let requestCode = "by-request"

  /// The code of a place without a main file.
  static let leftoversCode = "no-store-but-leftovers"

  /// Creates the case from an examination.
  package init(_ examination: Examination, appVersion: String?) {
    let metadata = examination.metadata
    var reason = Receipt.Reason(code: examination.reason.code, words: examination.reason.words)
    if examination.verdict == .missing, reason.code != Self.leftoversCode {
      // An examination does not count this part as a leftover, because it cannot harm a new store.
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
