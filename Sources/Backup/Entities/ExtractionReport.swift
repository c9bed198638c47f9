internal import StoreFiles
public import SystemPackage

/// What was taken out of a backup into a store of its own.
public struct ExtractionReport: Sendable, Hashable, Encodable {
  /// The records of an entity.
  public struct Entity: Sendable, Hashable, Encodable {
    /// The entity.
    public var name: String

    /// How many records of it are in the new store.
    public var records: Int64

    /// A number of records.
    public init(name: String, records: Int64) {
      self.name = name
      self.records = records
    }
  }

  /// References to records that were left out.
  public struct Cut: Sendable, Hashable, Encodable {
    /// The entity whose records referred to others.
    public var entity: String

    /// The relationship.
    public var relationship: String

    /// How many references were cut.
    public var count: Int64

    /// A number of references.
    public init(entity: String, relationship: String, count: Int64) {
      self.entity = entity
      self.relationship = relationship
      self.count = count
    }
  }

  /// The backup.
  public var id: BackupIdentifier

  /// The new store.
  public var path: FilePath

  /// The entities with records, by name.
  public var entities: [Entity]

  /// The references that were cut, by entity and relationship.
  public var cut: [Cut]

  /// The primary keys that were asked for and that no such record has.
  public var missing: [Int64]

  /// The large values in files of their own that came along.
  public var values: Int

  /// Writes the report of an extraction.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "store": PathText(path), "entities": entities, "referencesCut": cut, "missingKeys": missing,
      "values": values,
    ])
  }
}
