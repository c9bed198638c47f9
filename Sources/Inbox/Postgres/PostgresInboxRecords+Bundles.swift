extension PostgresInboxRecords {
  /// The fields that lists omit.
  private struct Details: Codable {
    var files: [InboxBundle.File]
    var account: BundleAccount?
  }

  private static func texts(of bundle: InboxBundle) throws -> (summary: String, details: String) {
    var summary = bundle
    summary.files = []
    summary.account = nil
    let details = Details(files: bundle.files, account: bundle.account)
    return (try InboxRecordText.text(summary), try InboxRecordText.text(details))
  }

  /// Inserts a bundle; false if its content or name exists.
  static func insert(_ bundle: InboxBundle, _ connection: PostgresConnection) throws -> Bool {
    let texts = try texts(of: bundle)
    return try connection.query(
      """
      INSERT INTO lazaret.bundles (id, sender, sha256, bytes, date, state, words, summary, details)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (sender, sha256, bytes) DO NOTHING
      """,
      [
        .text(bundle.id), .text(bundle.sender), .text(bundle.sha256), .integer(bundle.bytes), .text(bundle.date),
        .text(bundle.state.rawValue), .shown(bundle.words), .text(texts.summary), .text(texts.details),
      ]
    ).changed == 1
  }

  /// The existing bundle of a resent file.
  static func same(as bundle: InboxBundle, _ connection: PostgresConnection) throws -> InboxBundle {
    let result = try connection.query(
      """
      UPDATE lazaret.bundles SET received = greatest(coalesce(received, date), $4)
        WHERE sender = $1 AND sha256 = $2 AND bytes = $3 RETURNING summary, details
      """, [.text(bundle.sender), .text(bundle.sha256), .integer(bundle.bytes), .text(bundle.date)])
    // Removed meanwhile: retry as if it had never existed.
    guard result.count > 0 else { throw PostgresFailure(.state("40001")) }
    return try Self.bundle(result, 0)
  }

  private static func bundle(_ result: borrowing PostgresResult, _ row: Int) throws -> InboxBundle {
    var bundle = try InboxRecordText.value(InboxBundle.self, try result.text(row, 0))
    let details = try InboxRecordText.value(Details.self, try result.text(row, 1))
    bundle.files = details.files
    bundle.account = details.account
    return bundle
  }

  package func bundleIDs() throws(InboxError) -> [String: Bool] {
    try database.readOnce("list the bundles") { connection in
      Dictionary(
        uniqueKeysWithValues: try connection.query("SELECT id, placed IS NOT NULL FROM lazaret.bundles")
          .map { (try $0.text($1, 0), try $0.text($1, 1) == "t") })
    }
  }

  package func bundleIDs(in state: InboxBundle.State) throws(InboxError) -> [String] {
    try database.readOnce("list the bundles") { connection in
      try connection.query(
        "SELECT id FROM lazaret.bundles WHERE state = $1 ORDER BY date, id", [.text(state.rawValue)]
      ).map { try $0.text($1, 0) }
    }
  }

  package func known(_ ids: [String]) throws(InboxError) -> Set<String> {
    try database.readOnce("look for bundles") { connection in
      Set(
        try connection.query("SELECT id FROM lazaret.bundles WHERE id = ANY($1::text[])", [.texts(ids)])
          .map { try $0.text($1, 0) })
    }
  }

  package func bundle(_ id: String) throws(InboxError) -> InboxBundle? {
    try database.readOnce("look for the bundle") { try Self.bundle(id, $0) }
  }

  static func bundle(_ id: String, _ connection: PostgresConnection) throws -> InboxBundle? {
    let result = try connection.query("SELECT summary, details FROM lazaret.bundles WHERE id = $1", [.text(id)])
    return result.count > 0 ? try Self.bundle(result, 0) : nil
  }

  package func entry(_ id: String) throws(InboxError) -> InboxEntry? {
    try database.read("look for the bundle") { connection in
      let result = try connection.query("SELECT summary, details FROM lazaret.bundles WHERE id = $1", [.text(id)])
      guard result.count > 0 else { return nil }
      return InboxEntry(bundle: try Self.bundle(result, 0), jobs: try PostgresJobQueue.jobs(of: id, connection))
    }
  }

  /// A text, literal in a `LIKE` pattern.
  static func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { escaped, scalar in
      if ["\\", "%", "_"].contains(scalar) { escaped.append("\\") }
      escaped.unicodeScalars.append(scalar)
    }
  }

  package func bundleCount() throws(InboxError) -> Int { try bundleCounts().values.reduce(0, +) }

  package func bundleCounts() throws(InboxError) -> [InboxBundle.State: Int] {
    try PostgresTallies.counts("bundles", in: database).reduce(into: [:]) { counts, count in
      if let state = InboxBundle.State(rawValue: count.key), count.value > 0 { counts[state] = Int(count.value) }
    }
  }

  package func save(_ bundle: InboxBundle) throws(InboxError) {
    try database.write("note what became of the bundle", isRepeatable: true) { try Self.save(bundle, $0) }
  }

  private static func save(_ bundle: InboxBundle, _ connection: PostgresConnection) throws {
    let texts = try texts(of: bundle)
    _ = try connection.query(
      """
      UPDATE lazaret.bundles SET state = $1, damage = $2, words = $3, summary = $4, details = $5 WHERE id = $6
      """,
      [
        .text(bundle.state.rawValue), .maybe(bundle.fingerprint?.group), .shown(bundle.words), .text(texts.summary),
        .text(texts.details), .text(bundle.id),
      ])
  }

  /// Changes a bundle under its row lock.
  static func change(
    _ id: String, _ connection: PostgresConnection, _ change: (inout InboxBundle) -> Void
  ) throws {
    let result = try connection.query(
      "SELECT summary, details FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(id)])
    guard result.count > 0 else { return }
    var bundle = try bundle(result, 0)
    change(&bundle)
    try save(bundle, connection)
  }

  package func change(_ id: String, _ change: (inout InboxBundle) -> Void) throws(InboxError) {
    try database.write("note what became of the bundle", isRepeatable: true) { try Self.change(id, $0, change) }
  }

  package func remove(_ bundle: String) throws(InboxError) {
    try database.write("forget the bundle", isRepeatable: true) { connection in
      _ = try connection.query("SELECT 1 FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(bundle)])
      try Self.forget(bundle, connection)
    }
  }

  /// Deletes a bundle and its uploads.
  static func forget(_ bundle: String, _ connection: PostgresConnection) throws {
    let uploads = try connection.query(
      "SELECT content FROM lazaret.uploads WHERE bundle = $1 ORDER BY ordinal FOR UPDATE", [.text(bundle)]
    ).map { try InboxRecordText.value(InboxUpload.self, try $0.text($1, 0)) }
    for var upload in uploads {
      upload.state = .dropped
      upload.bundle = nil
      try Self.save(upload, connection)
    }
    _ = try connection.query("DELETE FROM lazaret.bundles WHERE id = $1", [.text(bundle)])
  }
}

extension PostgresInboxRecords {
  package func note(_ sighting: InboxSighting) throws(InboxError) {
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
          .text(try InboxRecordText.text(sighting.fingerprint)),
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
        // Only the first comparison can use the index.
        try groups(
          "damages WHERE latest <= $1 AND (latest < $1 OR damage > $2) ORDER BY latest DESC, damage LIMIT $3",
          [.text(key.date), .text(key.id), most])
      } else {
        try groups("damages ORDER BY latest DESC, damage LIMIT $1", [most])
      }
    return InboxList(groups, limit: limit) { InboxKey(date: $0.last, id: $0.id) }
  }

  package func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup] {
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
          id: id, fingerprint: try InboxRecordText.value(DamageFingerprint.self, try result.text(row, 2)),
          first: try result.text(row, 3), last: try result.text(row, 1), versions: versions[id] ?? [],
          bundlesKept: try result.integer(row, 4))
      }
    }
  }
}
