package import Inbox

extension PostgresInboxRecords {
  package func note(_ sighting: InboxSighting) throws(InboxError) {
    try database.write("note the damage", isRepeatable: true) { connection in
      // The same store again: what was said of it first counts, with the date of then.
      _ = try connection.query(
        """
        INSERT INTO lazaret.sightings (store, damage, exact, version, date, bundle, content)
          VALUES ($1, $2, $3, $4, $5, $6, $7)
          ON CONFLICT (store) DO UPDATE SET damage = excluded.damage, exact = excluded.exact, version = excluded.version,
            bundle = excluded.bundle, content = excluded.content
        """,
        [
          .text(sighting.store), .text(sighting.fingerprint.group), .text(sighting.fingerprint.exact),
          .shown(sighting.appVersion), .text(sighting.date), .text(sighting.bundle),
          .text(try InboxRecordText.text(sighting.fingerprint)),
        ])
    }
  }

  package func groups(limit: Int) throws(InboxError) -> [InboxGroup] {
    try groups("damages ORDER BY latest DESC, damage LIMIT $1", .integer(Int64(max(0, limit))))
  }

  package func group(_ id: String) throws(InboxError) -> InboxGroup? {
    try groups("damages WHERE damage = $1", .text(id)).first
  }

  private func groups(_ source: String, _ value: PostgresValue) throws(InboxError) -> [InboxGroup] {
    var most: Int64 = 0
    let groups = try database.read("list the damage") { connection in
      let found = try connection.query(
        """
        SELECT known.damage, known.latest,
          (SELECT content FROM lazaret.sightings WHERE damage = known.damage ORDER BY date DESC LIMIT 1),
          (SELECT min(date) FROM lazaret.sightings WHERE damage = known.damage),
          (SELECT coalesce(sum(n), 0)::bigint FROM lazaret.tallies WHERE kind = 'kept' AND name = known.damage)
          FROM (SELECT damage, latest FROM lazaret.\(source)) AS known ORDER BY latest DESC, damage
        """, [value])
      return try found.map { result, row -> InboxGroup in
        let id = try result.text(row, 0)
        let versions = try connection.query(
          """
          SELECT part, sum(n)::bigint, count(*) FROM lazaret.tallies WHERE kind = 'seen' AND name = $1
            GROUP BY part HAVING sum(n) > 0
          """, [.text(id)]
        ).map { result, row in
          most = max(most, try result.integer(row, 2))
          return InboxGroup.Version(version: try result.maybeText(row, 0), count: try result.integer(row, 1))
        }
        return InboxGroup(
          id: id, fingerprint: try InboxRecordText.value(DamageFingerprint.self, try result.text(row, 2)),
          first: try result.text(row, 3), last: try result.text(row, 1), versions: versions,
          bundlesKept: try result.integer(row, 4))
      }
    }
    if most > PostgresTallies.manyRows { try PostgresTallies.sumUp(in: database) }
    return groups
  }
}
