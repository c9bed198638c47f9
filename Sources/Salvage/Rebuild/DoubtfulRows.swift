internal import GRDB
internal import PersistentStore

/// The live rows that are doubtful, by the notes of the raw salvage, in a temporary table; made when it is first asked for.
///
/// `temp.doubt` has their keys for each table; single notes and notes of whole pages alike.
struct DoubtfulRows {
  /// The names of the tables that have any, in lower case.
  let tables: Set<String>

  /// Collects the keys.
  init(_ database: Database, _ raw: RawTables) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE doubt (tbl TEXT, k INTEGER, PRIMARY KEY (tbl, k)) WITHOUT ROWID")
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO temp.doubt SELECT lower("table"), "row" FROM (\(EvidenceNotes.rows(in: "raw.")))
        WHERE certainty = 'doubtful' AND "row" IS NOT NULL AND "table" NOT LIKE 'lazaret@_%' ESCAPE '@'
        """)
    let pages = try Row.fetchAll(
      database,
      sql: "SELECT DISTINCT lower(\"table\") FROM (\(EvidenceNotes.pages(in: "raw."))) WHERE certainty = 'doubtful'")
    for page in pages {
      let name: String = page[0]
      guard let table = raw[name], let rowid = table.rowid else { continue }
      try database.execute(
        sql: """
          INSERT OR IGNORE INTO temp.doubt SELECT lower(p."table"), t.\(rowid)
          FROM (\(EvidenceNotes.pages(in: "raw."))) AS p, \(table.sql) AS t
          WHERE p.certainty = 'doubtful' AND lower(p."table") = ? AND t.\(rowid) BETWEEN p.first_key AND p.last_key
          """, arguments: [name])
    }
    tables = try Set(String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.doubt"))
  }

  /// A condition of SQL that is true for doubtful rows of a table.
  func condition(_ table: String, key: String) -> String {
    guard tables.contains(table.lowercased()) else { return "0" }
    return "\(key) IN (SELECT k FROM temp.doubt WHERE tbl = \(SQLText.literal(table.lowercased())))"
  }
}
