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

/// The doubtful live rows of the raw salvage, in a temporary table.
///
/// `temp.doubt` has their keys by table with the first noted reason; notes of whole pages come first.
struct DoubtfulRows {
  /// Lowercase names.
  let tables: Set<String>

  /// - Parameter made: the lowercase names of tables that already have rows.
  init(_ database: Database, _ raw: RawTables, made: Set<String>) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE doubt (tbl TEXT, k INTEGER, why TEXT, PRIMARY KEY (tbl, k)) WITHOUT ROWID")
    // A connection with an untrusted schema cannot use the views that unpack the notes.
    try database.execute(
      sql: """
        CREATE TEMP TABLE page AS SELECT lower("table") AS tbl, first_key, last_key, doubt AS why
        FROM (\(EvidenceNotes.pages(in: "raw."))) WHERE certainty = 'doubtful'
        """)
    for name in try String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.page") {
      guard let table = raw[name], let rowid = table.rowid else { continue }
      let places = made.contains(name) ? [table.sql, "main.\(SQLText.quotedIdentifier(table.name))"] : [table.sql]
      for place in places {
        try database.execute(
          sql: """
            INSERT OR IGNORE INTO temp.doubt SELECT p.tbl, t.\(rowid), p.why FROM temp.page AS p, \(place) AS t
            WHERE p.tbl = ? AND t.\(rowid) BETWEEN p.first_key AND p.last_key
            """, arguments: [name])
      }
    }
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO temp.doubt SELECT lower("table"), "row", doubt FROM (\(EvidenceNotes.rows(in: "raw.")))
        WHERE certainty = 'doubtful' AND "row" IS NOT NULL AND "table" NOT LIKE 'lazaret@_%' ESCAPE '@'
        """)
    tables = try Set(String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.doubt"))
  }

  /// Returns an SQL condition for doubtful rows.
  func condition(_ table: String, key: String) -> String {
    guard tables.contains(table.lowercased()) else { return "0" }
    return "\(key) IN (SELECT k FROM temp.doubt WHERE tbl = \(SQLText.literal(table.lowercased())))"
  }

  /// Counts the doubtful rows of a table by group and reason.
  ///
  /// - Parameters:
  ///   - found: the table's name in the notes.
  ///   - group: an SQL expression, such as the entity number.
  func counts(
    _ database: Database, _ found: String, in name: String, key: String, by group: String
  ) throws -> [Int64: [DoubtReason: Int64]] {
    guard tables.contains(found.lowercased()) else { return [:] }
    var counts: [Int64: [DoubtReason: Int64]] = [:]
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT \(group), d.why, count(*) FROM \(name) AS t JOIN temp.doubt AS d ON d.tbl = ? AND d.k = t.\(key)
        GROUP BY 1, 2
        """, arguments: [found.lowercased()])
    while let row = try rows.next() {
      let (number, why, count): (Int64?, String?, Int64) = (row[0], row[1], row[2])
      guard let number else { continue }
      counts[number, default: [:]][why.flatMap(DoubtReason.init) ?? .notNoted, default: 0] += count
    }
    return counts
  }
}
