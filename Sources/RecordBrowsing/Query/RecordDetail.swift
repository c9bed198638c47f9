internal import StoreFiles
/// One record with everything it holds and everything that leads to it.
public struct RecordDetail: Sendable {
  /// A to-many relationship of the record.
  public struct Related: Sendable, Hashable {
    /// The name of the relationship; `Entity.name` of one that leads here without a way back.
    public var name: String

    /// Whether it leads here from elsewhere.
    public var isIncoming: Bool

    /// The collection of the destinations.
    public var collection: String

    /// How many there are; nil where counting took too long.
    public var count: Int64?

    /// The to-one property of the destinations that leads back here; nil where there is none.
    public var inverse: String?

    /// The first of them, in the order of the relationship.
    public var first: [Reference]
  }

  /// Another record, by what people know it by.
  public struct Reference: Sendable, Hashable {
    /// Its collection: its own entity where that is known.
    public var collection: String

    /// Its key.
    public var key: RecordKey

    /// Its name or title; nil where it has none.
    public var label: String?

    /// Whether the record is there.
    public var exists: Bool
  }

  /// The record; its values are those of ``columns``, with longer texts than on a page.
  public var row: RecordPage.Row

  /// The columns.
  public var columns: [RecordColumn]

  /// The name or title of the record; nil where it has none.
  public var label: String?

  /// What its to-one relationships lead to, by name.
  public var toOne: [String: Reference]

  /// Its to-many relationships.
  public var toMany: [Related]
}

extension RecordDetail.Reference: Encodable {
  /// Writes what programs are told of it.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "entity": collection, "key": key.description, "label": JSON.orNull(label), "exists": exists,
    ])
  }
}
