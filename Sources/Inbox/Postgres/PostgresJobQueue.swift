internal import Platform

/// A job queue on a PostgreSQL server.
///
/// Workers skip locked jobs; see [SKIP
/// LOCKED](https://www.postgresql.org/docs/15/sql-select.html#SQL-FOR-UPDATE-SHARE).
struct PostgresJobQueue: JobQueue {
  let database: PostgresDatabase
  let rules: JobRules

  /// The columns of ``job(_:_:)``, in order.
  static let columns = """
    jobs.id, jobs.kind, jobs.bundle, jobs.state, jobs.attempts, jobs.excused, jobs.interrupted, jobs.not_before,
    jobs.lease_ends, jobs.owner, jobs.code, jobs.words, jobs.date, jobs.hindered
    """
  static let columnCount = 14

  /// Decodes a row; nil without a job, or if a later software version wrote it.
  static func job(_ result: borrowing PostgresResult, _ row: Int) throws -> InboxJob? {
    guard let id = try result.maybeInteger(row, 0) else { return nil }
    guard let kind = InboxJob.Kind(rawValue: try result.text(row, 1)),
      let state = InboxJob.State(rawValue: try result.text(row, 3))
    else { return nil }
    return InboxJob(
      id: id, kind: kind, bundle: try result.text(row, 2), state: state, attempts: Int(try result.integer(row, 4)),
      excused: Int(try result.integer(row, 5)), interrupted: Int(try result.integer(row, 6)),
      isHindered: try result.text(row, 13) == "t",
      notBefore: try result.integer(row, 7), leaseEnds: try result.integer(row, 8), owner: try result.maybeText(row, 9),
      code: try result.maybeText(row, 10), words: try result.maybeText(row, 11), date: try result.text(row, 12))
  }

  /// - Parameter condition: selection, order and locks in SQL.
  private static func jobs(
    _ condition: String, _ values: [PostgresValue], _ connection: PostgresConnection, isPlannedAnew: Bool = false
  ) throws -> [InboxJob] {
    try connection.query(
      "SELECT \(columns) FROM lazaret.jobs WHERE \(condition)", values, isPlannedAnew: isPlannedAnew
    ).map { try job($0, $1) }.compactMap(\.self)
  }

  private static func save(_ job: InboxJob, _ connection: PostgresConnection) throws {
    _ = try connection.query(
      """
      UPDATE lazaret.jobs SET state = $1, attempts = $2, excused = $3, interrupted = $4, not_before = $5, lease_ends = $6,
        owner = $7, code = $8, words = $9, date = $10, hindered = $11 WHERE id = $12
      """,
      [
        .text(job.state.rawValue), .integer(Int64(job.attempts)), .integer(Int64(job.excused)),
        .integer(Int64(job.interrupted)), .integer(job.notBefore), .integer(job.leaseEnds), .maybe(job.owner),
        .shown(job.code), .shown(job.words), .text(job.date), .integer(job.isHindered ? 1 : 0), .integer(job.id),
      ])
  }

  func add(_ kind: InboxJob.Kind, for bundle: String, at date: Timestamp) throws(InboxError) {
    try database.write("add a job", isRepeatable: true) { connection in
      _ = try connection.query(
        "INSERT INTO lazaret.jobs (kind, bundle, state, date) VALUES ($1, $2, 'waiting', $3) ON CONFLICT DO NOTHING",
        [.text(kind.rawValue), .text(bundle), .text(date.rfc3339)])
    }
  }

  func add(_ kind: InboxJob.Kind, forAll state: InboxBundle.State, at date: Timestamp) throws(InboxError) {
    var key: InboxKey?
    repeat { key = try add(kind, forNext: state, behind: key, at: date) } while key != nil
  }

  /// Queues a page of bundles without such a job, as a statement's time is limited.
  ///
  /// - Parameter key: the bundle to continue after.
  /// - Returns: the last bundle visited; nil at the end.
  private func add(
    _ kind: InboxJob.Kind, forNext state: InboxBundle.State, behind key: InboxKey?, at date: Timestamp
  ) throws(InboxError) -> InboxKey? {
    try database.write("add jobs", isRepeatable: true, tells: false) { connection -> InboxKey? in
      let looked = try connection.query(
        """
        WITH page AS MATERIALIZED (
          SELECT id, date FROM lazaret.bundles WHERE state = $3 AND (date, id) > ($4, $5) ORDER BY date, id LIMIT $6
        ), added AS (
          INSERT INTO lazaret.jobs (kind, bundle, state, date) SELECT $1, id, 'waiting', $2 FROM page
            WHERE NOT EXISTS (SELECT 1 FROM lazaret.jobs WHERE bundle = page.id AND kind = $1)
            ORDER BY page.date, id ON CONFLICT DO NOTHING RETURNING 1
        )
        SELECT (SELECT count(*) FROM page), (SELECT count(*) FROM added),
          (SELECT date FROM page ORDER BY date DESC, id DESC LIMIT 1), (SELECT id FROM page ORDER BY date DESC, id DESC LIMIT 1)
        """,
        [
          .text(kind.rawValue), .text(date.rfc3339), .text(state.rawValue), .text(key?.date ?? ""),
          .text(key?.id ?? ""), .integer(Int64(rules.addedAtOnce)),
        ])
      // Every machine polls; notify only of a new job.
      if try looked.integer(0, 1) > 0 { try database.tell(connection) }
      guard try looked.integer(0, 0) == rules.addedAtOnce else { return nil }
      return InboxKey(date: try looked.text(0, 2), id: try looked.text(0, 3))
    }
  }

  func lease(by owner: String, for seconds: Int64, at date: Timestamp) throws(InboxError) -> InboxJob? {
    // A server crash may undo a lease; the worker learns so on extending it.
    return try database.write("take a job", isRepeatable: false, tells: false, isLasting: false) { connection in
      let date = try Self.serverDate(date, connection)
      let now = date.secondsSince1970
      let often = try Self.jobs(
        "state = 'running' AND lease_ends < $1 AND interrupted >= $2 ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED",
        [.integer(now), .integer(Int64(rules.maximumInterruptions - 1))], connection)
      for job in often where rules.isPostponed(job) { try note(rules.postponed(job, at: date), connection) }
      // Expired or waiting, whichever waited longest.
      let result = try connection.query(
        """
        WITH lost AS MATERIALIZED (
          SELECT id, not_before FROM lazaret.jobs WHERE state = 'running' AND lease_ends < $1 AND interrupted < $2
            ORDER BY not_before, id LIMIT 1 FOR UPDATE SKIP LOCKED
        ), waiting AS MATERIALIZED (
          SELECT id, not_before FROM lazaret.jobs WHERE state = 'waiting' AND not_before <= $1
            ORDER BY not_before, id LIMIT 1 FOR UPDATE SKIP LOCKED
        )
        SELECT \(Self.columns) FROM lazaret.jobs WHERE id = (
          SELECT id FROM (SELECT * FROM lost UNION ALL SELECT * FROM waiting) AS found ORDER BY not_before, id LIMIT 1
        )
        """, [.integer(now), .integer(Int64(rules.maximumInterruptions - 1))])
      guard result.count > 0, let job = try Self.job(result, 0) else { return nil }
      let leased = rules.leased(job, by: owner, for: seconds, at: date)
      try Self.save(leased, connection)
      return leased
    }
  }

  /// The server's time: leases span machines with differing clocks.
  private static func serverDate(_ date: Timestamp, _ connection: PostgresConnection) throws -> Timestamp {
    Timestamp(secondsSince1970: date.secondsSince1970 + (try connection.clockOffset()))
  }

  /// Stores a job's state; may refuse the bundle by the rules.
  private func note(_ job: InboxJob, _ connection: PostgresConnection) throws {
    try Self.save(job, connection)
    guard let failure = rules.refusal(by: job) else { return }
    try PostgresInboxRecords.change(job.bundle, connection) { $0.refuse(failure) }
  }

  /// Locks and returns the job; nil if no longer this attempt's.
  private static func ours(_ job: InboxJob, _ connection: PostgresConnection) throws -> InboxJob? {
    try jobs(
      "id = $1 AND state = 'running' AND owner = $2 AND attempts = $3 FOR UPDATE",
      [.integer(job.id), .maybe(job.owner), .integer(Int64(job.attempts))], connection
    ).first
  }

  func extend(_ job: InboxJob, for seconds: Int64, at date: Timestamp) throws(InboxError) -> Bool {
    try database.write("go on with a job", isRepeatable: true, tells: false, isLasting: false) { connection in
      try connection.query(
        "UPDATE lazaret.jobs SET lease_ends = $1 WHERE id = $2 AND state = 'running' AND owner = $3 AND attempts = $4",
        [
          .integer(try Self.serverDate(date, connection).secondsSince1970 + seconds), .integer(job.id),
          .maybe(job.owner), .integer(Int64(job.attempts)),
        ]
      ).changed > 0
    }
  }

  func end(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) throws(InboxError) -> InboxJob.State? {
    try database.write("end a job", isRepeatable: false) { connection in
      guard let ours = try Self.ours(job, connection) else { return nil }
      let ended = rules.ended(ours, outcome, at: try Self.serverDate(date, connection))
      try note(ended, connection)
      return ended.state
    }
  }

  func release(owner: String, at date: Timestamp) throws(InboxError) {
    try database.write("take back the jobs", isRepeatable: true) { connection in
      _ = try connection.query(
        "UPDATE lazaret.jobs SET lease_ends = 0, date = $1 WHERE state = 'running' AND owner = $2",
        [.text(date.rfc3339), .text(owner)])
    }
  }

  func restart(_ kind: InboxJob.Kind, of bundle: String, at date: Timestamp) throws(InboxError) {
    try database.write("begin a job anew", isRepeatable: true) { connection in
      let count = try Self.restart(kind, of: [bundle], at: date, connection)
      if kind == .open, count > 0 { try PostgresInboxRecords.change(bundle, connection) { $0.receiveAgain() } }
    }
  }

  /// Restarts jobs unless they run; returns their number.
  @discardableResult
  static func restart(
    _ kind: InboxJob.Kind, of bundles: [String], at date: Timestamp, _ connection: PostgresConnection
  ) throws -> Int {
    try connection.query(
      """
      INSERT INTO lazaret.jobs (kind, bundle, state, date) SELECT $1, bundle, 'waiting', $2
        FROM unnest($3::text[]) WITH ORDINALITY AS chosen (bundle, place) ORDER BY place
        ON CONFLICT (bundle, kind) DO UPDATE SET state = 'waiting', attempts = 0, excused = 0, interrupted = 0,
          hindered = false, not_before = 0, lease_ends = 0, code = NULL, words = NULL, owner = NULL, date = excluded.date
          WHERE jobs.state <> 'running'
      """, [.text(kind.rawValue), .text(date.rfc3339), .texts(bundles)]
    ).changed
  }

  func jobs(of bundle: String) throws(InboxError) -> [InboxJob] {
    try database.readOnce("list the jobs") { try Self.jobs(of: bundle, $0) }
  }

  static func jobs(of bundle: String, _ connection: PostgresConnection) throws -> [InboxJob] {
    try jobs("bundle = $1 ORDER BY id", [.text(bundle)], connection)
  }

  func jobs(in state: InboxJob.State, after id: Int64?, limit: Int) throws(InboxError) -> [InboxJob] {
    // A generic plan would scan all jobs for a rare state.
    try database.readOnce("list the jobs") { connection in
      try Self.jobs(
        "state = $1 AND id < $2 ORDER BY id DESC LIMIT $3",
        [.text(state.rawValue), .integer(id ?? .max), .limit(limit)], connection, isPlannedAnew: true)
    }
  }

  func counts() throws(InboxError) -> [InboxJob.State: Int] { try database.counts("jobs").byState() }

  func hindrances(limit: Int) throws(InboxError) -> [String: Int] {
    try database.readOnce("count the jobs that wait") { connection in
      Dictionary(
        uniqueKeysWithValues: try connection.query(
          """
          SELECT code, count(*) AS n FROM lazaret.jobs WHERE hindered AND code IS NOT NULL GROUP BY code ORDER BY n DESC, code LIMIT $1
          """, [.limit(limit)]
        ).map { (try $0.text($1, 0), Int(try $0.integer($1, 1))) })
    }
  }

  func remove(of bundle: String) throws(InboxError) {
    try database.write("forget the jobs", isRepeatable: true) { connection in
      _ = try connection.query("DELETE FROM lazaret.jobs WHERE bundle = $1", [.text(bundle)])
    }
  }
}

extension PostgresDatabase {
  /// Counts for pages, kept by triggers; see ``PostgresSchema``.
  func counts(_ kind: String) throws(InboxError) -> [String: Int64] {
    try readOnce("count what there is") { connection in
      Dictionary(
        uniqueKeysWithValues: try connection.query(
          "SELECT name, sum(n)::bigint FROM lazaret.tallies WHERE kind = $1 GROUP BY name", [.text(kind)]
        ).map { (try $0.text($1, 0), try $0.integer($1, 1)) })
    }
  }
}
