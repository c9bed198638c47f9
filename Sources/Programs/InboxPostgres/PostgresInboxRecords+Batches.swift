package import Inbox
package import StoreFiles

extension PostgresInboxRecords {
  package func noteSalvage(
    of bundle: String, before: SalvageCount?, after: SalvageCount
  ) throws(InboxError) {
    try database.write("note the salvage", isRepeatable: true) { connection in
      _ = try connection.query(
        "UPDATE lazaret.bundles SET salvaged_by = $1 WHERE id = $2", [.shown(after.library ?? ""), .text(bundle)])
      var values: [PostgresValue] = [
        .text(SalvageChange(from: before, to: after).rawValue),
        .maybe(try before.map { try InboxRecordText.text($0) }), .text(try InboxRecordText.text(after)),
      ]
      for number in [before?.recovered, before?.doubtful, before?.lost] {
        values.append(number.map { .integer($0) } ?? .null)
      }
      values += [.integer(after.recovered), .integer(after.doubtful), .integer(after.lost), .text(bundle)]
      values.append(.shown(after.library ?? ""))
      _ = try connection.query(
        """
        UPDATE lazaret.batch_items SET change = $1, before = $2, after = $3, recovered_before = $4, doubtful_before = $5,
          lost_before = $6, recovered_after = $7, doubtful_after = $8, lost_after = $9 WHERE bundle = $10 AND change IS NULL
          AND batch IN (SELECT number FROM lazaret.batches WHERE version = $11)
        """, values)
    }
  }

  /// The bundles of a damage that an earlier version salvaged last.
  private static func earlier(
    _ group: String, _ version: String, _ connection: PostgresConnection
  ) throws -> [String] {
    try connection.query(
      """
      SELECT id, salvaged_by FROM lazaret.bundles
        WHERE damage = $1 AND state = 'quarantined' AND salvaged_by IS DISTINCT FROM $2 ORDER BY date, id
      """, [.text(group), .text(version)]
    ).map { (id: try $0.text($1, 0), known: try $0.maybeText($1, 1)) }
      .filter { $0.known.map { InboxGroup.isOlder($0, version) } ?? true }.map { $0.id }
  }

  package func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int {
    try database.readOnce("look for earlier salvages") { try Self.earlier(group, version, $0).count }
  }

  package func beginBatch(
    of group: String, version: String, at date: Timestamp
  ) throws(InboxError) -> SalvageBatch? {
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
      let bundles = Array(try Self.earlier(group, version, connection).prefix(SalvageBatch.maximumBundles))
      guard !bundles.isEmpty else { return nil }
      let number = try connection.query(
        "INSERT INTO lazaret.batches (damage, version, date, total) VALUES ($1, $2, $3, $4) RETURNING number",
        [.text(group), .text(version), .text(date.rfc3339), .integer(Int64(bundles.count))]
      ).integer(0, 0)
      for start in stride(from: 0, to: bundles.count, by: 10_000) {
        let some = PostgresValue.texts(Array(bundles[start..<min(bundles.count, start + 10_000)]))
        _ = try connection.query(
          "INSERT INTO lazaret.batch_items (batch, bundle) SELECT $1, * FROM unnest($2::text[])",
          [.integer(number), some])
        try PostgresJobQueue.restartSalvages(of: some, at: date, connection)
      }
      return number
    }
    return try number.flatMap { number throws(InboxError) in try batch(number) }
  }

  package func batch(_ number: Int64) throws(InboxError) -> SalvageBatch? {
    try database.read("look for the batch") { connection in
      let found = try connection.query(
        "SELECT number, damage, version, date, total FROM lazaret.batches WHERE number = $1", [.integer(number)]
      ).map { try Self.batch($0, $1) }
      guard var batch = found.first else { return nil }
      let counts = try connection.query(
        """
        SELECT change, CASE WHEN change IS NULL THEN jobs.state END, count(*) FROM lazaret.batch_items
          LEFT JOIN lazaret.jobs ON jobs.bundle = batch_items.bundle AND jobs.kind = 'salvage' WHERE batch = $1 GROUP BY 1, 2
        """, [.integer(number)]
      ).map { (try $0.maybeText($1, 0), try $0.maybeText($1, 1), Int(try $0.integer($1, 2))) }
      for (change, state, count) in counts { batch.count(count, change: change, state: state) }
      let sums = try connection.query(
        """
        SELECT coalesce(sum(recovered_before), 0)::bigint, coalesce(sum(doubtful_before), 0)::bigint,
          coalesce(sum(lost_before), 0)::bigint, coalesce(sum(recovered_after), 0)::bigint,
          coalesce(sum(doubtful_after), 0)::bigint, coalesce(sum(lost_after), 0)::bigint
          FROM lazaret.batch_items WHERE batch = $1 AND recovered_before IS NOT NULL
        """, [.integer(number)])
      batch.before = .init(
        recovered: try sums.integer(0, 0), doubtful: try sums.integer(0, 1), lost: try sums.integer(0, 2))
      batch.after = .init(
        recovered: try sums.integer(0, 3), doubtful: try sums.integer(0, 4), lost: try sums.integer(0, 5))
      return batch
    }
  }

  private static func batch(_ result: borrowing PostgresResult, _ row: Int) throws -> SalvageBatch {
    SalvageBatch(
      number: try result.integer(row, 0), group: try result.text(row, 1), version: try result.text(row, 2),
      date: try result.text(row, 3), total: Int(try result.integer(row, 4)))
  }

  package func batches(of group: String?, after number: Int64?, limit: Int) throws(InboxError) -> [SalvageBatch] {
    try database.readOnce("list the batches") { connection in
      try connection.query(
        """
        SELECT number, damage, version, date, total FROM lazaret.batches WHERE ($1::text IS NULL OR damage = $1)
          AND number < $2 ORDER BY number DESC LIMIT $3
        """, [.maybe(group), .integer(number ?? .max), .integer(Int64(max(0, limit)))], isPlannedAnew: true
      ).map { try Self.batch($0, $1) }
    }
  }

  package func items(
    of batch: Int64, change: SalvageChange?, after bundle: String?, limit: Int
  ) throws(InboxError) -> [SalvageBatchItem] {
    try database.readOnce("list the bundles of the batch") { connection in
      try connection.query(
        """
        SELECT bundle, change, before, after FROM lazaret.batch_items WHERE batch = $1 AND ($2::text IS NULL OR change = $2)
          AND bundle > $3 ORDER BY bundle LIMIT $4
        """,
        [.integer(batch), .maybe(change?.rawValue), .text(bundle ?? ""), .integer(Int64(max(0, limit)))]
      ).map { result, row in
        SalvageBatchItem(
          bundle: try result.text(row, 0), change: try result.maybeText(row, 1).flatMap { SalvageChange(rawValue: $0) },
          before: try result.maybeText(row, 2).map { try InboxRecordText.value(SalvageCount.self, $0) },
          after: try result.maybeText(row, 3).map { try InboxRecordText.value(SalvageCount.self, $0) })
      }
    }
  }
}
