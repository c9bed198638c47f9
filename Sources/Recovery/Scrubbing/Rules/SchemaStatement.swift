internal import SQLiteFormat

/// Tells rows of the schema from rows of other tables that look like them.
enum SchemaStatement {
  /// Whether a statement makes what has this name.
  static func makes(_ name: String, _ sql: String) -> Bool {
    if let definition = TableDefinition(sql: sql) { return definition.name == name }
    if let definition = IndexDefinition(sql: sql) { return definition.name == name }
    let words = sql.prefix(40).uppercased().split { $0.isWhitespace }
    return words.first == "CREATE" && (words.contains("VIEW") || words.contains("TRIGGER")) && sql.contains(name)
  }
}

extension SchemaEntry {
  /// Whether all that it says is in its statement, so that it is no row of another table.
  var isTelling: Bool {
    guard let sql else { return kind == .index && name.hasPrefix("sqlite_autoindex_") }
    return SchemaStatement.makes(name, sql)
  }
}
