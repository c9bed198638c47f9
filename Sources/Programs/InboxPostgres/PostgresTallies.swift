package import Inbox

/// Counts that pages show, of rows that each change has added one of; see ``PostgresSchema``.
package enum PostgresTallies {
  /// From how many rows of one kind on they are summed up.
  package static let manyRows: Int64 = 2000

  /// The counts of a kind, by name.
  package static func counts(_ kind: String, in database: PostgresDatabase) throws(InboxError) -> [String: Int64] {
    var rows: Int64 = 0
    let counts = try database.readOnce("count what there is") { connection in
      rows = 0
      return Dictionary(
        uniqueKeysWithValues: try connection.query(
          "SELECT name, sum(n)::bigint, count(*) FROM lazaret.tallies WHERE kind = $1 GROUP BY name", [.text(kind)]
        ).map { result, row in
          rows += try result.integer(row, 2)
          return (try result.text(row, 0), try result.integer(row, 1))
        })
    }
    if rows > manyRows { try sumUp(in: database) }
    return counts
  }

  /// Makes one row of the rows of each name; what another transaction has just added waits for the next time.
  package static func sumUp(in database: PostgresDatabase) throws(InboxError) {
    // A lost answer does no harm: sums of sums are the same.
    try database.write("sum up what there is", isRepeatable: true, tells: false) { connection in
      _ = try connection.query(
        """
        WITH many AS (
          SELECT kind, name FROM lazaret.tallies GROUP BY kind, name HAVING count(*) > 16 ORDER BY count(*) DESC LIMIT 100
        ), gone AS (
          DELETE FROM lazaret.tallies WHERE ctid IN (
            SELECT tallies.ctid FROM lazaret.tallies JOIN many USING (kind, name) LIMIT 200000 FOR UPDATE OF tallies SKIP LOCKED
          ) RETURNING kind, name, part, n
        )
        INSERT INTO lazaret.tallies SELECT kind, name, part, sum(n)::bigint FROM gone GROUP BY kind, name, part
          HAVING sum(n) <> 0
        """)
    }
  }
}
