internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// The rows that a salvage found, arranged to be browsed: all rows of a table in one, whatever they are, with notes on each
/// that is not certain.
///
/// Rows that are no live ones get keys below those of all live ones, and the notes tell the key they had. Columns by which
/// relationships are followed get indexes.
struct FoundRows {
  private let database: Database
  private var number: Int64 = 0

  /// Arranges the file that a raw salvage wrote, a private one.
  static func arrange(_ path: FilePath, model: ManagedObjectModel?) throws {
    let queue = try DatabaseQueue(path: PersistentStore.address(of: path, isReadOnly: false))
    try queue.writeWithoutTransaction { database in
      try database.execute(
        sql: """
          PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA cache_size = -8000;
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
    let names = try String.fetchAll(
      database,
      sql: """
        SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'
        AND name NOT LIKE 'lazaret@_%' ESCAPE '@' ORDER BY name
        """)
    let known = try Set(
      String.fetchAll(database, sql: "SELECT lower(name) FROM pragma_table_list WHERE schema = 'main' AND wr = 0"))
    for name in names where known.contains(name.lowercased()) { try arrange(name) }
    if let model {
      try makeIndexes(model)
      try database.execute(sql: "CREATE TABLE \(TableProvenance.model) (content BLOB)")
      try database.execute(
        sql: "INSERT INTO \(TableProvenance.model) VALUES (?)", arguments: [Data(try model.modelCache())])
    }
    try database.execute(
      sql: """
        CREATE INDEX lazaret_browsed_keys ON \(TableProvenance.rows) (tbl, key);
        CREATE INDEX lazaret_browsed_firsts ON \(TableProvenance.places) (tbl, first);
        DROP TABLE temp.row_note; DROP TABLE temp.page_note; DROP VIEW lazaret_pages; DROP VIEW lazaret_provenance;
        DROP TABLE lazaret_evidence
        """)
  }

  private func makeTables() throws {
    for name in [TableProvenance.tables, TableProvenance.rows, TableProvenance.places, TableProvenance.model] {
      try database.execute(sql: "DROP TABLE IF EXISTS \(name)")
    }
    try database.execute(
      sql: """
        CREATE TABLE \(TableProvenance.tables) (id INTEGER PRIMARY KEY, name TEXT, lowest INTEGER, noted INTEGER);
        CREATE TABLE \(TableProvenance.rows) (tbl INTEGER, k INTEGER, state TEXT, key INTEGER, page INTEGER, cell INTEGER,
          source TEXT, reason TEXT, PRIMARY KEY (tbl, k)) WITHOUT ROWID;
        CREATE TABLE \(TableProvenance.places) (tbl INTEGER, first INTEGER, last INTEGER, page INTEGER, source TEXT,
          found_by TEXT, certainty TEXT, reason TEXT);
        CREATE TEMP TABLE row_note AS SELECT lower("table") AS tbl, "row" AS r, "key" AS key, page, cell, source,
          certainty, reason FROM lazaret_provenance WHERE "row" IS NOT NULL;
        CREATE INDEX temp.row_note_by_table ON row_note (tbl);
        CREATE TEMP TABLE page_note AS SELECT lower("table") AS tbl, first_key, last_key, page, source, found_by,
          certainty, reason FROM lazaret_pages;
        CREATE INDEX temp.page_note_by_table ON page_note (tbl)
        """)
  }

  /// Brings all rows of a table together.
  private mutating func arrange(_ name: String) throws {
    let table = SQLText.quotedIdentifier(name)
    let columns = try columns(name)
    let taken = Set(columns.map { $0.lowercased() })
    guard let rowid = ["rowid", "_rowid_", "oid"].first(where: { !taken.contains($0) }) else { return }
    number += 1
    let lower = name.lowercased()
    try database.execute(
      sql: """
        INSERT INTO \(TableProvenance.places) SELECT \(number), first_key, last_key, page, source, found_by, certainty,
          reason FROM temp.page_note WHERE tbl = ? ORDER BY first_key
        """, arguments: [lower])
    try database.execute(
      sql: """
        INSERT OR REPLACE INTO \(TableProvenance.rows) SELECT \(number), r,
          CASE certainty WHEN 'doubtful' THEN 'doubtful' ELSE 'probable' END, key, page, cell, source, reason
        FROM temp.row_note WHERE tbl = ?
        """, arguments: [lower])
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO \(TableProvenance.rows) SELECT \(number), t.\(rowid),
          CASE p.certainty WHEN 'doubtful' THEN 'doubtful' ELSE 'probable' END, t.\(rowid), p.page, NULL, p.source, p.reason
        FROM temp.page_note AS p, \(table) AS t
        WHERE p.tbl = ? AND p.certainty <> 'certain' AND t.\(rowid) BETWEEN p.first_key AND p.last_key
        """, arguments: [lower])
    let lowest = try Int64.fetchOne(database, sql: "SELECT min(\(rowid)) FROM \(table)")
    var next = min(0, lowest ?? 0)
    // A store may hold any key; where there is no room below, the rows stay apart.
    if next > Int64.min / 2 {
      for (prefix, isDeleted) in [("lazaret_other_", false), ("lazaret_deleted_", true)] {
        next = try merge(prefix + name, into: table, rowid, columns, below: next, isDeleted: isDeleted)
      }
    }
    try database.execute(
      sql: """
        INSERT INTO \(TableProvenance.tables) SELECT \(number), ?, ?,
          (SELECT count(*) FROM \(TableProvenance.rows) WHERE tbl = \(number))
        """, arguments: [name, lowest ?? 1])
  }

  /// Puts rows that are no live ones into their table; returns the lowest key that was given.
  private func merge(
    _ source: String, into table: String, _ rowid: String, _ columns: [String], below next: Int64, isDeleted: Bool
  ) throws -> Int64 {
    let own = try Set(self.columns(source).map { $0.lowercased() })
    guard !own.isEmpty else { return next }
    let alias = try String.fetchOne(
      database, sql: "SELECT name FROM pragma_table_info(?) WHERE pk = 1 AND upper(type) = 'INTEGER'",
      arguments: [unquoted(table)])
    let shared = columns.filter { own.contains($0.lowercased()) && $0 != alias }.map(SQLText.quotedIdentifier)
    guard !shared.isEmpty else { return next }
    let from = SQLText.quotedIdentifier(source)
    guard let rows = try Int64.fetchOne(database, sql: "SELECT max(rowid) FROM \(from)") else { return next }
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO \(table) (\(rowid), \(shared.joined(separator: ", ")))
        SELECT \(next) - o.rowid, \(shared.map { "o.\($0)" }.joined(separator: ", ")) FROM \(from) AS o
        """)
    let state = isDeleted ? "'deleted'" : "CASE WHEN reason LIKE 'not committed%' THEN 'uncommitted' ELSE 'version' END"
    try database.execute(
      sql: """
        INSERT OR REPLACE INTO \(TableProvenance.rows)
        SELECT \(number), \(next) - r, \(state), key, page, cell, source, reason FROM temp.row_note WHERE tbl = ?
        """, arguments: [source.lowercased()])
    try database.execute(sql: "DROP TABLE \(from)")
    return next - rows
  }

  private func unquoted(_ identifier: String) -> String {
    String(identifier.dropFirst().dropLast()).replacing("\"\"", with: "\"")
  }

  private func columns(_ name: String) throws -> [String] {
    try String.fetchAll(database, sql: "SELECT name FROM pragma_table_info(?) ORDER BY cid", arguments: [name])
  }

  /// Makes indexes of the columns by which relationships are followed, and of the keys that rows had.
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
      let there = try columns(table).contains { $0.lowercased() == column.lowercased() }
      guard there else { continue }
      try database.execute(
        sql: "CREATE INDEX \(SQLText.quotedIdentifier("lazaret_browsed_\(made.count)")) "
          + "ON \(SQLText.quotedIdentifier(table)) (\(SQLText.quotedIdentifier(column)))")
    }
  }
}
