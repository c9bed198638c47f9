internal import GRDB

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

  /// Bundles as the rules of retention see them.
  ///
  /// - Parameter condition: which bundles, in which order.
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
        // A later version of this software may know more rules.
        guard let rule = InboxRemoval.Rule(rawValue: row["rule"]) else { return nil }
        return InboxRemoval(
          number: row["number"], bundle: row["bundle"], date: row["date"], rule: rule, sender: row["sender"],
          arrived: row["arrived"], sha256: row["sha256"], group: row["damage"], bytes: row["bytes"],
          isCleared: row["cleared"])
      }
    }
  }
}
