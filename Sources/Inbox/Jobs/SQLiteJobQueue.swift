internal import GRDB
internal import Platform

struct SQLiteJobQueue: JobQueue {
  let database: InboxDatabase
  let rules: JobRules

  /// A waiting job's columns and values.
  private static let waiting = """
    jobs (kind, bundle, state, attempts, not_before, lease_ends, date) VALUES (?, ?, 'waiting', 0, 0, 0, ?)
    """

  func add(_ kind: InboxJob.Kind, for bundle: String, at date: Timestamp) throws(InboxError) {
    try database.write("add a job") { database in
      try database.execute(
        sql: "INSERT OR IGNORE INTO \(Self.waiting)", arguments: [kind.rawValue, bundle, date.rfc3339])
    }
  }

  func add(_ kind: InboxJob.Kind, forAll state: InboxBundle.State, at date: Timestamp) throws(InboxError) {
    var key: InboxKey?
    repeat { key = try add(kind, forNext: state, behind: key, at: date) } while key != nil
  }

  /// Queues a page of bundles without such a job.
  ///
  /// - Parameter key: the bundle to continue after.
  /// - Returns: the last bundle visited; nil at the end.
  private func add(
    _ kind: InboxJob.Kind, forNext state: InboxBundle.State, behind key: InboxKey?, at date: Timestamp
  ) throws(InboxError) -> InboxKey? {
    try database.write("add jobs") { database in
      let bundles = try Row.fetchAll(
        database,
        sql: """
          SELECT id, date, EXISTS (SELECT 1 FROM jobs WHERE bundle = bundles.id AND kind = ?1) AS has FROM bundles
            WHERE state = ?2 AND (date, id) > (?3, ?4) ORDER BY date, id LIMIT ?5
          """, arguments: [kind.rawValue, state.rawValue, key?.date ?? "", key?.id ?? "", rules.addedAtOnce])
      let statement = try database.makeStatement(sql: "INSERT OR IGNORE INTO \(Self.waiting)")
      for bundle in bundles where !(bundle["has"] as Bool) {
        try statement.execute(arguments: [kind.rawValue, bundle["id"] as String, date.rfc3339])
      }
      guard bundles.count == rules.addedAtOnce, let last = bundles.last else { return nil }
      return InboxKey(date: last["date"], id: last["id"])
    }
  }

  func lease(by owner: String, for seconds: Int64, at date: Timestamp) throws(InboxError) -> InboxJob? {
    let now = date.secondsSince1970
    return try database.write("take a job") { database -> InboxJob? in
      let late = try Self.jobs("state = 'running' AND lease_ends < ?", [now], database)
      for job in late where rules.isPostponed(job) { try note(rules.postponed(job, at: date), database) }
      let row = try Row.fetchOne(
        database,
        sql: """
          SELECT * FROM (
              SELECT * FROM (SELECT * FROM jobs WHERE state = 'waiting' AND not_before <= ?1 ORDER BY not_before, id LIMIT 1)
                UNION ALL
                SELECT * FROM (SELECT * FROM jobs WHERE state = 'running' AND lease_ends < ?1 ORDER BY not_before, id LIMIT 1)
            ) ORDER BY not_before, id LIMIT 1
          """, arguments: [now])
      guard let job = row.flatMap(Self.job) else { return nil }
      let leased = rules.leased(job, by: owner, for: seconds, at: date)
      try Self.save(leased, database)
      return leased
    }
  }

  /// Stores a job's state; may refuse the bundle by the rules.
  private func note(_ job: InboxJob, _ database: Database) throws {
    try Self.save(job, database)
    guard let failure = rules.refusal(by: job) else { return }
    try SQLiteInboxRecords.change(job.bundle, database) { $0.refuse(failure) }
  }

  private static func save(_ job: InboxJob, _ database: Database) throws {
    try database.execute(
      sql: """
        UPDATE jobs SET state = ?, attempts = ?, excused = ?, interrupted = ?, hindered = ?, not_before = ?, lease_ends = ?,
          owner = ?, code = ?, words = ?, date = ? WHERE id = ?
        """,
      arguments: [
        job.state.rawValue, job.attempts, job.excused, job.interrupted, job.isHindered, job.notBefore, job.leaseEnds,
        job.owner, job.code, job.words, job.date, job.id,
      ])
  }

  private static let isOurs = "id = ? AND state = 'running' AND owner = ? AND attempts = ?"

  func extend(_ job: InboxJob, for seconds: Int64, at date: Timestamp) throws(InboxError) -> Bool {
    try database.write("go on with a job") { database in
      try database.execute(
        sql: "UPDATE jobs SET lease_ends = ? WHERE \(Self.isOurs)",
        arguments: [date.secondsSince1970 + seconds, job.id, job.owner, job.attempts])
      return database.changesCount > 0
    }
  }

  func end(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) throws(InboxError) -> InboxJob.State? {
    try database.write("end a job") { database in
      guard let ours = try Self.jobs(Self.isOurs, [job.id, job.owner, job.attempts], database).first else { return nil }
      let ended = rules.ended(ours, outcome, at: date)
      try note(ended, database)
      return ended.state
    }
  }

  func release(owner: String, at date: Timestamp) throws(InboxError) {
    try database.write("take back the jobs") { database in
      try database.execute(
        sql: "UPDATE jobs SET lease_ends = 0, date = ? WHERE state = 'running' AND owner = ?",
        arguments: [date.rfc3339, owner])
    }
  }

  func restart(_ kind: InboxJob.Kind, of bundle: String, at date: Timestamp) throws(InboxError) {
    try database.write("begin a job anew") { try Self.restart(kind, of: bundle, at: date, $0) }
  }

  /// Restarts a job unless it runs.
  static func restart(_ kind: InboxJob.Kind, of bundle: String, at date: Timestamp, _ database: Database) throws {
    try database.execute(
      sql: """
        INSERT INTO \(waiting) ON CONFLICT (bundle, kind) DO UPDATE SET state = 'waiting', attempts = 0, excused = 0,
            interrupted = 0, hindered = 0, not_before = 0, lease_ends = 0,
            code = NULL, words = NULL, owner = NULL, date = excluded.date WHERE state <> 'running'
        """, arguments: [kind.rawValue, bundle, date.rfc3339])
    if kind == .open, database.changesCount > 0 {
      try SQLiteInboxRecords.change(bundle, database) { $0.receiveAgain() }
    }
  }

  func jobs(of bundle: String) throws(InboxError) -> [InboxJob] {
    try database.read("list the jobs") { try Self.jobs(of: bundle, $0) }
  }

  static func jobs(of bundle: String, _ database: Database) throws -> [InboxJob] {
    try jobs("bundle = ? ORDER BY id", [bundle], database)
  }

  func jobs(in state: InboxJob.State, after id: Int64?, limit: Int) throws(InboxError) -> [InboxJob] {
    try database.read("list the jobs") { database in
      try Self.jobs(
        "state = ? AND id < ? ORDER BY id DESC LIMIT ?", [state.rawValue, id ?? .max, max(0, limit)], database)
    }
  }

  /// - Parameter condition: selection and order in SQL.
  private static func jobs(
    _ condition: String, _ arguments: StatementArguments, _ database: Database
  ) throws -> [InboxJob] {
    try Row.fetchAll(database, sql: "SELECT * FROM jobs WHERE \(condition)", arguments: arguments).compactMap(job)
  }

  func counts() throws(InboxError) -> [InboxJob.State: Int] {
    try database.read("count the jobs") { try InboxDatabase.counts("jobs", $0) }.byState()
  }

  func hindrances(limit: Int) throws(InboxError) -> [String: Int] {
    try database.read("count the jobs that wait") { database in
      try Row.fetchAll(
        database,
        sql: """
          SELECT code, count(*) AS n FROM jobs WHERE hindered = 1 AND code IS NOT NULL GROUP BY code ORDER BY n DESC, code LIMIT ?
          """, arguments: [max(0, limit)]
      ).reduce(into: [:]) { counts, row in counts[row["code"]] = row["n"] }
    }
  }

  func remove(of bundle: String) throws(InboxError) {
    try database.write("forget the jobs") { database in
      try database.execute(sql: "DELETE FROM jobs WHERE bundle = ?", arguments: [bundle])
    }
  }

  /// Decodes a row; nil if a later software version wrote it.
  private static func job(_ row: Row) -> InboxJob? {
    guard let kind = InboxJob.Kind(rawValue: row["kind"]), let state = InboxJob.State(rawValue: row["state"]) else {
      return nil
    }
    return InboxJob(
      id: row["id"], kind: kind, bundle: row["bundle"], state: state, attempts: row["attempts"],
      excused: row["excused"], interrupted: row["interrupted"], isHindered: row["hindered"],
      notBefore: row["not_before"], leaseEnds: row["lease_ends"], owner: row["owner"], code: row["code"],
      words: row["words"], date: row["date"])
  }
}
