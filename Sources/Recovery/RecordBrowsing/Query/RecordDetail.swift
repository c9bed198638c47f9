internal import StoreFiles

/// One record with everything it holds and everything that leads to it.
package struct RecordDetail: Sendable {
  /// A to-many relationship of the record.
  package struct Related: Sendable, Hashable {
    /// The name of the relationship; `Entity.name` of one that leads here without a way back.
    package var name: String

    /// Whether it leads here from elsewhere.
    package var isIncoming: Bool

    /// The collection of the destinations.
    package var collection: String

    /// How many there are; nil where counting took too long.
    package var count: Int64?

    /// The to-one property of the destinations that leads back here; nil where there is none.
    package var inverse: String?

    /// The first of them, in the order of the relationship.
    package var first: [Reference]
  }

  /// Another record, by what people know it by.
  package struct Reference: Sendable, Hashable {
    /// Its collection: its own entity where that is known.
    package var collection: String

    /// Its key.
    package var key: RecordKey

    /// Its name or title; nil where it has none.
    package var label: String?

    /// Whether the record is there.
    package var exists: Bool
  }

  /// The record; its values are those of ``columns``, with longer texts than on a page.
  package var row: RecordPage.Row

  /// The columns.
  package var columns: [RecordColumn]

  /// The name or title of the record; nil where it has none.
  package var label: String?

  /// What its to-one relationships lead to, by name.
  package var toOne: [String: Reference]

  /// Its to-many relationships.
  package var toMany: [Related]
}

extension RecordDetail.Reference: Encodable {
  /// Writes what programs are told of it.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "entity": collection, "key": key.description, "label": JSON.orNull(label), "exists": exists,
    ])
  }
}
