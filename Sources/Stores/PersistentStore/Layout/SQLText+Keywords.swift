internal import GRDBSQLite

extension SQLText {
  /// The name as an identifier in a statement that people read: bare where SQLite takes it for a name as it stands.
  ///
  /// Entities and properties may have the names of SQLite's keywords, such as `Order` and `group`.
  package static func readableIdentifier(_ name: String) -> String {
    let isKeyword = unsafe sqlite3_keyword_check(name, Int32(clamping: name.utf8.count)) != 0
    return isKeyword ? quotedIdentifier(name) : identifier(name)
  }
}
