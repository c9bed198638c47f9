internal import Platform

extension PostgresInboxRecords {
  func note(_ sighting: InboxSighting) throws(InboxError) {
    try database.write("note the damage", isRepeatable: true) { connection in
      // A known store keeps its first sighting.
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
          .json(sighting.fingerprint),
        ])
      try Self.noteBands(of: [sighting.fingerprint], connection)
    }
  }

  /// The app version as recorded; concurrent transactions may each exceed the limit by one.
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
      """, [.text(sighting.fingerprint.group), .shown(version), .integer(Int64(InboxSighting.maximumVersions))])
    return InboxSighting.noted(version, isKnown: try known.text(0, 0) == "t", count: Int(try known.integer(0, 1)))
  }

  private static func noteBands(of fingerprints: [DamageFingerprint], _ connection: PostgresConnection) throws {
    let marks = fingerprints.flatMap { fingerprint in fingerprint.bands.map { ($0.mark, fingerprint.group) } }
    _ = try connection.query(
      """
      INSERT INTO lazaret.damage_bands (band, damage) SELECT * FROM unnest($1::bigint[], $2::text[]) ON CONFLICT DO NOTHING
      """, [.texts(marks.map { String($0.0) }), .texts(marks.map { $0.1 })])
  }

  /// Records marks for damage from before marks existed.
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
      try noteBands(of: found.compactMap { try $0.content.map { try InboxRecordText.value($0) } }, connection)
    }
  }

  func fingerprints(sharing bands: [DamageFingerprint.Band], limit: Int) throws(InboxError) -> [DamageFingerprint] {
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
          .limit(limit), .texts(bands.map { String($0.weight) }),
        ]
      ).map { try $0.maybeText($1, 0) }.compactMap(\.self)
        .map { try InboxRecordText.value($0) }
    }
  }

  func groups(after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxGroup> {
    let most = PostgresValue.integer(Int64(max(0, limit)) + 1)
    let groups =
      if let key {
        // Only the first comparison can use the index.
        try groups(
          "damages WHERE latest <= $1 AND (latest < $1 OR damage > $2) ORDER BY latest DESC, damage LIMIT $3",
          [.text(key.date), .text(key.id), most])
      } else {
        try groups("damages ORDER BY latest DESC, damage LIMIT $1", [most])
      }
    return InboxList(groups, limit: limit) { InboxKey(date: $0.last, id: $0.id) }
  }

  func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup] {
    // PostgreSQL cannot store a NUL, so no such damage was seen.
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
          id: id, fingerprint: try result.json(row, 2),
          first: try result.text(row, 3), last: try result.text(row, 1), versions: versions[id] ?? [],
          bundlesKept: try result.integer(row, 4))
      }
    }
  }

  // MARK: Batches

  func noteSalvage(of bundle: String, before: SalvageCount?, after: SalvageCount) throws(InboxError) {
    try database.write("note the salvage", isRepeatable: true) { connection in
      _ = try connection.query(
        "UPDATE lazaret.bundles SET salvaged_by = $1 WHERE id = $2", [.shown(after.library ?? ""), .text(bundle)])
      _ = try connection.query(
        """
        UPDATE lazaret.batch_items SET change = $1, before = $2, after = $3, recovered_before = $4, doubtful_before = $5,
          lost_before = $6, recovered_after = $7, doubtful_after = $8, lost_after = $9 WHERE bundle = $10 AND change IS NULL
          AND batch IN (SELECT number FROM lazaret.batches WHERE version = $11)
        """,
        [
          .text(SalvageChange(from: before, to: after).rawValue),
          .maybe(try before.map { try InboxRecordText.text($0) }), .json(after),
          .maybeInteger(before?.recovered), .maybeInteger(before?.doubtful), .maybeInteger(before?.lost),
          .integer(after.recovered), .integer(after.doubtful), .integer(after.lost), .text(bundle),
          .shown(after.library ?? ""),
        ])
    }
  }

  /// The number of a damage's bundles by the earlier version that salvaged them last; nil if unknown.
  private static func earlier(
    _ group: String, _ version: String, _ connection: PostgresConnection
  ) throws -> [(version: String?, count: Int64)] {
    try connection.query(
      "SELECT part, sum(n)::bigint FROM lazaret.tallies WHERE kind = 'salvaged' AND name = $1 GROUP BY part HAVING sum(n) > 0",
      [.text(group)]
    ).map { (version: try $0.maybeText($1, 0), count: try $0.integer($1, 1)) }
      .filter { $0.version.map { InboxGroup.isOlder($0, version) } ?? true }
  }

  func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int {
    try database.readOnce("look for earlier salvages") { connection in
      Int(try Self.earlier(group, version, connection).reduce(0) { $0 + $1.count })
    }
  }

  func beginBatch(of group: String, version: String, at date: Timestamp) throws(InboxError) -> SalvageBatch? {
    let number = try database.write("begin to salvage again", isRepeatable: false) { connection -> Int64? in
      // One batch of a damage at a time.
      _ = try connection.query("SELECT 1 FROM lazaret.damages WHERE damage = $1 FOR UPDATE", [.text(group)])
      let open = try connection.query(
        """
        SELECT 1 FROM lazaret.batches JOIN lazaret.batch_items ON batch = number
          JOIN lazaret.jobs ON jobs.bundle = batch_items.bundle WHERE damage = $1 AND change IS NULL
          AND jobs.kind = 'salvage' AND jobs.state IN ('waiting', 'running') LIMIT 1
        """, [.text(group)])
      guard open.count == 0 else { throw InboxError.batchIsRunning }
      let earlier = try Self.earlier(group, version, connection)
      guard !earlier.isEmpty else { return nil }
      let bundles = try connection.query(
        """
        SELECT id FROM lazaret.bundles WHERE damage = $1 AND state = 'quarantined'
          AND (salvaged_by = ANY($2::text[]) OR $3::bigint > 0 AND salvaged_by IS NULL) ORDER BY date, id LIMIT $4
        """,
        [
          .text(group), .texts(earlier.compactMap(\.version)),
          .integer(earlier.contains { $0.version == nil } ? 1 : 0), .integer(Int64(SalvageBatch.maximumBundles)),
        ], isPlannedAnew: true
      ).map { try $0.text($1, 0) }
      guard !bundles.isEmpty else { return nil }
      let number = try connection.query(
        "INSERT INTO lazaret.batches (damage, version, date, total) VALUES ($1, $2, $3, $4) RETURNING number",
        [.text(group), .text(version), .text(date.rfc3339), .integer(Int64(bundles.count))]
      ).integer(0, 0)
      for start in stride(from: 0, to: bundles.count, by: 10_000) {
        let some = Array(bundles[start..<min(bundles.count, start + 10_000)])
        _ = try connection.query(
          "INSERT INTO lazaret.batch_items (batch, bundle) SELECT $1, * FROM unnest($2::text[])",
          [.integer(number), .texts(some)])
        try PostgresJobQueue.restart(.salvage, of: some, at: date, connection)
      }
      return number
    }
    return try number.flatMap { number throws(InboxError) in try batch(number) }
  }

  func batch(_ number: Int64) throws(InboxError) -> SalvageBatch? {
    try database.read("look for the batch") { connection in
      let found = try connection.query(
        "SELECT number, damage, version, date, total FROM lazaret.batches WHERE number = $1", [.integer(number)]
      ).map { try Self.batch($0, $1) }
      guard var batch = found.first else { return nil }
      let done = try connection.query(
        """
        SELECT change, count(*), coalesce(sum(recovered_before) FILTER (WHERE known), 0)::bigint,
          coalesce(sum(doubtful_before) FILTER (WHERE known), 0)::bigint, coalesce(sum(lost_before) FILTER (WHERE known), 0)::bigint,
          coalesce(sum(recovered_after) FILTER (WHERE known), 0)::bigint,
          coalesce(sum(doubtful_after) FILTER (WHERE known), 0)::bigint, coalesce(sum(lost_after) FILTER (WHERE known), 0)::bigint
          FROM (SELECT *, recovered_before IS NOT NULL AS known FROM lazaret.batch_items WHERE batch = $1 AND change IS NOT NULL)
            AS items GROUP BY change
        """, [.integer(number)])
      for row in 0..<done.count {
        batch.count(Int(try done.integer(row, 1)), change: try done.text(row, 0), state: nil)
        batch.before.add(
          recovered: try done.integer(row, 2), doubtful: try done.integer(row, 3), lost: try done.integer(row, 4))
        batch.after.add(
          recovered: try done.integer(row, 5), doubtful: try done.integer(row, 6), lost: try done.integer(row, 7))
      }
      // One lookup per bundle: a join would read all jobs.
      let open = try connection.query(
        """
        SELECT job.state, count(*) FROM lazaret.batch_items LEFT JOIN LATERAL (
            SELECT state FROM lazaret.jobs WHERE jobs.bundle = batch_items.bundle AND jobs.kind = 'salvage' LIMIT 1
          ) AS job ON true WHERE batch = $1 AND change IS NULL GROUP BY job.state
        """, [.integer(number)])
      for row in 0..<open.count {
        batch.count(Int(try open.integer(row, 1)), change: nil, state: try open.maybeText(row, 0))
      }
      return batch
    }
  }

  private static func batch(_ result: borrowing PostgresResult, _ row: Int) throws -> SalvageBatch {
    SalvageBatch(
      number: try result.integer(row, 0), group: try result.text(row, 1), version: try result.text(row, 2),
      date: try result.text(row, 3), total: Int(try result.integer(row, 4)))
  }

  func batches(of group: String?, after number: Int64?, limit: Int) throws(InboxError) -> [SalvageBatch] {
    try database.readOnce("list the batches") { connection in
      try connection.query(
        """
        SELECT number, damage, version, date, total FROM lazaret.batches WHERE ($1::text IS NULL OR damage = $1)
          AND number < $2 ORDER BY number DESC LIMIT $3
        """, [.maybe(group), .integer(number ?? .max), .limit(limit)], isPlannedAnew: true
      ).map { try Self.batch($0, $1) }
    }
  }

  func items(
    of batch: Int64, change: SalvageChange?, after bundle: String?, limit: Int
  ) throws(InboxError) -> [SalvageBatchItem] {
    try database.readOnce("list the bundles of the batch") { connection in
      try connection.query(
        """
        SELECT bundle, change, before, after FROM lazaret.batch_items WHERE batch = $1 AND ($2::text IS NULL OR change = $2)
          AND bundle > $3 ORDER BY bundle LIMIT $4
        """, [.integer(batch), .maybe(change?.rawValue), .text(bundle ?? ""), .limit(limit)]
      ).map { result, row in
        SalvageBatchItem(
          bundle: try result.text(row, 0), change: try result.maybeText(row, 1).flatMap { SalvageChange(rawValue: $0) },
          before: try result.maybeJSON(row, 2), after: try result.maybeJSON(row, 3))
      }
    }
  }
}
