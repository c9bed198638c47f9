package import Backup
package import BackupRestore
internal import StoreFiles
package import SystemPackage

/// What was taken out of a backup into a store of its own.
package struct ExtractionReport: Sendable, Hashable, Encodable {
  /// The records of an entity.
  package struct Entity: Sendable, Hashable, Encodable {
    /// The entity.
    package var name: String

    /// How many records of it are in the new store.
    package var records: Int64

    /// A number of records.
    package init(name: String, records: Int64) {
      self.name = name
      self.records = records
    }
  }

  /// References to records that were left out.
  package struct Cut: Sendable, Hashable, Encodable {
    /// The entity whose records referred to others.
    package var entity: String

    /// The relationship.
    package var relationship: String

    /// How many references were cut.
    package var count: Int64

    /// A number of references.
    package init(entity: String, relationship: String, count: Int64) {
      self.entity = entity
      self.relationship = relationship
      self.count = count
    }
  }

  /// The backup.
  package var id: BackupIdentifier

  /// The new store.
  package var path: FilePath

  /// The entities with records, by name.
  package var entities: [Entity]

  /// The references that were cut, by entity and relationship.
  package var cut: [Cut]

  /// The primary keys that were asked for and that no such record has.
  package var missing: [Int64]

  /// The large values in files of their own that came along.
  package var values: Int

  /// The blocks of the backup that are lost, where what is left of it was salvaged.
  package var lostBlocks: [RestoreReport.LostBlock] = []

  /// Whether the backup's database was read as it was backed up; false where it was salvaged, and records may be missing.
  package var isContentRight = true

  /// The large values that the records refer to and that are lost, by the names of their files.
  package var lostValues: [String] = []

  /// Whether every record that was chosen is as it was when the backup was taken.
  package var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  /// Writes the report of an extraction, with `complete`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "store": PathText(path), "entities": entities, "referencesCut": cut, "missingKeys": missing,
      "values": values, "complete": isComplete, "lostBlocks": lostBlocks, "lostValues": lostValues,
    ])
  }
}
