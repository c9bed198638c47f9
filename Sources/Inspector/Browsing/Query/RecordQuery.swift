internal import Foundation
internal import GRDB
package import PersistentStore
import Platform

/// A query for a page of a collection's records, with filters and order.
///
/// URL parameters follow other SQLite browsers: `color=red`, `year__gte=2020`, `_search=…`, `_sort=year`,
/// `_sort_desc=year`, `_size=50`, `_facet=color`, `_columns=name,year`, `_next=…`.
package struct RecordQuery: Sendable, Hashable {
  static let maximumSize = 1000

  static let usualSize = 100

  /// The conditions, joined by AND.
  package var filters: [RecordFilter] = []

  /// The text that some property must contain.
  var search: String?

  /// The states of found rows; nil for live ones.
  var states: Set<RowState>?

  /// Whether to count all matches, without a time limit.
  package var countsAll = false

  /// The sort property; nil for key order.
  package var sort: String?

  package var isDescending = false

  /// The page token; nil at the start.
  package var next: String?

  package var size = usualSize

  /// The properties to count by value.
  package var facets: [String] = []

  /// The properties to count in steps.
  package var steps: [FacetSteps] = []

  /// The shown properties; nil for all.
  package var columns: [String]?

  /// - Parameter hasStates: whether rows have states; otherwise states exclude no records.
  func isNarrowed(hasStates: Bool = true) -> Bool { !filters.isEmpty || search != nil || states != nil && hasStates }

  package init() {}

  /// Parses URL parameters, skipping filters with an empty value.
  ///
  /// - Throws: `bad-query` and `unknown-property`.
  package init(
    _ parameters: [(name: String, value: String)], of collection: RecordCollection
  ) throws(PersistentStoreError) {
    guard parameters.count <= 100 else { throw .badQuery("there are more than 100 parameters", hint: "Ask for less.") }
    for (name, value) in parameters {
      switch name {
      case "_search": search = value.isEmpty ? nil : value
      case "_sort", "_sort_desc":
        guard !value.isEmpty else { continue }
        guard let column = collection.column(value) else { throw .unknownColumn(value, in: collection) }
        sort = column.name
        isDescending = name == "_sort_desc"
      case "_state":
        for word in value.split(separator: ",") {
          if word == "all" {
            states = Set(RowState.allCases)
            continue
          }
          guard let state = RowState(rawValue: String(word)) else {
            throw .badQuery("_state is no state of a row", hint: "Choose one that the page lists, or all.")
          }
          states = (states ?? []).union([state])
        }
      case "_count": countsAll = value == "all"
      case "_next": next = value.isEmpty ? nil : value
      case "_size":
        guard let number = Int(value), (1...Self.maximumSize).contains(number) else {
          throw .badQuery("_size is not from 1 to \(Self.maximumSize)", hint: "Leave it out for \(Self.usualSize).")
        }
        size = number
      case "_facet":
        guard collection.column(value) != nil else { throw .unknownColumn(value, in: collection) }
        if !facets.contains(value), facets.count < 10 { facets.append(value) }
      case "_facet_year", "_facet_month", "_facet_range":
        let wanted = try FacetSteps(name, value, of: collection)
        if !steps.contains(wanted), steps.count < 10 { steps.append(wanted) }
      case "_columns":
        let names = value.split(separator: ",").map(String.init)
        for name in names where collection.column(name) == nil { throw .unknownColumn(name, in: collection) }
        columns = names.isEmpty ? nil : names
      default:
        // Other underscored parameters belong elsewhere (tokens, page choices).
        if name.hasPrefix("_"), collection.column(name) == nil { continue }
        if let filter = try Self.filter(name, value, collection) { filters.append(filter) }
      }
    }
  }

  private static func filter(
    _ name: String, _ value: String, _ collection: RecordCollection
  ) throws(PersistentStoreError) -> RecordFilter? {
    if collection.column(name) != nil { return value.isEmpty ? nil : RecordFilter(name, .exact, value) }
    let found = RecordFilter.Comparison.allCases.first { name.hasSuffix("__\($0.rawValue)") }
    guard let comparison = found else { throw .unknownColumn(name, in: collection) }
    let column = String(name.dropLast(comparison.rawValue.count + 2))
    guard collection.column(column) != nil else { throw .unknownColumn(column, in: collection) }
    guard !value.isEmpty || !comparison.takesValue else { return nil }
    return RecordFilter(column, comparison, comparison.takesValue ? value : "")
  }

  package var parameters: [(name: String, value: String)] {
    var result: [(name: String, value: String)] = []
    for filter in filters {
      let name = filter.comparison == .exact ? filter.column : "\(filter.column)__\(filter.comparison.rawValue)"
      result.append((name, filter.comparison.takesValue ? filter.value : "1"))
    }
    if let search { result.append(("_search", search)) }
    if let states {
      let isAll = states.count == RowState.allCases.count
      let words = RowState.allCases.filter(states.contains).map(\.rawValue)
      result.append(("_state", isAll ? "all" : words.joined(separator: ",")))
    }
    if countsAll { result.append(("_count", "all")) }
    if let sort { result.append((isDescending ? "_sort_desc" : "_sort", sort)) }
    for facet in facets { result.append(("_facet", facet)) }
    for wanted in steps { result.append(("_facet_\(wanted.step.rawValue)", wanted.column)) }
    if let columns { result.append(("_columns", columns.joined(separator: ","))) }
    if size != Self.usualSize { result.append(("_size", String(size))) }
    if let next { result.append(("_next", next)) }
    return result
  }

  /// The SQL conditions, with those of the collection, states and search.
  func conditions(
    in collection: RecordCollection
  ) throws(PersistentStoreError) -> (parts: [String], arguments: [DatabaseValue]) {
    var parts = [collection.condition, collection.condition(states)].compactMap(\.self)
    var arguments: [DatabaseValue] = []
    for filter in filters {
      let (text, values) = try filter.sql(in: collection)
      parts.append(text)
      arguments += values
    }
    if let search {
      let texts = collection.columns.filter(\.isText)
      let sought = SoughtText(search)
      parts.append(texts.isEmpty ? "0" : "(\(texts.map { sought.condition(on: $0.sql) }.joined(separator: " OR ")))")
      arguments += texts.flatMap { _ in sought.arguments }
    }
    return (parts, arguments)
  }
}

/// A property counted in steps: dates by year or month, numbers by range.
package struct FacetSteps: Sendable, Hashable {
  /// The steps; raw values are suffixes of `_facet_` in a URL.
  package enum Step: String, Sendable, Hashable, CaseIterable { case year, month, range }

  var column: String

  var step: Step

  package init(_ column: String, _ step: Step) {
    self.column = column
    self.step = step
  }

  /// - Throws: `unknown-property`, and `bad-query` if the property can't be counted so.
  init(_ parameter: String, _ name: String, of collection: RecordCollection) throws(PersistentStoreError) {
    guard let column = collection.column(name) else { throw .unknownColumn(name, in: collection) }
    guard let step = Step.allCases.first(where: { "_facet_\($0.rawValue)" == parameter }),
      Self.steps(of: column).contains(step)
    else {
      throw .badQuery(
        "\(parameter) does not fit the property's type", hint: "Years and months are for dates, ranges for numbers.")
    }
    self.init(column.name, step)
  }

  static func steps(of column: RecordColumn) -> [Step] {
    column.isDate ? [.year, .month] : column.isNumeric ? [.range] : []
  }
}

/// The record counts per step of a property.
package struct SteppedFacet: Sendable, Hashable {
  package struct Count: Sendable, Hashable {
    /// A year such as `2026`, a month such as `2026-11`, or the lower bound.
    package var first: String?

    /// The exclusive upper bound; nil for dates or if unbounded.
    package var end: String?

    package var count: Int64

    var isWhole = false

    var isYearOrMonth = false

    package func filters(_ steps: FacetSteps) -> [RecordFilter] {
      guard steps.step == .range else { return [RecordFilter(steps.column, .exact, first ?? "")] }
      return [
        first.map { RecordFilter(steps.column, .greaterOrEqual, $0) },
        end.map { RecordFilter(steps.column, .less, $0) },
      ].compactMap(\.self)
    }
  }

  package var steps: FacetSteps

  /// The non-empty steps: dates latest first, numbers lowest first; nil on timeout.
  package var counts: [Count]?

  package var isCut: Bool
}

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
    try encoder.encode(["entity": collection, "key": key.description, "label": JSON.orNull(label), "exists": exists])
  }
}
