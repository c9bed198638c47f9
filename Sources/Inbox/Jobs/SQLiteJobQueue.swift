internal import GRDB
package import StoreFiles

/// The queue of an inbox in its database file.
package struct SQLiteJobQueue: JobQueue {
  /// How often a job is begun.
  package var maximumAttempts: Int

  let database: InboxDatabase

  /// The queue in a file.
  package init(_ database: InboxDatabase, maximumAttempts: Int = 4) {
    self.database = database
    self.maximumAttempts = maximumAttempts
  }

  /// How many seconds pass before another attempt: longer each time.
  private static func pause(after attempts: Int) -> Int64 { min(900, 5 << min(Int64(max(0, attempts - 1)), 10)) }

  package func add(_ kind: InboxJob.Kind, for bundle: String, at date: Timestamp) throws(InboxError) {
    try database.write("add a job") { database in
      try database.execute(
        sql: """
          INSERT OR IGNORE INTO jobs (kind, bundle, state, attempts, not_before, lease_ends, date)
            VALUES (?, ?, 'waiting', 0, 0, 0, ?)
          """, arguments: [kind.rawValue, bundle, date.rfc3339])
    }
  }

  package func lease(by owner: String, for seconds: Int64, at date: Timestamp) throws(InboxError) -> InboxJob? {
    let now = date.secondsSince1970
    return try database.write("take a job") { database -> InboxJob? in
      try database.execute(
        sql: """
          UPDATE jobs SET state = 'failed', code = coalesce(code, ?), words = coalesce(words, ?), date = ?, owner = NULL
            WHERE state = 'running' AND lease_ends < ? AND attempts >= ?
          """,
        arguments: [
          InboxError.Kind.tries.rawValue, "The process that worked at it died each time.", date.rfc3339, now,
          maximumAttempts,
        ])
      let row = try Row.fetchOne(
        database,
        sql: """
          SELECT * FROM jobs WHERE state = 'waiting' AND not_before <= ?1 OR state = 'running' AND lease_ends < ?1
            ORDER BY not_before, id LIMIT 1
          """, arguments: [now])
      guard var job = row.flatMap(Self.job) else { return nil }
      job.state = .running
      job.attempts += 1
      job.owner = owner
      job.leaseEnds = now + seconds
      job.date = date.rfc3339
      try database.execute(
        sql: "UPDATE jobs SET state = 'running', attempts = ?, owner = ?, lease_ends = ?, date = ? WHERE id = ?",
        arguments: [job.attempts, owner, job.leaseEnds, job.date, job.id])
      return job
    }
  }

  /// Whether a job is still of that attempt.
  private static let isOurs = "id = ? AND state = 'running' AND owner = ? AND attempts = ?"

  package func extend(_ job: InboxJob, for seconds: Int64, at date: Timestamp) throws(InboxError) -> Bool {
    try database.write("go on with a job") { database in
      try database.execute(
        sql: "UPDATE jobs SET lease_ends = ? WHERE \(Self.isOurs)",
        arguments: [date.secondsSince1970 + seconds, job.id, job.owner, job.attempts])
      return database.changesCount > 0
    }
  }

  package func end(
    _ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp
  ) throws(InboxError) -> Bool {
    var (state, failure, notBefore) = (InboxJob.State.done, InboxBundle.Failure?.none, Int64(0))
    switch outcome {
    case .done: break
    case .failed(let reason): (state, failure) = (.failed, reason)
    case .tryAgain(let reason):
      state = job.attempts < maximumAttempts ? .waiting : .failed
      failure = reason
      notBefore = date.secondsSince1970 + Self.pause(after: job.attempts)
    }
    return try database.write("end a job") { [state, failure, notBefore] database in
      try database.execute(
        sql: """
          UPDATE jobs SET state = ?, code = ?, words = ?, not_before = ?, lease_ends = 0, date = ?, owner = NULL
            WHERE \(Self.isOurs)
          """,
        arguments: [
          state.rawValue, failure?.code, failure?.words, notBefore, date.rfc3339, job.id, job.owner, job.attempts,
        ])
      return database.changesCount > 0
    }
  }

  package func release(owner: String, at date: Timestamp) throws(InboxError) {
    try database.write("take back the jobs") { database in
      try database.execute(
        sql: "UPDATE jobs SET lease_ends = 0, date = ? WHERE state = 'running' AND owner = ?",
        arguments: [date.rfc3339, owner])
    }
  }

  package func restart(_ kind: InboxJob.Kind, of bundle: String, at date: Timestamp) throws(InboxError) {
    try database.write("begin a job anew") { database in
      try database.execute(
        sql: """
          INSERT INTO jobs (kind, bundle, state, attempts, not_before, lease_ends, date) VALUES (?, ?, 'waiting', 0, 0, 0, ?)
            ON CONFLICT (bundle, kind) DO UPDATE SET state = 'waiting', attempts = 0, not_before = 0, lease_ends = 0,
              code = NULL, words = NULL, owner = NULL, date = excluded.date WHERE state <> 'running'
          """, arguments: [kind.rawValue, bundle, date.rfc3339])
    }
  }

  package func jobs(of bundle: String) throws(InboxError) -> [InboxJob] {
    try database.read("list the jobs") { database in
      try Row.fetchAll(database, sql: "SELECT * FROM jobs WHERE bundle = ? ORDER BY id", arguments: [bundle])
        .compactMap(Self.job)
    }
  }

  package func pending() throws(InboxError) -> [InboxJob] {
    try database.read("list the jobs") { database in
      try Row.fetchAll(database, sql: "SELECT * FROM jobs WHERE state IN ('waiting', 'running') ORDER BY id")
        .compactMap(Self.job)
    }
  }

  package func remove(of bundle: String) throws(InboxError) {
    try database.write("forget the jobs") { database in
      try database.execute(sql: "DELETE FROM jobs WHERE bundle = ?", arguments: [bundle])
    }
  }

  /// A job of a row; nil where a later version of this software wrote it.
  private static func job(_ row: Row) -> InboxJob? {
    guard let kind = InboxJob.Kind(rawValue: row["kind"]), let state = InboxJob.State(rawValue: row["state"]) else {
      return nil
    }
    return InboxJob(
      id: row["id"], kind: kind, bundle: row["bundle"], state: state, attempts: row["attempts"],
      notBefore: row["not_before"], leaseEnds: row["lease_ends"], owner: row["owner"], code: row["code"],
      words: row["words"], date: row["date"])
  }
}
