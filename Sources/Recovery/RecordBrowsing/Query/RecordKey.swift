internal import GRDB

/// What tells a record from all others of its collection, as it stands in an address: `17`, or parts with `~` between.
package struct RecordKey: Sendable, Hashable, CustomStringConvertible {
  /// The key as it stands in an address.
  package let description: String

  let values: [DatabaseValue]

  /// The key of a record with a primary key.
  package init(_ primaryKey: Int64) { self.init([primaryKey.databaseValue]) }

  init(_ values: [DatabaseValue]) {
    self.values = values
    if values.count == 1, case .int64(let number) = values[0].storage {
      description = String(number)
    } else {
      description = values.map(PageToken.text).joined(separator: "~")
    }
  }

  /// Reads a key of a collection.
  ///
  /// - Throws: `bad-query` where it is none.
  package init(_ text: String, of collection: RecordCollection) throws(RecordBrowsingError) {
    if collection.keySQL.count == 1, let number = Int64(text) {
      self.init(number)
    } else {
      self.init(try PageToken(text, count: collection.keySQL.count).values)
    }
  }
}
