/// One page of the records that a to-many relationship leads to.
package struct RelatedPage: Sendable {
  /// The relationship.
  package var relationship: RecordCollection.ToMany

  /// How many records it leads to in all; nil where counting took too long.
  package var count: Int64?

  /// The records of this page, in the order of the relationship.
  package var references: [RecordDetail.Reference]

  /// The token of the next page; nil on the last.
  package var next: String?
}
