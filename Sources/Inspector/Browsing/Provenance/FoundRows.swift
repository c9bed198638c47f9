internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import Salvage
internal import SystemPackage

/// A salvage's notes on found rows, indexed by row.
///
/// Rows stay where the salvage wrote them. Rows that are not live get keys below all live keys, so both can be read
/// together; the notes keep the original keys. Columns of relationships get indexes.
struct FoundRows {
  private let database: Database

  /// The tables of live rows, by number.
  private var live: [(id: Int64, table: SQLTable)] = []

  /// Arranges the private file written by a raw salvage.
  static func arrange(_ path: FilePath, model: ManagedObjectModel?) throws {
    let queue = try DatabaseQueue(path: PersistentStore.address(of: path, isReadOnly: false))
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -3072;
          PRAGMA foreign_keys = OFF
          """)
      try database.inTransaction {
        var rows = FoundRows(database: database)
        try rows.run(model)
        return .commit
      }
    }
    try queue.close()
  }

  private mutating func run(_ model: ManagedObjectModel?) throws {
    try makeTables()
    try listTables()
    try takeNotes()
    if let model {
      try makeIndexes(model)
      try database.execute(sql: "CREATE TABLE \(TableProvenance.model) (content BLOB)")
      try database.execute(
        sql: "INSERT INTO \(TableProvenance.model) VALUES (?)", arguments: [Data(try model.modelCache())])
    }
  }

  private func makeTables() throws {
    for name in [TableProvenance.tables, TableProvenance.rows, TableProvenance.places, TableProvenance.model] {
      try database.execute(sql: "DROP TABLE IF EXISTS \(name)")
    }
    try database.execute(
      sql: """
        CREATE TABLE \(TableProvenance.tables) (id INTEGER PRIMARY KEY, name TEXT UNIQUE, role TEXT, live INTEGER,
          below INTEGER, lowest INTEGER, noted INTEGER);
        CREATE TABLE \(TableProvenance.rows) (tbl INTEGER, k INTEGER, state TEXT, key INTEGER, page INTEGER, cell INTEGER,
          source TEXT, reason TEXT, PRIMARY KEY (tbl, k)) WITHOUT ROWID;
        CREATE TABLE \(TableProvenance.places) (tbl INTEGER, first INTEGER, last INTEGER, page INTEGER, source TEXT,
          found_by TEXT, certainty TEXT, reason TEXT)
        """)
  }

  // MARK: Tables

  /// Numbers the tables of live rows and of their other rows.
  private mutating func listTables() throws {
    let withRowid = try Set(
      String.fetchAll(database, sql: "SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 0"))
    let schema = try SQLSchema(database)
    for table in schema.tables.values.sorted(by: { $0.name < $1.name })
    where withRowid.contains(table.name) && !table.name.lowercased().hasPrefix("lazaret_") {
      try list(table, schema)
    }
  }

  private mutating func list(_ table: SQLTable, _ schema: SQLSchema) throws {
    guard let rowid = table.rowidName else { return }
    let lowest = try Int64.fetchOne(
      database, sql: "SELECT min(\(rowid)) FROM \(SQLText.quotedIdentifier(table.name))")
    try database.execute(
      sql: "INSERT INTO \(TableProvenance.tables) (name, role, lowest) VALUES (?, ?, ?)",
      arguments: [table.name, OutputRole.live.rawValue, lowest ?? 1])
    let id = database.lastInsertedRowID
    live.append((id, table))
    var below = min(0, lowest ?? 0)
    // A store may hold any key; without room for lower keys or a key column, rows stay separate.
    guard below > Int64.min / 2, table.columns.count + 2 <= PageStatement.mostColumns else { return }
    for role in [OutputRole.other, .deleted] {
      guard let apart = schema.tables[role.name(table.name)], let apartRowid = apart.rowidName,
        table.sharesColumns(with: apart),
        let last = try Int64.fetchOne(
          database, sql: "SELECT max(\(apartRowid)) FROM \(SQLText.quotedIdentifier(apart.name))")
      else { continue }
      try database.execute(
        sql: "INSERT INTO \(TableProvenance.tables) (name, role, live, below) VALUES (?, ?, ?, ?)",
        arguments: [apart.name, role.rawValue, id, below])
      below -= last
    }
  }

  // MARK: Notes

  /// Moves the salvage's notes, which aren't needed in their original form.
  private func takeNotes() throws {
    try database.execute(
      sql: """
        INSERT INTO \(TableProvenance.places) SELECT t.id, p.first_key, p.last_key, p.page, p.source, p.found_by,
          p.certainty, p.reason
        FROM (\(EvidenceNotes.pages(in: ""))) AS p CROSS JOIN \(TableProvenance.tables) AS t ON t.name = p."table";
        INSERT OR REPLACE INTO \(TableProvenance.rows) SELECT t.id, coalesce(t.below - r."row", r."row"),
          CASE
            WHEN t.role = 'deleted' THEN 'deleted'
            WHEN t.role = 'other' THEN
              CASE WHEN r.reason LIKE '\(EvidenceNotes.uncommitted)%' THEN 'uncommitted' ELSE 'version' END
            WHEN r.certainty = 'doubtful' THEN 'doubtful' ELSE 'probable'
          END, r."key", r.page, r.cell, r.source, r.reason
        FROM (\(EvidenceNotes.rows(in: ""))) AS r CROSS JOIN \(TableProvenance.tables) AS t ON t.name = r."table"
        WHERE r."row" IS NOT NULL;
        UPDATE \(TableProvenance.rows) AS o SET state = 'part' WHERE state = 'version' AND cell IS NOT NULL AND EXISTS (
          SELECT 1 FROM \(TableProvenance.tables) AS t CROSS JOIN \(TableProvenance.rows) AS l
          WHERE t.id = o.tbl AND l.tbl = t.live AND l.k = o.key AND l.state = 'doubtful'
            AND l.page = o.page AND l.cell = o.cell AND l.source = o.source);
        DROP VIEW lazaret_pages; DROP VIEW lazaret_provenance; DROP TABLE lazaret_evidence;
        CREATE INDEX lazaret_browsed_unsure ON \(TableProvenance.places) (tbl) WHERE certainty <> 'certain'
        """)
    for (id, table) in live { try takePageNotes(id, table) }
    try database.execute(
      sql: """
        DROP INDEX lazaret_browsed_unsure;
        UPDATE \(TableProvenance.tables) SET noted =
          (SELECT count(*) FROM \(TableProvenance.rows) AS r WHERE r.tbl = \(TableProvenance.tables).id);
        CREATE INDEX lazaret_browsed_keys ON \(TableProvenance.rows) (tbl, key);
        CREATE INDEX lazaret_browsed_firsts ON \(TableProvenance.places) (tbl, first)
        """)
  }

  /// Adds notes to rows of uncertain pages.
  private func takePageNotes(_ id: Int64, _ table: SQLTable) throws {
    guard let name = table.rowidName else { return }
    let rowid = "t.\(name)"
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO \(TableProvenance.rows) SELECT \(id), \(rowid),
          CASE p.certainty WHEN 'doubtful' THEN 'doubtful' ELSE 'probable' END, \(rowid), p.page, NULL, p.source, p.reason
        FROM \(TableProvenance.places) AS p CROSS JOIN \(SQLText.quotedIdentifier(table.name)) AS t
        WHERE p.tbl = \(id) AND p.certainty <> 'certain' AND \(rowid) BETWEEN p.first AND p.last
        """)
  }

  private func makeIndexes(_ model: ManagedObjectModel) throws {
    let layout = try StoreLayout(model)
    var wanted: [(table: String, column: String)] = []
    for table in layout.tables {
      for column in table.columns {
        guard case .toOne = column.role else { continue }
        wanted.append((table.name, column.name))
      }
    }
    for entity in layout.entities {
      for name in layout.model.properties(of: entity.name).keys {
        guard case .toManyByJoinTable(let table, let own, _, _) = layout.storage(of: name, in: entity.name) else {
          continue
        }
        wanted.append((table, own))
      }
    }
    var made: Set<String> = []
    for (table, column) in wanted where made.insert("\(table).\(column)".lowercased()).inserted {
      let found = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info(?)", arguments: [table])
      guard found.contains(where: { $0.lowercased() == column.lowercased() }) else { continue }
      try database.execute(
        sql: "CREATE INDEX \(SQLText.quotedIdentifier("lazaret_browsed_\(made.count)")) "
          + "ON \(SQLText.quotedIdentifier(table)) (\(SQLText.quotedIdentifier(column)))")
    }
  }
}
