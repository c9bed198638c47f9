internal import Foundation
internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

/// A condition on one property: `color__contains=red`.
package struct RecordFilter: Sendable, Hashable {
  /// The comparison; raw values are URL suffixes.
  package enum Comparison: String, Sendable, Hashable, CaseIterable {
    case exact, not, contains
    case startsWith = "startswith"
    case endsWith = "endswith"
    case greater = "gt"
    case greaterOrEqual = "gte"
    case less = "lt"
    case lessOrEqual = "lte"
    case isNull = "isnull"
    case isNotNull = "notnull"

    var takesValue: Bool { self != .isNull && self != .isNotNull }
  }

  var column: String

  var comparison: Comparison

  /// The value to compare with; dates as RFC 3339 or a day, UUIDs with dashes, booleans as `true` and `false`.
  var value: String

  package init(_ column: String, _ comparison: Comparison = .exact, _ value: String = "") {
    self.column = column
    self.comparison = comparison
    self.value = value
  }

  func sql(in collection: RecordCollection) throws(PersistentStoreError) -> (text: String, arguments: [DatabaseValue]) {
    guard let column = collection.column(self.column) else { throw .unknownColumn(self.column, in: collection) }
    let name = column.sql
    switch comparison {
    case .isNull: return ("\(name) IS NULL", [])
    case .isNotNull: return ("\(name) IS NOT NULL", [])
    case .contains, .startsWith, .endsWith: return part(of: column)
    case .exact, .not, .greater, .greaterOrEqual, .less, .lessOrEqual: break
    }
    if column.kind == .entity, let number = collection.numbersByEntity[value],
      comparison == .exact || comparison == .not
    {
      return ("\(name) \(comparison == .exact ? "=" : "IS NOT") ?", [number.databaseValue])
    }
    let bounds = try QueryValue.bounds(value, of: column)
    let first = bounds.first.databaseValue
    if column.kind == .key, comparison == .exact, let provenance = collection.provenance {
      // Matches every version of a record by its original key.
      return ("\(name) IN (SELECT ? UNION ALL \(provenance.keys(storedAs: "?")))", [first, first])
    }
    switch comparison {
    case .exact:
      guard let end = bounds.end else { return ("\(name) = ?", [first]) }
      return ("(\(name) >= ? AND \(name) < ?)", [first, end.databaseValue])
    case .not:
      guard let end = bounds.end else { return ("\(name) IS NOT ?", [first]) }
      return ("(\(name) IS NULL OR \(name) < ? OR \(name) >= ?)", [first, end.databaseValue])
    case .greater: return bounds.end.map { ("\(name) >= ?", [$0.databaseValue]) } ?? ("\(name) > ?", [first])
    case .greaterOrEqual: return ("\(name) >= ?", [first])
    case .less: return ("\(name) < ?", [first])
    case .lessOrEqual: return bounds.end.map { ("\(name) < ?", [$0.databaseValue]) } ?? ("\(name) <= ?", [first])
    case .contains, .startsWith, .endsWith, .isNull, .isNotNull: return ("1", [])
    }
  }

  /// The substring condition; `LIKE` would stop at a NUL.
  private func part(of column: RecordColumn) -> (text: String, arguments: [DatabaseValue]) {
    var (sql, value) = (column.sql, value)
    if case .attribute(.uuid, _) = column.kind {
      sql = "hex(\(column.sql))"
      value = value.filter { $0 != "-" }
    }
    let sought = SoughtText(value)
    let part = sought.folded.databaseValue
    switch comparison {
    case .startsWith: return ("instr(lower(\(sql)), ?) = 1", [part])
    case .endsWith where !value.isEmpty:
      let bytes = "CAST(? AS BLOB)"
      return ("substr(CAST(lower(\(sql)) AS BLOB), -length(\(bytes))) = \(bytes)", [part, part])
    case .contains, .endsWith, .exact, .not, .greater, .greaterOrEqual, .less, .lessOrEqual, .isNull, .isNotNull:
      return (sought.condition(on: sql), sought.arguments)
    }
  }
}

/// A needle matched regardless of ASCII case.
struct SoughtText {
  /// The needle as SQLite's `lower` makes it.
  let folded: String

  /// The `LIKE` pattern; nil if unsuitable, because `LIKE` stops at a NUL and takes at most 50,000 bytes.
  private let pattern: String?

  private static let longestPattern = 20_000

  init(_ text: String) {
    folded = text.caseFolded
    let isPlain = !folded.utf8.contains(0) && folded.utf8.count <= Self.longestPattern
    let escaped = folded.map { #"\%_"#.contains($0) ? "\\\($0)" : "\($0)" }.joined()
    pattern = isPlain ? "%\(escaped)%" : nil
  }

  var arguments: [DatabaseValue] { ([pattern].compactMap(\.self) + [folded]).map(\.databaseValue) }

  /// The condition that a column contains the needle.
  ///
  /// `LIKE` is fastest but stops at a NUL, so values with one are checked again.
  ///
  /// - Parameter isNumbered: whether to number parameters, to share them.
  func condition(on sql: String, isNumbered: Bool = false) -> String {
    let (first, second) = isNumbered ? ("?1", "?2") : ("?", "?")
    guard pattern != nil else { return "instr(lower(\(sql)), \(first)) > 0" }
    return "(\(sql) LIKE \(first) ESCAPE '\\' OR instr(\(sql), char(0)) > 0 AND instr(lower(\(sql)), \(second)) > 0)"
  }
}

enum QueryValue {
  /// A value, or the start of a span such as a day and of the next.
  struct Bounds {
    var first: any DatabaseValueConvertible
    var end: (any DatabaseValueConvertible)?
  }

  /// - Throws: `bad-query` if it doesn't fit the column's type.
  static func bounds(_ text: String, of column: RecordColumn) throws(PersistentStoreError) -> Bounds {
    let word = text.trimmingCharacters(in: .whitespaces)
    switch column.kind {
    case .key, .entity, .toOne: return Bounds(first: try integer(word, column))
    case .stored: return Bounds(first: text)
    case .attribute(let type, _):
      switch type {
      case .integer16, .integer32, .integer64: return Bounds(first: try integer(word, column))
      case .boolean:
        switch word.lowercased() {
        case "1", "true", "yes": return Bounds(first: 1)
        case "0", "false", "no": return Bounds(first: 0)
        default: throw wrong(column, "true or false")
        }
      case .double, .float:
        guard let number = Double(word), number.isFinite else { throw wrong(column, "a number such as 1.5") }
        return Bounds(first: number)
      case .decimal:
        guard Double(word) != nil else { throw wrong(column, "a number such as 1.50") }
        return Bounds(first: word)
      case .date: return try date(word, column)
      case .uuid:
        let digits = Array(word.utf8.filter { $0 != UInt8(ascii: "-") })
        guard digits.count == 32, let bytes = [UInt8](hexadecimal: digits) else {
          throw wrong(column, "a UUID such as 6BA7B810-9DAD-11D1-80B4-00C04FD430C8")
        }
        return Bounds(first: Data(bytes))
      case .string, .uri, .undefined, .objectID, .composite: return Bounds(first: text)
      case .binary, .transformable: throw wrong(column, "nothing: bytes can only be tested for null")
      }
    }
  }

  private static func integer(_ word: String, _ column: RecordColumn) throws(PersistentStoreError) -> Int64 {
    guard let number = Int64(word) else { throw wrong(column, "a whole number") }
    return number
  }

  /// Parses a moment, day, month or year into seconds since 2001-01-01T00:00:00Z as in stores.
  private static func date(_ word: String, _ column: RecordColumn) throws(PersistentStoreError) -> Bounds {
    let hint = "a date such as 2026-11-21 or 2026-11-21T10:11:12Z"
    if let moment = Timestamp(word.replacingOccurrences(of: " ", with: "T")), word.count == 20 {
      return Bounds(first: moment.secondsSinceReferenceDate, end: moment.secondsSinceReferenceDate + 1)
    }
    let parts = word.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
    guard (1...3).contains(parts.count), word.count >= 4, !parts.contains(nil), let year = parts[0],
      (1...9999).contains(year)
    else { throw wrong(column, hint) }
    let month = parts.count > 1 ? parts[1] ?? 0 : 1
    let day = parts.count > 2 ? parts[2] ?? 0 : 1
    guard (1...12).contains(month), (1...31).contains(day) else { throw wrong(column, hint) }
    func begin(_ year: Int, _ month: Int, _ day: Int) -> Double? {
      let digits = [(year, 4), (month, 2), (day, 2)].map { number, width in
        String(repeating: "0", count: max(0, width - String(number).count)) + String(number)
      }
      return Timestamp("\(digits.joined(separator: "-"))T00:00:00Z")?.secondsSinceReferenceDate
    }
    let next =
      switch parts.count {
      case 1: begin(year + 1, 1, 1)
      case 2: month == 12 ? begin(year + 1, 1, 1) : begin(year, month + 1, 1)
      default: begin(year, month, day).map { $0 + 86400 }
      }
    guard let first = begin(year, month, day), let next else { throw wrong(column, hint) }
    return Bounds(first: first, end: next)
  }

  private static func wrong(_ column: RecordColumn, _ expected: String) -> PersistentStoreError {
    .badQuery("the value for \"\(printable(column.name))\" cannot be understood", hint: "It takes \(expected).")
  }
}
