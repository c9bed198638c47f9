internal import GRDB
internal import Platform

extension SQLiteInboxRecords {
  package func note(_ sighting: InboxSighting) throws(InboxError) {
    try database.write("note the damage") { database in
      let before = try String.fetchOne(
        database, sql: "SELECT damage FROM sightings WHERE store = ?", arguments: [sighting.store])
      // A known store keeps its first sighting.
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

  /// Updates the last sighting; without stores, removes damage and marks.
  private static func noteLatest(of damage: String, _ database: Database) throws {
    try database.execute(sql: "DELETE FROM damages WHERE damage = ?", arguments: [damage])
    try database.execute(
      sql: "INSERT INTO damages SELECT damage, max(date) FROM sightings WHERE damage = ? GROUP BY damage",
      arguments: [damage])
  }

  static func noteBands(of fingerprint: DamageFingerprint, _ database: Database) throws {
    let statement = try database.makeStatement(
      sql: "INSERT OR IGNORE INTO damage_bands (band, damage) VALUES (?, ?)")
    for band in fingerprint.bands { try statement.execute(arguments: [band.mark, fingerprint.group]) }
  }

  /// The fingerprint of a damage's latest store.
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

extension SQLiteInboxRecords {
  package func retentionCandidates(
    after key: InboxKey?, newer: Int, limit: Int
  ) throws(InboxError) -> [RetentionCandidate] {
    try database.read("look what is kept") { database in
      try Self.candidates(
        "(date, id) > (:date, :bundle) ORDER BY date, id LIMIT :most",
        ["date": key?.date ?? "", "bundle": key?.id ?? "", "newer": max(0, newer), "most": max(0, limit)], database)
    }
  }

  /// Bundles for the retention rules.
  ///
  /// - Parameter condition: selection and order in SQL.
  private static func candidates(
    _ condition: String, _ arguments: StatementArguments, _ database: Database
  ) throws -> [RetentionCandidate] {
    try Row.fetchAll(
      database,
      sql: """
        SELECT id, sender, date, sha256, damage, bytes + coalesce(placed, 0) AS bytes, (
            SELECT count(*) FROM (
              SELECT 1 FROM bundles AS newer WHERE newer.damage = found.damage AND (newer.date, newer.id) > (found.date, found.id)
                AND (newer.state = 'quarantined' OR found.state <> 'quarantined') LIMIT :newer)
          ) AS newer,
          state = 'received' OR EXISTS (
            SELECT 1 FROM jobs WHERE jobs.bundle = found.id AND jobs.state IN ('waiting', 'running')
          ) AS work, coalesce(received, date) AS received
          FROM bundles AS found WHERE \(condition)
        """, arguments: arguments
    ).map { row in
      RetentionCandidate(
        id: row["id"], sender: row["sender"], date: row["date"], sha256: row["sha256"], group: row["damage"],
        bytes: row["bytes"], newer: row["newer"], isAtWork: row["work"], received: row["received"])
    }
  }

  package func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws(InboxError) -> InboxRemoval? {
    try database.write("remove the bundle") { database -> InboxRemoval? in
      let state = try String.fetchOne(
        database, sql: "SELECT state FROM bundles WHERE id = ?", arguments: [removal.bundle])
      let jobs = try SQLiteJobQueue.jobs(of: removal.bundle, database)
      let bundle = try Self.candidates(
        "id = :bundle", ["bundle": removal.bundle, "newer": max(0, newer)], database
      ).first
      guard let state, let bundle, !jobs.contains(where: { states.contains($0.state) }),
        !states.contains(.waiting) || state != InboxBundle.State.received.rawValue, mayGo(bundle)
      else { return nil }
      let recorded = removal.telling(of: bundle)
      try database.execute(
        sql: """
          INSERT INTO removals (bundle, date, rule, sender, arrived, sha256, damage, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
          """,
        arguments: [
          recorded.bundle, recorded.date, recorded.rule.rawValue, recorded.sender, recorded.arrived, recorded.sha256,
          recorded.group, recorded.bytes,
        ])
      try database.execute(sql: "DELETE FROM jobs WHERE bundle = ?", arguments: [recorded.bundle])
      try Self.forget(recorded.bundle, database)
      return recorded
    }
  }

  package func removalsNotCleared() throws(InboxError) -> [String] {
    try database.read("list what was removed") { database in
      try String.fetchAll(database, sql: "SELECT bundle FROM removals WHERE cleared = 0 ORDER BY number")
    }
  }

  package func noteCleared(_ bundle: String) throws(InboxError) {
    try database.write("note what was removed") { database in
      try database.execute(sql: "UPDATE removals SET cleared = 1 WHERE bundle = ?", arguments: [bundle])
    }
  }

  package func removals(after number: Int64?, limit: Int) throws(InboxError) -> [InboxRemoval] {
    try database.read("list what was removed") { database in
      try Row.fetchAll(
        database, sql: "SELECT * FROM removals WHERE number < ? ORDER BY number DESC LIMIT ?",
        arguments: [number ?? .max, max(0, limit)]
      ).compactMap { row -> InboxRemoval? in
        // A later software version may have more rules.
        guard let rule = InboxRemoval.Rule(rawValue: row["rule"]) else { return nil }
        return InboxRemoval(
          number: row["number"], bundle: row["bundle"], date: row["date"], rule: rule, sender: row["sender"],
          arrived: row["arrived"], sha256: row["sha256"], group: row["damage"], bytes: row["bytes"],
          isCleared: row["cleared"])
      }
    }
  }
}

/// A sighting of damage, which outlives its bundle.
package struct InboxSighting: Sendable, Hashable {
  package var bundle: String

  /// Identifies the store, which at another level is the same sighting.
  package var store: String

  package var fingerprint: DamageFingerprint

  /// The bounded app version, if known.
  package var appVersion: String?

  package var date: String

  /// Stands for versions beyond the limit; no real one equals it.
  static let furtherVersion = "\u{1}"

  /// The most versions recorded per damage: senders choose them.
  package static let maximumVersions = 200

  /// Returns the version to record.
  ///
  /// - Parameters:
  ///   - isKnown: whether the damage was seen with it.
  ///   - count: the number of versions seen.
  package static func noted(_ version: String, isKnown: Bool, count: Int) -> String {
    isKnown || count < maximumVersions ? version : furtherVersion
  }

  package init(bundle: String, store: String, fingerprint: DamageFingerprint, appVersion: String?, date: String) {
    self.bundle = bundle
    self.store = store
    self.fingerprint = fingerprint
    self.appVersion = appVersion.map { String(printable($0).prefix(200)) }
    self.date = date
  }
}

package struct RelatedDamage: Sendable, Hashable {
  package var group: InboxGroup

  /// From 0 to 1.
  package var likeness: Double

  /// The names of differing parts.
  package var differences: [String]

  /// The most fingerprints read per mark; a sample stands for very common ones.
  static let maximumOfBand = 500

  /// The most fingerprints compared, by descending weight of common marks.
  static let maximumCompared = 100
}

extension InboxRecords {
  /// Finds the damage most similar to a fingerprint, without its own, by an index for any number of stores.
  package func related(to fingerprint: DamageFingerprint, limit: Int) throws(InboxError) -> [RelatedDamage] {
    let found = try fingerprints(sharing: fingerprint.bands, limit: RelatedDamage.maximumCompared)
      .filter { $0.group != fingerprint.group }
      .map { (fingerprint: $0, likeness: fingerprint.likeness(to: $0)) }
      .sorted { ($1.likeness, $0.fingerprint.group) < ($0.likeness, $1.fingerprint.group) }
    let groups = Dictionary(
      try groups(found.prefix(max(0, limit)).map { $0.fingerprint.group }).map { ($0.id, $0) }
    ) { first, _ in first }
    return found.prefix(max(0, limit)).compactMap { item in
      groups[item.fingerprint.group].map { group in
        RelatedDamage(
          group: group, likeness: item.likeness, differences: item.fingerprint.differences(from: fingerprint))
      }
    }
  }
}
