internal import Foundation
internal import GRDB
package import Platform

extension SQLiteInboxRecords {
  package func noteSalvage(
    of bundle: String, before: SalvageCount?, after: SalvageCount
  ) throws(InboxError) {
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

  package func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int {
    try database.read("look for earlier salvages") { database in
      Int(try Self.earlier(group, version, database).reduce(0) { $0 + $1.count })
    }
  }

  package func beginBatch(
    of group: String, version: String, at date: Timestamp
  ) throws(InboxError) -> SalvageBatch? {
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

  package func batch(_ number: Int64) throws(InboxError) -> SalvageBatch? {
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

  package func batches(of group: String?, after number: Int64?, limit: Int) throws(InboxError) -> [SalvageBatch] {
    try database.read("list the batches") { database in
      try Row.fetchAll(
        database,
        sql: "SELECT * FROM batches WHERE (?1 IS NULL OR damage = ?1) AND number < ?2 ORDER BY number DESC LIMIT ?3",
        arguments: [group, number ?? .max, max(0, limit)]
      ).map(Self.batch)
    }
  }

  package func items(
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
          before: try before.map { try InboxRecordText.value(SalvageCount.self, $0) },
          after: try after.map { try InboxRecordText.value(SalvageCount.self, $0) })
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

  package static func value<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
    try JSONDecoder().decode(type, from: Data(text.utf8))
  }
}
