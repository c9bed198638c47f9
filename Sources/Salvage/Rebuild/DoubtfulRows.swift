internal import GRDB
internal import PersistentStore

/// The live rows that are doubtful, by the notes of the raw salvage, in a temporary table; made when it is first asked for.
///
/// `temp.doubt` has their keys for each table, with the first reason that was noted; notes of whole pages go before those of
/// single rows.
struct DoubtfulRows {
  /// The names of the tables that have any, in lower case.
  let tables: Set<String>

  /// Collects the keys.
  ///
  /// - Parameter made: the names, in lower case, of the tables of the new store that have rows already.
  init(_ database: Database, _ raw: RawTables, made: Set<String>) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE doubt (tbl TEXT, k INTEGER, why TEXT, PRIMARY KEY (tbl, k)) WITHOUT ROWID")
    // The views that unpack the notes are for readers; a connection that trusts no schema cannot use them.
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

  /// A condition of SQL that is true for doubtful rows of a table.
  func condition(_ table: String, key: String) -> String {
    guard tables.contains(table.lowercased()) else { return "0" }
    return "\(key) IN (SELECT k FROM temp.doubt WHERE tbl = \(SQLText.literal(table.lowercased())))"
  }

  /// How many rows of a table of the new store are doubtful, by the value of a column and by the reason.
  ///
  /// - Parameters:
  ///   - found: the table's name in the notes.
  ///   - name: the table, as SQL.
  ///   - group: an expression that rows are counted by, such as the number of their entity.
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
