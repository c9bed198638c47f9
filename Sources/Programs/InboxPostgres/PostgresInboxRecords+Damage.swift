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
          .shown(try Self.noted(sighting, connection)), .text(sighting.date), .text(sighting.bundle),
          .text(try InboxRecordText.text(sighting.fingerprint)),
        ])
      try Self.noteBands(of: [sighting.fingerprint], connection)
    }
  }

  /// The version of the app as it is noted; of transactions at one time each may add one more than are noted.
  private static func noted(_ sighting: InboxSighting, _ connection: PostgresConnection) throws -> String? {
    guard let version = sighting.appVersion else { return nil }
    let known = try connection.query(
      """
      SELECT EXISTS (
          SELECT 1 FROM lazaret.tallies WHERE kind = 'seen' AND name = $1 AND part = $2 GROUP BY part HAVING sum(n) > 0
        ), (
          SELECT count(*) FROM (
            SELECT 1 FROM lazaret.tallies WHERE kind = 'seen' AND name = $1 GROUP BY part HAVING sum(n) > 0 LIMIT $3
          ) AS parts
        )
      """,
      [
        .text(sighting.fingerprint.group), .shown(version), .integer(Int64(InboxSighting.maximumVersions)),
      ])
    return InboxSighting.noted(
      version, isKnown: try known.text(0, 0) == "t", count: Int(try known.integer(0, 1)))
  }

  private static func noteBands(of fingerprints: [DamageFingerprint], _ connection: PostgresConnection) throws {
    let marks = fingerprints.flatMap { fingerprint in fingerprint.bands.map { ($0.mark, fingerprint.group) } }
    _ = try connection.query(
      """
      INSERT INTO lazaret.damage_bands (band, damage) SELECT * FROM unnest($1::bigint[], $2::text[]) ON CONFLICT DO NOTHING
      """, [.texts(marks.map { String($0.0) }), .texts(marks.map { $0.1 })])
  }

  /// Notes the marks of every damage that was seen before there were any.
  @Sendable static func noteBandsOfAll(_ connection: PostgresConnection) throws {
    var last = ""
    while true {
      let found = try connection.query(
        """
        SELECT damage, (SELECT content FROM lazaret.sightings WHERE damage = known.damage ORDER BY date DESC LIMIT 1)
          FROM lazaret.damages AS known WHERE damage > $1 ORDER BY damage LIMIT 1000
        """, [.text(last)]
      ).map { (damage: try $0.text($1, 0), content: try $0.maybeText($1, 1)) }
      guard let end = found.last?.damage else { return }
      last = end
      try noteBands(
        of: found.compactMap { try $0.content.map { try InboxRecordText.value(DamageFingerprint.self, $0) } },
        connection)
    }
  }

  package func fingerprints(
    sharing bands: [DamageFingerprint.Band], limit: Int
  ) throws(InboxError) -> [DamageFingerprint] {
    try database.readOnce("look for related damage") { connection in
      try connection.query(
        """
        SELECT (SELECT content FROM lazaret.sightings WHERE damage = found.damage ORDER BY date DESC LIMIT 1)
          FROM (
            SELECT shared.damage, sum(weight) AS n FROM unnest($1::bigint[], $4::bigint[]) AS wanted (band, weight), LATERAL (
                SELECT damage FROM lazaret.damage_bands AS known WHERE known.band = wanted.band ORDER BY damage LIMIT $2
              ) AS shared GROUP BY shared.damage ORDER BY n DESC, damage LIMIT $3
          ) AS found ORDER BY n DESC, damage
        """,
        [
          .texts(bands.map { String($0.mark) }), .integer(Int64(RelatedDamage.maximumOfBand)),
          .integer(Int64(max(0, limit))), .texts(bands.map { String($0.weight) }),
        ]
      ).map { try $0.maybeText($1, 0) }.compactMap(\.self)
        .map { try InboxRecordText.value(DamageFingerprint.self, $0) }
    }
  }

  package func groups(after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxGroup> {
    let most = PostgresValue.integer(Int64(max(0, limit)) + 1)
    let groups =
      if let key {
        // The first comparison is one that the index knows.
        try groups(
          "damages WHERE latest <= $1 AND (latest < $1 OR damage > $2) ORDER BY latest DESC, damage LIMIT $3",
          [.text(key.date), .text(key.id), most])
      } else {
        try groups("damages ORDER BY latest DESC, damage LIMIT $1", [most])
      }
    return InboxList(groups, limit: limit) { InboxKey(date: $0.last, id: $0.id) }
  }

  package func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup] {
    // One with a NUL, which PostgreSQL cannot keep, was never seen.
    let possible = PostgresValue.texts(ids.filter { !$0.utf8.contains(0) })
    let found = Dictionary(try groups("damages WHERE damage = ANY($1::text[])", [possible]).map { ($0.id, $0) }) {
      first, _ in first
    }
    return ids.compactMap { found[$0] }
  }

  private func groups(_ source: String, _ values: [PostgresValue]) throws(InboxError) -> [InboxGroup] {
    try database.read("list the damage") { connection in
      let found = try connection.query(
        """
        SELECT known.damage, known.latest,
          (SELECT content FROM lazaret.sightings WHERE damage = known.damage ORDER BY date DESC LIMIT 1),
          (SELECT min(date) FROM lazaret.sightings WHERE damage = known.damage),
          (SELECT coalesce(sum(n), 0)::bigint FROM lazaret.tallies WHERE kind = 'kept' AND name = known.damage)
          FROM (SELECT damage, latest FROM lazaret.\(source)) AS known ORDER BY latest DESC, damage
        """, values)
      let ids = try found.map { try $0.text($1, 0) }
      var versions: [String: [InboxGroup.Version]] = [:]
      let seen = try connection.query(
        """
        SELECT name, part, sum(n)::bigint FROM lazaret.tallies WHERE kind = 'seen' AND name = ANY($1::text[])
          GROUP BY name, part HAVING sum(n) > 0
        """, [.texts(ids)])
      for row in 0..<seen.count {
        versions[try seen.text(row, 0), default: []].append(
          InboxGroup.Version(version: try seen.maybeText(row, 1), count: try seen.integer(row, 2)))
      }
      return try found.map { result, row -> InboxGroup in
        let id = try result.text(row, 0)
        return InboxGroup(
          id: id, fingerprint: try InboxRecordText.value(DamageFingerprint.self, try result.text(row, 2)),
          first: try result.text(row, 3), last: try result.text(row, 1), versions: versions[id] ?? [],
          bundlesKept: try result.integer(row, 4))
      }
    }
  }
}
