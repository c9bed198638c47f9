internal import Inbox

/// Counts that pages show, which triggers keep in a few rows each; see ``PostgresSchema``.
enum PostgresTallies {
  /// The counts of a kind, by name.
  static func counts(_ kind: String, in database: PostgresDatabase) throws(InboxError) -> [String: Int64] {
    try database.readOnce("count what there is") { connection in
      Dictionary(
        uniqueKeysWithValues: try connection.query(
          "SELECT name, sum(n)::bigint FROM lazaret.tallies WHERE kind = $1 GROUP BY name", [.text(kind)]
        ).map { (try $0.text($1, 0), try $0.integer($1, 1)) })
    }
  }
}
