package import Platform

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

  package func salvagedEarlier(of group: String, than version: String) throws(InboxError) -> Int {
    try database.readOnce("look for earlier salvages") { connection in
      Int(try Self.earlier(group, version, connection).reduce(0) { $0 + $1.count })
    }
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

extension PostgresInboxRecords {
  package func admit(
    _ upload: InboxUpload, quota: Int64, limits: InboxLimits
  ) throws(InboxError) -> InboxAdmission {
    try database.write("begin the upload", isRepeatable: false, tells: false) { connection in
      if let known = try Self.known(upload, connection) { return .known(known) }
      var room = try Self.room(of: upload.sender, connection, isLocked: true)
      room.quota = quota
      // Another process may have finished the same file during the wait for the lock.
      if let known = try Self.known(upload, connection) { return .known(known) }
      let open = try connection.query(
        "SELECT count(*) FROM lazaret.uploads WHERE state = 'open' AND sender = $1", [.text(upload.sender)])
      let admission = room.admission(of: upload, open: Int(try open.integer(0, 0)), limits)
      if admission == .begun { try Self.insert(upload, connection) }
      return admission
    }
  }

  /// The known bundle's upload; the new one replaces a forgotten one.
  private static func known(_ upload: InboxUpload, _ connection: PostgresConnection) throws -> InboxUpload? {
    guard let sum = upload.sha256 else { return nil }
    // Locked until the upload is recorded; retention counts the resend.
    let bundles = try connection.query(
      """
      UPDATE lazaret.bundles SET received = greatest(coalesce(received, date), $4)
        WHERE sender = $1 AND sha256 = $2 AND bytes = $3 RETURNING id
      """, [.text(upload.sender), .text(sum), .integer(upload.length), .text(upload.created)])
    guard bundles.count > 0 else { return nil }
    let bundle = try bundles.text(0, 0)
    let uploads = try connection.query(
      """
      SELECT content FROM lazaret.uploads WHERE bundle = $1 AND sender = $2 AND state = 'finished' ORDER BY ordinal LIMIT 1
      """,
      [.text(bundle), .text(upload.sender)])
    if uploads.count > 0 { return try InboxRecordText.value(InboxUpload.self, try uploads.text(0, 0)) }
    var upload = upload
    upload.finish(as: bundle)
    try insert(upload, connection)
    return upload
  }

  private static func insert(_ upload: InboxUpload, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      """
      INSERT INTO lazaret.uploads (id, sender, length, state, bundle, expires, content) VALUES ($1, $2, $3, $4, $5, $6, $7)
      """,
      [
        .text(upload.id), .text(upload.sender), .integer(upload.length), .text(upload.state.rawValue),
        .maybe(upload.bundle), .integer(upload.expires), .text(try InboxRecordText.text(upload)),
      ])
  }

  package func pruneUploads(at date: Timestamp) throws(InboxError) {
    try database.write("forget old uploads", isRepeatable: true, tells: false) { connection in
      _ = try connection.query(
        "DELETE FROM lazaret.uploads WHERE state <> 'open' AND expires <= $1", [.integer(date.secondsSince1970)])
      _ = try connection.query(
        """
        DELETE FROM lazaret.uploads USING lazaret.senders, LATERAL (
            SELECT ordinal FROM lazaret.uploads AS kept WHERE kept.sender = senders.name AND kept.state <> 'open'
              ORDER BY ordinal DESC OFFSET $1 LIMIT 1
          ) AS first
          WHERE uploads.sender = senders.name AND uploads.state <> 'open' AND uploads.ordinal <= first.ordinal
        """, [.integer(Int64(InboxUpload.maximumEnded))])
    }
  }

  package func upload(_ id: String) throws(InboxError) -> InboxUpload? {
    try database.readOnce("look for the upload") { connection in
      let result = try connection.query("SELECT content FROM lazaret.uploads WHERE id = $1", [.text(id)])
      return result.count > 0 ? try InboxRecordText.value(InboxUpload.self, try result.text(0, 0)) : nil
    }
  }

  /// Locks an upload for the transaction.
  private static func locked(_ id: String, _ connection: PostgresConnection) throws -> InboxUpload? {
    let result = try connection.query("SELECT content FROM lazaret.uploads WHERE id = $1 FOR UPDATE", [.text(id)])
    return result.count > 0 ? try InboxRecordText.value(InboxUpload.self, try result.text(0, 0)) : nil
  }

  private func change(
    _ operation: String, _ id: String, _ change: (inout InboxUpload) -> Void
  ) throws(InboxError) {
    try database.write(operation, isRepeatable: true, tells: false) { connection in
      guard var upload = try Self.locked(id, connection) else { return }
      change(&upload)
      try Self.save(upload, connection)
    }
  }

  static func save(_ upload: InboxUpload, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      "UPDATE lazaret.uploads SET state = $1, bundle = $2, expires = $3, content = $4 WHERE id = $5",
      [
        .text(upload.state.rawValue), .maybe(upload.bundle), .integer(upload.expires),
        .text(try InboxRecordText.text(upload)), .text(upload.id),
      ])
  }

  package func advance(_ id: String, to offset: Int64, expires: Timestamp) throws(InboxError) {
    try change("note how much has come", id) { upload in
      upload.offset = offset
      upload.expires = expires.secondsSince1970
    }
  }

  @discardableResult
  package func drop(_ id: String) throws(InboxError) -> Bool {
    try database.write("end the upload", isRepeatable: true, tells: false) { connection in
      guard var upload = try Self.locked(id, connection), upload.state == .open else { return false }
      upload.state = .dropped
      try Self.save(upload, connection)
      return true
    }
  }

  package func openUploads(limit: Int?) throws(InboxError) -> [InboxUpload] {
    try database.readOnce("list the uploads") { connection in
      // A null limit means unlimited.
      try connection.query(
        "SELECT content FROM lazaret.uploads WHERE state = 'open' ORDER BY ordinal LIMIT $1",
        [limit.map { .integer(Int64(max(0, $0))) } ?? .null]
      ).map { try InboxRecordText.value(InboxUpload.self, try $0.text($1, 0)) }
    }
  }

  package func openUploads(after id: String?, limit: Int) throws(InboxError) -> [InboxUpload] {
    try database.readOnce("list the uploads") { connection in
      try connection.query(
        "SELECT content FROM lazaret.uploads WHERE state = 'open' AND id > $1 ORDER BY id LIMIT $2",
        [.text(id ?? ""), .integer(Int64(max(0, limit)))]
      ).map { try InboxRecordText.value(InboxUpload.self, try $0.text($1, 0)) }
    }
  }

  package func finish(_ id: String, as bundle: InboxBundle) throws(InboxError) -> InboxBundle {
    try database.write("note the bundle", isRepeatable: true) { connection in
      let over = InboxError.noBundle("note the bundle")
      guard var upload = try Self.locked(id, connection) else { throw over }
      switch upload.state {
      case .open: break
      case .finished:
        guard let known = upload.bundle, let bundle = try Self.bundle(known, connection) else { throw over }
        return bundle
      case .dropped: throw over
      }
      let kept = try Self.insert(bundle, connection) ? bundle : try Self.same(as: bundle, connection)
      upload.finish(as: kept.id)
      try Self.save(upload, connection)
      return kept
    }
  }
}
