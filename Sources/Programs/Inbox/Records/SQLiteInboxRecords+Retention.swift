internal import GRDB

extension SQLiteInboxRecords {
  package func retentionCandidates(
    after key: InboxKey?, newer: Int, limit: Int
  ) throws(InboxError) -> [RetentionCandidate] {
    try database.read("look what is kept") { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT id, sender, date, sha256, damage, bytes + coalesce(placed, 0) AS bytes, (
              SELECT count(*) FROM (
                SELECT 1 FROM bundles AS newer WHERE newer.damage = found.damage AND (newer.date, newer.id) > (found.date, found.id)
                  LIMIT ?3)
            ) AS newer,
            state = 'received' OR EXISTS (
              SELECT 1 FROM jobs WHERE jobs.bundle = found.id AND jobs.state IN ('waiting', 'running')
            ) AS work
            FROM bundles AS found WHERE (date, id) > (?1, ?2) ORDER BY date, id LIMIT ?4
          """, arguments: [key?.date ?? "", key?.id ?? "", max(0, newer), max(0, limit)]
      ).map { row in
        RetentionCandidate(
          id: row["id"], sender: row["sender"], date: row["date"], sha256: row["sha256"], group: row["damage"],
          bytes: row["bytes"], newer: row["newer"], isAtWork: row["work"])
      }
    }
  }

  package func remove(_ removal: InboxRemoval, sparing states: Set<InboxJob.State>) throws(InboxError) -> Bool {
    try database.write("remove the bundle") { database in
      let state = try String.fetchOne(
        database, sql: "SELECT state FROM bundles WHERE id = ?", arguments: [removal.bundle])
      let jobs = try SQLiteJobQueue.jobs(of: removal.bundle, database)
      guard let state, !jobs.contains(where: { states.contains($0.state) }),
        !states.contains(.waiting) || state != InboxBundle.State.received.rawValue
      else { return false }
      try database.execute(
        sql: """
          INSERT INTO removals (bundle, date, rule, sender, arrived, sha256, damage, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
          """,
        arguments: [
          removal.bundle, removal.date, removal.rule.rawValue, removal.sender, removal.arrived, removal.sha256,
          removal.group, removal.bytes,
        ])
      try database.execute(sql: "DELETE FROM jobs WHERE bundle = ?", arguments: [removal.bundle])
      try Self.forget(removal.bundle, database)
      return true
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
