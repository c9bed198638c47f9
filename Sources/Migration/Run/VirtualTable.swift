internal import Foundation
internal import GRDB
internal import PersistentStore
internal import Platform

/// A full-text or R-tree index to recreate.
struct VirtualTable {
  enum Filling {
    case rows

    /// Rows with rowids.
    case numberedRows

    /// The indexed table.
    case rebuild
  }

  let filling: Filling

  /// Nil for other modules, and for contentless full-text indexes.
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

  /// The unquoted `content=` option, if given.
  private static func content(_ statement: String) -> String? {
    let text = statement.lowercased().filter { !$0.isWhitespace }
    // A column may be named content too.
    for separator in ["(", ","] {
      guard let range = text.range(of: separator + "content=") else { continue }
      let value = text[range.upperBound...].prefix { $0 != "," && $0 != ")" }
      return value.filter { !"'\"`[]".contains($0) }
    }
    return nil
  }
}

extension StoreRebuild {
  /// Recreates an app's virtual table; SQLite makes its shadow tables.
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
