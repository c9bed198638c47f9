internal import PersistentStore
internal import SQLiteFormat

extension TableDefinition {
  /// Declares a table with the same b-trees and fields that any SQLite can make, since it evaluates nothing.
  var standIn: String {
    func list(_ columns: [SQLiteFormat.IndexedColumn]) -> String {
      columns.compactMap { column in
        column.name.map { name in
          SQLText.quotedIdentifier(name) + (column.collation.map { " COLLATE \(SQLText.quotedIdentifier($0))" } ?? "")
            + (column.isDescending ? " DESC" : "")
        }
      }.joined(separator: ", ")
    }
    var parts = columns.indices.filter { columns[$0].generation != .virtual }.map { index in
      let column = columns[index]
      var text = SQLText.quotedIdentifier(column.name)
      if index == rowidAlias {
        return text + " INTEGER PRIMARY KEY"
      }
      if !column.declaredType.isEmpty { text += " " + SQLText.quotedIdentifier(column.declaredType) }
      return text + (column.collation.map { " COLLATE \(SQLText.quotedIdentifier($0))" } ?? "")
    }
    if isWithoutRowid { parts.append("PRIMARY KEY (\(list(primaryKeyColumns)))") }
    // Automatic indexes are numbered in this order.
    parts += automaticIndexes.filter { !isWithoutRowid || $0 != primaryKeyColumns }.map { "UNIQUE (\(list($0)))" }
    return "CREATE TABLE \(SQLText.quotedIdentifier(name)) (\(parts.joined(separator: ", ")))"
      + (isWithoutRowid ? " WITHOUT ROWID" : "")
  }
}
