/// The tables in which SQLite's own modules keep what their virtual tables hold; no row of them is a record.
package enum ShadowTables {
  /// The endings of their names, by the module, in lower case (sqlite.org/fts5.html, fts3.html and rtree.html).
  private static let endings: [String: [String]] = [
    "fts5": ["data", "idx", "content", "docsize", "config"],
    "fts4": ["content", "segments", "segdir", "docsize", "stat"],
    "fts3": ["content", "segments", "segdir", "docsize", "stat"],
    "rtree": ["node", "rowid", "parent"], "rtree_i32": ["node", "rowid", "parent"],
    "geopoly": ["node", "rowid", "parent"],
  ]

  /// The names, in lower case, of the tables behind a virtual table; none where its module is not known.
  package static func names(of table: String, module: String) -> [String] {
    endings[module.lowercased()]?.map { "\(table.lowercased())_\($0)" } ?? []
  }

  /// The name, in lower case, of the one that has a row for each row of the virtual table.
  package static func rows(of table: String, module: String) -> String? {
    names(of: table, module: module).first { $0.hasSuffix("_content") || $0.hasSuffix("_rowid") }
  }

  /// The names, in lower case, of those by which the virtual table can be made anew.
  package static func content(of table: String, module: String) -> [String] {
    names(of: table, module: module).filter { name in ["_content", "_rowid", "_node"].contains(where: name.hasSuffix) }
  }

  /// The modules that have any.
  package static var modules: some Collection<String> { endings.keys }
}
