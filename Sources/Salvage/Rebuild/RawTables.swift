internal import GRDB
internal import PersistentStore
import Platform

/// The tables of a raw salvage, attached as `raw`, found without regard to the case of their names.
struct RawTables {
  /// A table of live rows, or of rows set aside.
  struct Table {
    /// The name as the file has it.
    var name: String

    /// The names and declared types of its columns, in order.
    var columns: [(name: String, type: String)]

    /// Whether its rows have rowids.
    var hasRowids: Bool

    /// The database that it is in, as it is attached.
    var schema = "raw"

    /// A name that stands for the rowid; nil where every one is taken by a column, or there is none.
    var rowid: String? {
      guard hasRowids else { return nil }
      return ["rowid", "_rowid_", "oid"].first { column($0) == nil }
    }

    /// The name of a column as the table has it; nil where it has none of that name.
    func column(_ name: String) -> String? {
      columns.first { $0.name.lowercased() == name.lowercased() }?.name
    }
  }

  private let tables: [String: Table]

  /// Reads the list of tables.
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

  /// The table of that name.
  subscript(name: String) -> Table? { tables[name.lowercased()] }

  /// All of them, by name.
  var all: [Table] { tables.values.ordered { $0.name < $1.name } }
}

extension RawTables.Table {
  /// The table as it stands in SQL.
  var sql: String { "\(schema).\(SQLText.quotedIdentifier(name))" }

  /// Whether it has no row.
  func isEmpty(_ database: Database) throws -> Bool {
    try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(sql))") != true
  }
}

extension TableLayout {
  /// The table of the new store.
  var made: RawTables.Table {
    RawTables.Table(
      name: name, columns: columns.map { ($0.name, $0.type.rawValue) }, hasRowids: true, schema: "main")
  }
}

extension JoinTableLayout {
  /// The table of the new store.
  var made: RawTables.Table {
    RawTables.Table(name: name, columns: columns.map { ($0, "INTEGER") }, hasRowids: true, schema: "main")
  }
}
