internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The values that SQLite converts on insertion because their column declares another storage class.
///
/// They exist only where the declaration was changed without SQLite, whose check reports them as damage. The new store
/// gets the converted values; the originals are set aside.
struct ConvertedValues {
  private struct Column {
    var name: String
    var condition: String
  }

  private let source: RawTables.Table
  private var columns: [Column] = []

  /// Selects the columns with the same affinity in the new store.
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
        // SQLite converts only text that is entirely a number.
        columns.append(
          Column(name: column.name, condition: "(typeof(\(value)) = 'text' AND +\(value) = CAST(\(value) AS NUMERIC))"))
      case .blob: break
      }
    }
  }

  /// Sets the original values aside; returns a remark, nil without any.
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
