/// One page of the records that a to-many relationship leads to.
public struct RelatedPage: Sendable {
  /// The relationship.
  public var relationship: RecordCollection.ToMany

  /// How many records it leads to in all; nil where counting took too long.
  public var count: Int64?

  /// The records of this page, in the order of the relationship.
  public var references: [RecordDetail.Reference]

  /// The token of the next page; nil on the last.
  public var next: String?
}
