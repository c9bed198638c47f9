internal import Foundation
internal import GRDB
internal import Platform

extension SQLiteInboxRecords {
  func note(_ sighting: InboxSighting) throws(InboxError) {
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
      database, sql: "SELECT count(*) FROM (SELECT 1 FROM tallies WHERE kind = 'seen' AND name = ? AND n > 0 LIMIT ?)",
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
    let statement = try database.makeStatement(sql: "INSERT OR IGNORE INTO damage_bands (band, damage) VALUES (?, ?)")
    for band in fingerprint.bands { try statement.execute(arguments: [band.mark, fingerprint.group]) }
  }

  /// The fingerprint of a damage's latest store.
  static func fingerprint(_ damage: String, _ database: Database) throws -> DamageFingerprint? {
    try String.fetchOne(
      database, sql: "SELECT content FROM sightings WHERE damage = ? ORDER BY date DESC LIMIT 1", arguments: [damage]
    ).map { try InboxRecordText.value($0) }
  }

  func groups(after key: InboxKey?, limit: Int) throws(InboxError) -> InboxList<InboxGroup> {
    try database.read("list the damage") { database in
      let most = max(0, limit) + 1
      let arguments: StatementArguments = if let key { [key.date, key.date, key.id, most] } else { [most] }
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

  func groups(_ ids: [String]) throws(InboxError) -> [InboxGroup] {
    try database.read("look for the damage") { database in
      try ids.filter { !$0.utf8.contains(0) }.compactMap { try Self.group($0, database) }
    }
  }

  func fingerprints(sharing bands: [DamageFingerprint.Band], limit: Int) throws(InboxError) -> [DamageFingerprint] {
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
    guard let fingerprint = try fingerprint(id, database),
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
      id: id, fingerprint: fingerprint, first: sum["first"], last: sum["last"], versions: versions, bundlesKept: kept)
  }

  // MARK: Retention

  func retentionCandidates(after key: InboxKey?, newer: Int, limit: Int) throws(InboxError) -> [RetentionCandidate] {
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

  func remove(
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
      let recorded = InboxRemoval(of: bundle, by: removal.rule, date: removal.date)
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

  func removalsNotCleared() throws(InboxError) -> [String] {
    try database.read("list what was removed") { database in
      try String.fetchAll(database, sql: "SELECT bundle FROM removals WHERE cleared = 0 ORDER BY number")
    }
  }

  func noteCleared(_ bundle: String) throws(InboxError) {
    try database.write("note what was removed") { database in
      try database.execute(sql: "UPDATE removals SET cleared = 1 WHERE bundle = ?", arguments: [bundle])
    }
  }

  func removals(after number: Int64?, limit: Int) throws(InboxError) -> [InboxRemoval] {
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

  // MARK: Batches

  func noteSalvage(of bundle: String, before: SalvageCount?, after: SalvageCount) throws(InboxError) {
    try database.write("note the salvage") { database in
      try database.execute(
        sql: "UPDATE bundles SET salvaged_by = ? WHERE id = ?", arguments: [after.library ?? "", bundle])
      try database.execute(
        sql: """
          UPDATE batch_items SET change = ?, before = ?, after = ?, recovered_before = ?, doubtful_before = ?, lost_before = ?,
            recovered_after = ?, doubtful_after = ?, lost_after = ? WHERE bundle = ? AND change IS NULL
              AND batch IN (SELECT number FROM batches WHERE version = ?)
          """,
        arguments: [
          SalvageChange(from: before, to: after).rawValue, try before.map { try InboxRecordText.text($0) },
          try InboxRecordText.text(after), before?.recovered, before?.doubtful, before?.lost, after.recovered,
          after.doubtful, after.lost, bundle, after.library ?? "",
        ])
    }
  }

  /// The number of a damage's bundles by the earlier version that salvaged them last; nil if unknown.
  private static func earlier(
    _ group: String, _ version: String, _ database: Database
  ) throws -> [(version: String?, count: Int64)] {
    try InboxDatabase.parts("salvaged", group, database).map { (version: $0.part, count: $0.count) }
      .filter { $0.version.map { InboxGroup.isOlder($0, version) } ?? true }
  }

  func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int {
    try database.read("look for earlier salvages") { database in
      Int(try Self.earlier(group, version, database).reduce(0) { $0 + $1.count })
    }
  }

  func beginBatch(of group: String, version: String, at date: Timestamp) throws(InboxError) -> SalvageBatch? {
    try database.write("begin to salvage again") { database -> SalvageBatch? in
      let open = try Row.fetchOne(
        database,
        sql: """
          SELECT 1 FROM batches JOIN batch_items ON batch = number JOIN jobs ON jobs.bundle = batch_items.bundle
            WHERE damage = ? AND change IS NULL AND jobs.kind = 'salvage' AND jobs.state IN ('waiting', 'running') LIMIT 1
          """, arguments: [group])
      guard open == nil else { throw InboxError.batchIsRunning }
      let earlier = Set(try Self.earlier(group, version, database).map(\.version))
      guard !earlier.isEmpty else { return nil }
      var bundles: [String] = []
      let found = try Row.fetchCursor(
        database,
        sql: "SELECT id, salvaged_by FROM bundles WHERE damage = ? AND state = 'quarantined' ORDER BY date, id",
        arguments: [group])
      while bundles.count < SalvageBatch.maximumBundles, let row = try found.next() {
        if earlier.contains(row["salvaged_by"]) { bundles.append(row["id"]) }
      }
      guard !bundles.isEmpty else { return nil }
      try database.execute(
        sql: "INSERT INTO batches (damage, version, date, total) VALUES (?, ?, ?, ?)",
        arguments: [group, version, date.rfc3339, bundles.count])
      let number = database.lastInsertedRowID
      let item = try database.makeStatement(sql: "INSERT INTO batch_items (batch, bundle) VALUES (?, ?)")
      for bundle in bundles {
        try item.execute(arguments: [number, bundle])
        try SQLiteJobQueue.restart(.salvage, of: bundle, at: date, database)
      }
      return try Self.batch(number, database)
    }
  }

  func batch(_ number: Int64) throws(InboxError) -> SalvageBatch? {
    try database.read("look for the batch") { try Self.batch(number, $0) }
  }

  private static func batch(_ row: Row) -> SalvageBatch {
    SalvageBatch(
      number: row["number"], group: row["damage"], version: row["version"], date: row["date"], total: row["total"])
  }

  private static func batch(_ number: Int64, _ database: Database) throws -> SalvageBatch? {
    guard let row = try Row.fetchOne(database, sql: "SELECT * FROM batches WHERE number = ?", arguments: [number])
    else { return nil }
    var batch = batch(row)
    for row in try Row.fetchAll(
      database,
      sql: """
        SELECT change, jobs.state AS state, count(*) AS count FROM batch_items
          LEFT JOIN jobs ON jobs.bundle = batch_items.bundle AND jobs.kind = 'salvage' WHERE batch = ?
          GROUP BY change, CASE WHEN change IS NULL THEN jobs.state END
        """, arguments: [number])
    {
      batch.count(row["count"], change: row["change"], state: row["state"])
    }
    let sums = try Row.fetchOne(
      database,
      sql: """
        SELECT coalesce(sum(recovered_before), 0), coalesce(sum(doubtful_before), 0), coalesce(sum(lost_before), 0),
          coalesce(sum(recovered_after), 0), coalesce(sum(doubtful_after), 0), coalesce(sum(lost_after), 0)
          FROM batch_items WHERE batch = ? AND recovered_before IS NOT NULL
        """, arguments: [number])
    if let sums {
      batch.before = .init(recovered: sums[0], doubtful: sums[1], lost: sums[2])
      batch.after = .init(recovered: sums[3], doubtful: sums[4], lost: sums[5])
    }
    return batch
  }

  func batches(of group: String?, after number: Int64?, limit: Int) throws(InboxError) -> [SalvageBatch] {
    try database.read("list the batches") { database in
      try Row.fetchAll(
        database,
        sql: "SELECT * FROM batches WHERE (?1 IS NULL OR damage = ?1) AND number < ?2 ORDER BY number DESC LIMIT ?3",
        arguments: [group, number ?? .max, max(0, limit)]
      ).map(Self.batch)
    }
  }

  func items(
    of batch: Int64, change: SalvageChange?, after bundle: String?, limit: Int
  ) throws(InboxError) -> [SalvageBatchItem] {
    try database.read("list the bundles of the batch") { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT bundle, change, before, after FROM batch_items
            WHERE batch = ?1 AND (?2 IS NULL OR change = ?2) AND bundle > ?3 ORDER BY bundle LIMIT ?4
          """, arguments: [batch, change?.rawValue, bundle ?? "", max(0, limit)]
      ).map { row in
        let (change, before, after): (String?, String?, String?) = (row["change"], row["before"], row["after"])
        return SalvageBatchItem(
          bundle: row["bundle"], change: change.flatMap { SalvageChange(rawValue: $0) },
          before: try before.map { try InboxRecordText.value($0) },
          after: try after.map { try InboxRecordText.value($0) })
      }
    }
  }
}

/// Values as JSON text.
package enum InboxRecordText {
  /// Encodes a value.
  ///
  /// - Throws: `encoding-failed`.
  package static func text(_ value: some Encodable) throws -> String {
    String(decoding: try JSON.bytes(of: value, .line, to: "keep the records of the inbox"), as: UTF8.self)
  }

  static func value<Value: Decodable>(_ text: String) throws -> Value {
    try JSONDecoder().decode(Value.self, from: Data(text.utf8))
  }
}
