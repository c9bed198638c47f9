internal import GRDB
internal import ManagedObjectModel

/// A condition on one property: `color__contains=red`.
package struct RecordFilter: Sendable, Hashable {
  /// How a value is compared; raw values are the suffixes in an address.
  package enum Comparison: String, Sendable, Hashable, CaseIterable {
    case exact
    case not
    case contains
    case startsWith = "startswith"
    case endsWith = "endswith"
    case greater = "gt"
    case greaterOrEqual = "gte"
    case less = "lt"
    case lessOrEqual = "lte"
    case isNull = "isnull"
    case isNotNull = "notnull"

    /// Whether it compares with a value.
    package var takesValue: Bool { self != .isNull && self != .isNotNull }
  }

  /// The name of the property.
  package var column: String

  /// How its value is compared.
  package var comparison: Comparison

  /// With what; dates as RFC 3339 or a day, UUIDs with dashes, booleans as `true` and `false`.
  package var value: String

  /// Creates a condition.
  package init(_ column: String, _ comparison: Comparison = .exact, _ value: String = "") {
    self.column = column
    self.comparison = comparison
    self.value = value
  }

  /// The condition as SQL, with its arguments.
  func sql(in collection: RecordCollection) throws(RecordBrowsingError) -> (text: String, arguments: [DatabaseValue]) {
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
      // Every version of a record is found by the key that it had.
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

  /// The condition that the value is a part of the column's; `LIKE` would end at a NUL in either.
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
