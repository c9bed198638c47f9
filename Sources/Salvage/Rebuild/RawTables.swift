internal import GRDB
internal import PersistentStore
import Platform

/// The tables of a raw salvage, attached as `raw`; names are case-insensitive.
struct RawTables {
  struct Table {
    var name: String

    var columns: [(name: String, type: String)]

    var hasRowids: Bool

    var schema = "raw"

    /// A name for the rowid; nil without one.
    var rowid: String? {
      guard hasRowids else { return nil }
      return ["rowid", "_rowid_", "oid"].first { column($0) == nil }
    }

    /// Returns a column's name in the table's spelling.
    func column(_ name: String) -> String? {
      columns.first { $0.name.lowercased() == name.lowercased() }?.name
    }
  }

  private let tables: [String: Table]

  init(_ database: Database) throws {
    var tables: [String: Table] = [:]
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT l.name, l.wr, c.name, c.type FROM pragma_table_list AS l, pragma_table_xinfo(l.name, 'raw') AS c
        WHERE l.schema = 'raw' AND l.type = 'table' ORDER BY l.name, c.cid
        """)
    while let row = try rows.next() {
      let (name, isWithoutRowid, column, type): (String, Bool, String, String) = (row[0], row[1], row[2], row[3])
      guard !name.hasPrefix("sqlite_") else { continue }
      tables[name.lowercased(), default: Table(name: name, columns: [], hasRowids: !isWithoutRowid)]
        .columns.append((column, type))
    }
    self.tables = tables
  }

  subscript(name: String) -> Table? { tables[name.lowercased()] }

  var all: [Table] { tables.values.ordered { $0.name < $1.name } }
}

extension RawTables.Table {
  var sql: String { "\(schema).\(SQLText.quotedIdentifier(name))" }

  func isEmpty(_ database: Database) throws -> Bool {
    try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(sql))") != true
  }
}

extension TableLayout {
  var made: RawTables.Table {
    RawTables.Table(
      name: name, columns: columns.map { ($0.name, $0.type.rawValue) }, hasRowids: true, schema: "main")
  }
}

extension JoinTableLayout {
  var made: RawTables.Table {
    RawTables.Table(name: name, columns: columns.map { ($0, "INTEGER") }, hasRowids: true, schema: "main")
  }
}
