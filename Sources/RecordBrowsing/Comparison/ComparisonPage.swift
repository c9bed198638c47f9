/// A page of records that differ between two stores.
public struct ComparisonPage: Sendable {
  /// The records.
  public var records: [ComparedRecord]

  /// The key behind which the next page begins; nil on the last.
  public var next: RecordKey?

  /// A page of records.
  public init(records: [ComparedRecord], next: RecordKey?) {
    self.records = records
    self.next = next
  }
}
