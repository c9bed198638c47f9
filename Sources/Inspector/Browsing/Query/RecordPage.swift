internal import Foundation
internal import GRDB
package import PersistentStore
import Platform

package struct RecordPage: Sendable {
  package struct Row: Sendable, Hashable {
    package var key: RecordKey

    /// The entity, or the table.
    package var entity: String

    package var values: [PresentedValue]

    /// The reliability; certain outside salvaged stores.
    package var state: RowState = .certain
  }

  package struct Facet: Sendable, Hashable {
    var column: String

    /// The most frequent values; nil on timeout.
    package var values: [Count]?

    var isCut: Bool

    package struct Count: Sendable, Hashable {
      package var value: PresentedValue

      /// The number of matching records.
      package var count: Int64
    }
  }

  package var columns: [RecordColumn]

  package var rows: [Row]

  package var next: String?

  /// The collection's count; nil on timeout.
  package var total: Int64?

  /// The number of matches; nil on timeout.
  package var matching: Int64?

  /// The lower bound of matches, if counting stopped early.
  package var matchingAtLeast: Int64?

  package var facets: [Facet]

  package var steppedFacets: [SteppedFacet] = []
}

/// A record's key as in a URL: `17`, or parts joined by `~`.
package struct RecordKey: Sendable, Hashable, CustomStringConvertible {
  /// The key as in a URL.
  package let description: String

  let values: [DatabaseValue]

  package init(_ primaryKey: Int64) { self.init([primaryKey.databaseValue]) }

  init(_ values: [DatabaseValue]) {
    self.values = values
    if values.count == 1, case .int64(let number) = values[0].storage {
      description = String(number)
    } else {
      description = values.map(PageToken.text).joined(separator: "~")
    }
  }

  /// - Throws: `bad-query` if invalid.
  package init(_ text: String, of collection: RecordCollection) throws(PersistentStoreError) {
    if collection.keySQL.count == 1, let number = Int64(text) {
      self.init(number)
    } else {
      self.init(try PageToken(text, count: collection.keySQL.count).values)
    }
  }
}

/// The start of a page, after this sort value and key.
///
/// It is opaque to clients and validated when read.
struct PageToken {
  /// The last record's sort value and key from the page before.
  var values: [DatabaseValue]

  init(_ values: [DatabaseValue]) { self.values = values }

  /// - Throws: `bad-query` if invalid or from another query.
  init(_ text: String, count: Int) throws(PersistentStoreError) {
    let wrong = PersistentStoreError.badQuery("the page token cannot be understood", hint: "Go back to the first page.")
    guard text.utf8.count < 100_000 else { throw wrong }
    let parts = text.split(separator: "~", omittingEmptySubsequences: false)
    values = parts.compactMap(Self.value)
    guard parts.count == count, values.count == count else { throw wrong }
  }

  var text: String { values.map(Self.text).joined(separator: "~") }

  /// Encodes a value: a letter for its class, then decimal for integers, hexadecimal for others.
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

/// A record with its values and related records.
package struct RecordDetail: Sendable {
  package struct Related: Sendable, Hashable {
    /// The name; `Entity.name` for incoming ones without an inverse.
    package var name: String

    var isIncoming: Bool

    var collection: String

    /// The number of destinations; nil on timeout.
    package var count: Int64?

    /// The destination's to-one property back here, or nil.
    var inverse: String?

    /// The first destinations in relationship order.
    package var first: [Reference]
  }

  /// A reference to another record, with its label.
  package struct Reference: Sendable, Hashable {
    /// The record's own entity, if known.
    package var collection: String

    package var key: RecordKey

    package var label: String?

    package var exists: Bool
  }

  /// The record with the values of ``columns``; texts are longer than on a page.
  package var row: RecordPage.Row

  var columns: [RecordColumn]

  package var label: String?

  /// The to-one destinations by relationship.
  package var toOne: [String: Reference]

  package var toMany: [Related]
}

extension RecordDetail.Reference: Encodable {
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "entity": collection, "key": key.description, "label": JSON.orNull(label), "exists": exists,
    ])
  }
}
