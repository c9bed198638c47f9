internal import GRDB

extension SQLiteInboxRecords {
  package func note(_ sighting: InboxSighting) throws(InboxError) {
    try database.write("note the damage") { database in
      let before = try String.fetchOne(
        database, sql: "SELECT damage FROM sightings WHERE store = ?", arguments: [sighting.store])
      // The same store again: what was said of it first counts, with the date of then.
      try database.execute(
        sql: """
          INSERT INTO sightings (store, damage, exact, version, date, bundle, content) VALUES (?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (store) DO UPDATE SET damage = excluded.damage, exact = excluded.exact, version = excluded.version,
              bundle = excluded.bundle, content = excluded.content
          """,
        arguments: [
          sighting.store, sighting.fingerprint.group, sighting.fingerprint.exact,
          try Self.noted(sighting, database), sighting.date,
          sighting.bundle, try InboxRecordText.text(sighting.fingerprint),
        ])
      for damage in Set([before, sighting.fingerprint.group].compactMap(\.self)) {
        try Self.noteLatest(of: damage, database)
      }
      try Self.noteBands(of: sighting.fingerprint, database)
    }
  }

  /// The version of the app as it is noted.
  private static func noted(_ sighting: InboxSighting, _ database: Database) throws -> String? {
    guard let version = sighting.appVersion else { return nil }
    let isKnown = try Int64.fetchOne(
      database, sql: "SELECT n FROM tallies WHERE kind = 'seen' AND name = ? AND part = '=' || ? AND n > 0",
      arguments: [sighting.fingerprint.group, version])
    let count = try Int.fetchOne(
      database,
      sql: "SELECT count(*) FROM (SELECT 1 FROM tallies WHERE kind = 'seen' AND name = ? AND n > 0 LIMIT ?)",
      arguments: [sighting.fingerprint.group, InboxSighting.maximumVersions])
    return InboxSighting.noted(version, isKnown: isKnown != nil, count: count ?? 0)
  }

  /// Notes when a damage was seen last; one that no store has any more is forgotten, and its marks lead
  /// nowhere.
  private static func noteLatest(of damage: String, _ database: Database) throws {
    try database.execute(sql: "DELETE FROM damages WHERE damage = ?", arguments: [damage])
    try database.execute(
      sql: "INSERT INTO damages SELECT damage, max(date) FROM sightings WHERE damage = ? GROUP BY damage",
      arguments: [damage])
  }

  /// Notes the marks by which a fingerprint is found.
  static func noteBands(of fingerprint: DamageFingerprint, _ database: Database) throws {
    let statement = try database.makeStatement(
      sql: "INSERT OR IGNORE INTO damage_bands (band, damage) VALUES (?, ?)")
    for band in fingerprint.bands { try statement.execute(arguments: [band.mark, fingerprint.group]) }
  }

  /// What a damage is, as the latest of its stores says; nil where it was never seen.
  static func fingerprint(_ damage: String, _ database: Database) throws -> DamageFingerprint? {
    try String.fetchOne(
      database, sql: "SELECT content FROM sightings WHERE damage = ? ORDER BY date DESC LIMIT 1", arguments: [damage]
    ).map { try InboxRecordText.value(DamageFingerprint.self, $0) }
  }

  package func groups(after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxGroup> {
    try database.read("list the damage") { database in
      let most = max(0, limit) + 1
      let arguments: StatementArguments =
        if let key { [key.date, key.date, key.id, most] } else { [most] }
      let groups = try String.fetchAll(
        database,
        sql: """
          SELECT damage FROM damages WHERE \(key == nil ? "true" : "latest <= ? AND (latest < ? OR damage > ?)")
            ORDER BY latest DESC, damage LIMIT ?
          """, arguments: arguments
      ).compactMap { try Self.group($0, database) }
      return InboxList(groups, limit: limit) { InboxKey(date: $0.last, id: $0.id) }
    }
  }

  package func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup] {
    try database.read("look for the damage") { database in
      try ids.filter { !$0.utf8.contains(0) }.compactMap { try Self.group($0, database) }
    }
  }

  package func fingerprints(
    sharing bands: [DamageFingerprint.Band], limit: Int
  ) throws(InboxError) -> [DamageFingerprint] {
    try database.read("look for related damage") { database in
      var shared: [String: Int64] = [:]
      for band in bands {
        let damages = try String.fetchAll(
          database, sql: "SELECT damage FROM damage_bands WHERE band = ? ORDER BY damage LIMIT ?",
          arguments: [band.mark, RelatedDamage.maximumOfBand])
        for damage in damages { shared[damage, default: 0] += band.weight }
      }
      let most = shared.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.prefix(max(0, limit))
      return try most.compactMap { try Self.fingerprint($0.key, database) }
    }
  }

  private static func group(_ id: String, _ database: Database) throws -> InboxGroup? {
    guard
      let latest = try Row.fetchOne(
        database, sql: "SELECT content FROM sightings WHERE damage = ? ORDER BY date DESC LIMIT 1", arguments: [id]),
      let sum = try Row.fetchOne(
        database,
        sql: """
          SELECT (SELECT min(date) FROM sightings WHERE damage = ?1) AS first,
            (SELECT max(date) FROM sightings WHERE damage = ?1) AS last
          """, arguments: [id])
    else { return nil }
    let versions = try InboxDatabase.parts("seen", id, database)
      .map { InboxGroup.Version(version: $0.part, count: $0.count) }
    let kept = try InboxDatabase.count("kept", id, database)
    return InboxGroup(
      id: id, fingerprint: try InboxRecordText.value(DamageFingerprint.self, latest["content"]), first: sum["first"],
      last: sum["last"], versions: versions, bundlesKept: kept)
  }
}
