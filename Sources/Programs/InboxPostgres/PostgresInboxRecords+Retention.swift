package import Inbox

extension PostgresInboxRecords {
  package func retentionCandidates(
    after key: InboxKey?, newer: Int, limit: Int
  ) throws(InboxError) -> [RetentionCandidate] {
    try database.readOnce("look what is kept") { connection in
      try connection.query(
        "\(Self.candidates) (date, id) > ($2, $3) ORDER BY date, id LIMIT $4",
        [
          .integer(Int64(max(0, newer))), .text(key?.date ?? ""), .text(key?.id ?? ""),
          .integer(Int64(max(0, limit))),
        ]
      ).map { try Self.candidate($0, $1) }
    }
  }

  /// Bundles as the rules of retention see them, with `$1` as the most newer ones that are counted; a condition follows.
  private static let candidates = """
    SELECT id, sender, date, sha256, damage, bytes + coalesce(placed, 0), (
        SELECT count(*) FROM (
          SELECT 1 FROM lazaret.bundles AS newer
            WHERE newer.damage = found.damage AND (newer.date, newer.id) > (found.date, found.id)
            AND (newer.state = 'quarantined' OR found.state <> 'quarantined') LIMIT $1
        ) AS counted
      ),
      state = 'received' OR EXISTS (
        SELECT 1 FROM lazaret.jobs WHERE jobs.bundle = found.id AND jobs.state IN ('waiting', 'running')
      ), coalesce(received, date)
      FROM lazaret.bundles AS found WHERE
    """

  /// A bundle of a row of ``candidates``.
  private static func candidate(_ result: borrowing PostgresResult, _ row: Int) throws -> RetentionCandidate {
    RetentionCandidate(
      id: try result.text(row, 0), sender: try result.text(row, 1), date: try result.text(row, 2),
      sha256: try result.text(row, 3), group: try result.maybeText(row, 4), bytes: try result.integer(row, 5),
      newer: Int(try result.integer(row, 6)), isAtWork: try result.text(row, 7) == "t",
      received: try result.text(row, 8))
  }

  package func remove(
    _ removal: InboxRemoval, sparing states: Set<InboxJob.State>, newer: Int, where mayGo: (RetentionCandidate) -> Bool
  ) throws(InboxError) -> InboxRemoval? {
    try database.write("remove the bundle", isRepeatable: false) { connection -> InboxRemoval? in
      // One removal at a time: what is newer stays until this one is done. Batches take the lock of the damage.
      try PostgresSchema.lockRemovals(connection)
      _ = try connection.query(
        """
        SELECT 1 FROM lazaret.damages WHERE damage = (SELECT damage FROM lazaret.bundles WHERE id = $1) FOR UPDATE
        """, [.text(removal.bundle)])
      // Jobs before the bundle, as where a job ends. What is begun anew meanwhile waits, and finds no bundle.
      let jobs = try connection.query(
        "SELECT state FROM lazaret.jobs WHERE bundle = $1 ORDER BY id FOR UPDATE", [.text(removal.bundle)]
      ).map { try $0.text($1, 0) }
      let found = try connection.query(
        "SELECT state FROM lazaret.bundles WHERE id = $1 FOR UPDATE", [.text(removal.bundle)]
      ).map { try $0.text($1, 0) }
      let bundles = try connection.query(
        "\(Self.candidates) id = $2", [.integer(Int64(max(0, newer))), .text(removal.bundle)]
      ).map { try Self.candidate($0, $1) }
      guard let state = found.first, let bundle = bundles.first,
        !jobs.contains(where: { InboxJob.State(rawValue: $0).map { states.contains($0) } ?? true }),
        !states.contains(.waiting) || state != InboxBundle.State.received.rawValue, mayGo(bundle)
      else { return nil }
      let recorded = removal.telling(of: bundle)
      _ = try connection.query(
        """
        INSERT INTO lazaret.removals (bundle, date, rule, sender, arrived, sha256, damage, bytes)
          VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
          .text(recorded.bundle), .text(recorded.date), .text(recorded.rule.rawValue), .text(recorded.sender),
          .text(recorded.arrived), .text(recorded.sha256), .maybe(recorded.group), .integer(recorded.bytes),
        ])
      _ = try connection.query("DELETE FROM lazaret.jobs WHERE bundle = $1", [.text(recorded.bundle)])
      try Self.forget(recorded.bundle, connection)
      return recorded
    }
  }

  package func removalsNotCleared() throws(InboxError) -> [String] {
    try database.readOnce("list what was removed") { connection in
      try connection.query("SELECT bundle FROM lazaret.removals WHERE NOT cleared ORDER BY number")
        .map { try $0.text($1, 0) }
    }
  }

  package func noteCleared(_ bundle: String) throws(InboxError) {
    try database.write("note what was removed", isRepeatable: true, tells: false) { connection in
      _ = try connection.query(
        "UPDATE lazaret.removals SET cleared = true WHERE bundle = $1 AND NOT cleared", [.text(bundle)])
    }
  }

  package func removals(after number: Int64?, limit: Int) throws(InboxError) -> [InboxRemoval] {
    try database.readOnce("list what was removed") { connection in
      try connection.query(
        """
        SELECT number, bundle, date, rule, sender, arrived, sha256, damage, bytes, cleared FROM lazaret.removals
          WHERE number < $1 ORDER BY number DESC LIMIT $2
        """, [.integer(number ?? .max), .integer(Int64(max(0, limit)))]
      ).map { result, row -> InboxRemoval? in
        // A later version of this software may know more rules.
        guard let rule = InboxRemoval.Rule(rawValue: try result.text(row, 3)) else { return nil }
        return InboxRemoval(
          number: try result.integer(row, 0), bundle: try result.text(row, 1), date: try result.text(row, 2),
          rule: rule, sender: try result.text(row, 4), arrived: try result.text(row, 5),
          sha256: try result.text(row, 6), group: try result.maybeText(row, 7), bytes: try result.integer(row, 8),
          isCleared: try result.text(row, 9) == "t")
      }.compactMap(\.self)
    }
  }
}
