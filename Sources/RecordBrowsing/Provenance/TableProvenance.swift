internal import GRDB

/// What a file of found rows knows of a table: its number in the notes, and which of its keys are live rows'.
package struct TableProvenance: Sendable, Hashable {
  /// The number of the table in the notes.
  var id: Int64

  /// The lowest key of a live row; rows that are none have lower ones, which were given to them.
  var lowest: Int64

  /// How many rows have a note of their own.
  var noted: Int64

  /// The notes on single rows, as they stand in SQL.
  static let rows = "lazaret_browsed_rows"

  /// The notes on pages.
  static let places = "lazaret_browsed_places"

  /// The tables that have notes.
  static let tables = "lazaret_browsed_tables"

  /// The model that the store was found to be of.
  static let model = "lazaret_browsed_model"

  /// Beyond so many notes a row's own is looked up, instead of all of them being gathered first.
  private static let manyNotes = 50_000

  /// Reads what a file of found rows knows of its tables.
  static func all(_ database: Database) throws -> [String: TableProvenance] {
    var result: [String: TableProvenance] = [:]
    for row in try Row.fetchAll(database, sql: "SELECT name, id, lowest, noted FROM \(tables)") {
      result[row[0]] = TableProvenance(id: row[1], lowest: row[2], noted: row[3])
    }
    return result
  }

  /// The condition of being in one of some states, as SQL; nil where every row is.
  func condition(_ states: Set<RowState>?, key: String) -> String? {
    guard let states else { return "\(key) >= \(lowest)" }
    guard states.count < RowState.allCases.count else { return nil }
    let isNegative = states.contains(.certain)
    let listed = RowState.allCases.filter { states.contains($0) != isNegative }
    let words = listed.map { "'\($0.rawValue)'" }.joined(separator: ", ")
    if noted > Self.manyNotes {
      return "\(isNegative ? "NOT " : "")EXISTS (SELECT 1 FROM \(Self.rows) AS n WHERE n.tbl = \(id) AND n.k = \(key) "
        + "AND n.state IN (\(words)))"
    }
    return "\(key) \(isNegative ? "NOT " : "")IN (SELECT k FROM \(Self.rows) WHERE tbl = \(id) AND state IN (\(words)))"
  }
}
