internal import Foundation
internal import GRDB
import Platform

/// A page of records.
package struct RecordPage: Sendable {
  /// A record on a page.
  package struct Row: Sendable, Hashable {
    /// What tells it from the others.
    package var key: RecordKey

    /// The entity it is of; the name of the collection where that is a table.
    package var entity: String

    /// The values in the order of the page's columns.
    package var values: [PresentedValue]

    /// How far it is to be believed; certain in stores that were not salvaged.
    package var state: RowState = .certain
  }

  /// The number of records of each value of a property.
  package struct Facet: Sendable, Hashable {
    /// The property.
    package var column: String

    /// The most frequent values; nil where counting took too long.
    package var values: [Count]?

    /// Whether there are more values.
    package var isCut: Bool

    /// A value and how many records have it.
    package struct Count: Sendable, Hashable {
      /// The value.
      package var value: PresentedValue

      /// The number of records that fit the query and have it.
      package var count: Int64
    }
  }

  /// The columns that are shown.
  package var columns: [RecordColumn]

  /// The records.
  package var rows: [Row]

  /// The token of the next page; nil on the last.
  package var next: String?

  /// The number of records in the collection, whatever the query; nil where counting took too long.
  package var total: Int64?

  /// The number of records that fit the query; nil where counting took too long.
  package var matching: Int64?

  /// How many records fit at least, where counting was stopped because there are many.
  package var matchingAtLeast: Int64?

  /// The facets that were asked for.
  package var facets: [Facet]

  /// The facets in steps that were asked for.
  package var steppedFacets: [SteppedFacet] = []
}

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

/// Where a page begins: behind the record with this sort value and key.
///
/// It is opaque to others, and checked when it is read.
struct PageToken {
  /// The sort value and the key's values of the last record of the page before.
  var values: [DatabaseValue]

  init(_ values: [DatabaseValue]) { self.values = values }

  /// Reads a token.
  ///
  /// - Throws: `bad-query` where it is none, or one of another question.
  init(_ text: String, count: Int) throws(RecordBrowsingError) {
    let wrong = RecordBrowsingError.badQuery("the page token cannot be understood", hint: "Go back to the first page.")
    guard text.utf8.count < 100_000 else { throw wrong }
    var values: [DatabaseValue] = []
    for part in text.split(separator: "~", omittingEmptySubsequences: false) {
      guard let value = Self.value(part) else { throw wrong }
      values.append(value)
    }
    guard values.count == count else { throw wrong }
    self.values = values
  }

  var text: String { values.map(Self.text).joined(separator: "~") }

  /// A value as a part of an address: a letter for its class, then digits, hexadecimal for all but whole numbers.
  static func text(_ value: DatabaseValue) -> String {
    switch value.storage {
    case .null: return "n"
    case .int64(let number): return "i\(number)"
    case .double(let number): return "r\(String(number.bitPattern, radix: 16))"
    case .string(let text): return "t\(text.utf8.hexadecimal)"
    case .blob(let data): return "b\(data.hexadecimal)"
    }
  }

  static func value(_ part: Substring) -> DatabaseValue? {
    let digits = part.dropFirst()
    switch part.first {
    case "n": return digits.isEmpty ? .null : nil
    case "i": return Int64(digits)?.databaseValue
    case "r": return UInt64(digits, radix: 16).map { Double(bitPattern: $0).databaseValue }
    case "t": return [UInt8](hexadecimal: digits).map { String(decoding: $0, as: UTF8.self).databaseValue }
    case "b": return [UInt8](hexadecimal: digits).map { Data($0).databaseValue }
    default: return nil
    }
  }

}
