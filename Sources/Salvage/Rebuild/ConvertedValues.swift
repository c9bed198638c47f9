internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The values of a table that SQLite converts when it inserts them, because their column is declared for another storage class.
///
/// They can stand as they are only where the declaration was changed behind SQLite's back, and its check calls them damage. So
/// the new store has the values that SQLite makes of them, and those that stood in the store are kept beside it.
struct ConvertedValues {
  /// A column of the rows as found, and when a value of it is converted.
  private struct Column {
    var name: String
    var condition: String
  }

  private let source: RawTables.Table
  private var columns: [Column] = []

  /// The columns of a table whose declared classes are the same in the new store.
  ///
  /// - Parameter targets: the columns' names in the rows as found, and the types that the new store declares for them.
  init(of source: RawTables.Table, into targets: [(source: String, type: String)]) {
    self.source = source
    for target in targets {
      guard let column = source.columns.first(where: { $0.name == target.source }) else { continue }
      let affinity = Affinity(declaredType: target.type)
      guard Affinity(declaredType: column.type) == affinity else { continue }
      let value = "r.\(SQLText.quotedIdentifier(column.name))"
      switch affinity {
      case .text: columns.append(Column(name: column.name, condition: "typeof(\(value)) IN ('integer', 'real')"))
      case .integer, .real, .numeric:
        // Only text that is a number, and nothing else, is converted; the comparison treats it as the column does.
        columns.append(
          Column(name: column.name, condition: "(typeof(\(value)) = 'text' AND +\(value) = CAST(\(value) AS NUMERIC))"))
      case .blob: break
      }
    }
  }

  /// Keeps the values beside the new store.
  ///
  /// - Returns: what is to be told of them; nil where there are none.
  func keep(in aside: inout SetAsideRows, _ database: GRDB.Database) throws -> String? {
    guard !columns.isEmpty else { return nil }
    let counts = columns.map { "total(\($0.condition))" }.joined(separator: ", ")
    guard let row = try Row.fetchOne(database, sql: "SELECT \(counts) FROM \(source.sql) AS r") else { return nil }
    var found: [Column] = []
    var total: Int64 = 0
    for (index, column) in columns.enumerated() {
      let count: Double = row[index]
      guard count > 0 else { continue }
      found.append(column)
      total += Int64(count)
    }
    guard total > 0 else { return nil }
    let key = source.rowid.map { "r.\($0)" } ?? "NULL"
    let values = found.map { column in
      let name = SQLText.quotedIdentifier(column.name)
      return "CASE WHEN \(column.condition) THEN r.\(name) END AS \(name)"
    }
    try aside.keepValues(
      of: source,
      "SELECT \(key) AS lazaret_key, \(values.joined(separator: ", ")) FROM \(source.sql) AS r "
        + "WHERE \(SQLText.any(found.map(\.condition)))")
    let names = found.prefix(6).map { printable($0.name) }.joined(separator: ", ") + (found.count > 6 ? ", …" : "")
    return
      "\(printable(source.name)) has values of another kind than its columns are declared for (\(names)); SQLite converted "
      + "\(total) of them, and they were set aside as they stood"
  }
}
