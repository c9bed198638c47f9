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
        INSERT OR IGNORE INTO temp.doubt SELECT lower(value ->> 0), value ->> 1
        FROM raw.lazaret_evidence, json_each(notes)
        WHERE kind = 'rows' AND value ->> 6 = 'doubtful' AND value ->> 1 IS NOT NULL
          AND value ->> 0 NOT LIKE 'lazaret@_%' ESCAPE '@'
        """)
    try database.execute(
      sql: """
        CREATE TEMP TABLE page AS SELECT lower(value ->> 0) AS tbl, value ->> 4 AS first_key, value ->> 5 AS last_key
        FROM raw.lazaret_evidence, json_each(notes) WHERE kind = 'pages' AND value ->> 7 = 'doubtful'
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
