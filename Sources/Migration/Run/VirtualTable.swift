internal import Foundation
internal import GRDB
internal import PersistentStore
internal import Platform

/// A virtual table of the app's that can be made again and filled: a full-text or an R-tree index.
struct VirtualTable {
  /// How its content gets into a new one.
  enum Filling {
    case rows

    /// Row by row, with the numbers of the rows.
    case numberedRows

    /// From the table that it is an index of.
    case rebuild
  }

  let filling: Filling

  /// Nil for other modules, and for full-text indexes without content, from which no text can be had.
  init?(_ table: SQLTable) {
    let words = table.statement.lowercased().split(whereSeparator: { $0.isWhitespace || $0 == "(" })
    guard let using = words.firstIndex(of: "using"), using + 1 < words.count else { return nil }
    switch words[using + 1] {
    case "rtree", "rtree_i32", "geopoly": filling = .rows
    case "fts3", "fts4", "fts5":
      guard let content = Self.content(table.statement) else {
        filling = .numberedRows
        return
      }
      if content.isEmpty { return nil }
      filling = .rebuild
    default: return nil
    }
  }

  /// What the option `content=` says, without its quotes; nil where it is not given.
  private static func content(_ statement: String) -> String? {
    let text = statement.lowercased().filter { !$0.isWhitespace }
    // An option follows the opening parenthesis or a comma; a column may be called content too.
    for separator in ["(", ","] {
      guard let range = text.range(of: separator + "content=") else { continue }
      let value = text[range.upperBound...].prefix { $0 != "," && $0 != ")" }
      return value.filter { !"'\"`[]".contains($0) }
    }
    return nil
  }
}

extension StoreRebuild {
  /// Makes a virtual table of the app's again; SQLite makes the tables behind it by itself.
  func copyVirtual(_ table: SQLTable, _ database: Database) throws {
    guard let virtual = VirtualTable(table) else { return }
    do {
      try database.execute(sql: table.statement)
      let name = SQLText.quotedIdentifier(table.name)
      let columns = try String.fetchAll(
        database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table.name]
      ).map(SQLText.quotedIdentifier)
      switch virtual.filling {
      case .rows: try database.execute(sql: "INSERT INTO main.\(name) SELECT * FROM old.\(name)")
      case .numberedRows:
        let list = (["rowid"] + columns).joined(separator: ", ")
        try database.execute(sql: "INSERT INTO main.\(name) (\(list)) SELECT \(list) FROM old.\(name)")
      case .rebuild: try database.execute(sql: "INSERT INTO main.\(name) (\(name)) VALUES ('rebuild')")
      }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_ERROR {
      throw MigrationError(
        .dataViolation,
        detail: "the virtual table \(printable(table.name)) is not the model's and cannot be made again",
        hint: "Drop the table before the migration and make it again afterwards.")
    }
  }
}
