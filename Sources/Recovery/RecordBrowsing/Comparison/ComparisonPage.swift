/// A page of records that differ between two stores.
package struct ComparisonPage: Sendable {
  /// The records.
  package var records: [ComparedRecord]

  /// The key behind which the next page begins; nil on the last.
  package var next: RecordKey?

  /// A page of records.
  package init(records: [ComparedRecord], next: RecordKey?) {
    self.records = records
    self.next = next
  }
}
