/// A pair of a many-to-many relationship that differs between two stores.
package struct ComparedPair: Sendable, Hashable {
  /// One of the two records of a pair.
  package struct Record: Sendable, Hashable {
    /// Its entity, as the relationship names it.
    package var entity: String

    /// Its primary key.
    package var key: RecordKey

    /// The name or title of the record; nil where it has none, or is not there.
    package var label: String?

    /// Whether one of the two stores has the record.
    package var exists: Bool
  }

  /// The record on the side that comes first in the alphabet.
  package var first: Record

  /// The record on the other side.
  package var second: Record

  /// The places in ordered relationships that differ, by their names; none where one store alone has the pair.
  package var places: [ComparedRecord.Property]

  /// The pair as a page token has it.
  var token: PageToken { PageToken(first.key.values + second.key.values) }
}
