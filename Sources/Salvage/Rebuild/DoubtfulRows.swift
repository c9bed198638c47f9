internal import GRDB
internal import PersistentStore

/// The live rows that are doubtful, by the notes of the raw salvage, in a temporary table; made when it is first asked for.
///
/// `temp.doubt` has their keys for each table; single notes and notes of whole pages alike.
struct DoubtfulRows {
  /// The names of the tables that have any, in lower case.
  let tables: Set<String>

  /// Collects the keys.
  ///
  /// - Parameter made: the names, in lower case, of the tables of the new store that have rows already.
  init(_ database: Database, _ raw: RawTables, made: Set<String>) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE doubt (tbl TEXT, k INTEGER, PRIMARY KEY (tbl, k)) WITHOUT ROWID")
    // The views that unpack the notes are for readers; a connection that trusts no schema cannot use them.
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO temp.doubt SELECT lower("table"), "row" FROM (\(EvidenceNotes.rows(in: "raw.")))
        WHERE certainty = 'doubtful' AND "row" IS NOT NULL AND "table" NOT LIKE 'lazaret@_%' ESCAPE '@'
        """)
    try database.execute(
      sql: """
        CREATE TEMP TABLE page AS SELECT lower("table") AS tbl, first_key, last_key
        FROM (\(EvidenceNotes.pages(in: "raw."))) WHERE certainty = 'doubtful'
        """)
    for name in try String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.page") {
      guard let table = raw[name], let rowid = table.rowid else { continue }
      let places = made.contains(name) ? [table.sql, "main.\(SQLText.quotedIdentifier(table.name))"] : [table.sql]
      for place in places {
        try database.execute(
          sql: """
            INSERT OR IGNORE INTO temp.doubt SELECT p.tbl, t.\(rowid) FROM temp.page AS p, \(place) AS t
            WHERE p.tbl = ? AND t.\(rowid) BETWEEN p.first_key AND p.last_key
            """, arguments: [name])
      }
    }
    tables = try Set(String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.doubt"))
  }

  /// A condition of SQL that is true for doubtful rows of a table.
  func condition(_ table: String, key: String) -> String {
    guard tables.contains(table.lowercased()) else { return "0" }
    return "\(key) IN (SELECT k FROM temp.doubt WHERE tbl = \(SQLText.literal(table.lowercased())))"
  }
}
