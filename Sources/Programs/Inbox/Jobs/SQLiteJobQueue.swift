internal import GRDB
package import StoreFiles

/// The queue of an inbox in its database file.
package struct SQLiteJobQueue: JobQueue {
  /// How often a job is begun that ends with an error each time.
  package var maximumAttempts: Int

  /// How often a job is begun that ends without a word each time: more often, since a server may be killed for reasons
  /// of its own.
  package var maximumInterruptions: Int

  /// How often a job is put back before that counts as an attempt.
  private static let maximumExcused = 200

  let database: InboxDatabase

  /// The queue in a file.
  package init(_ database: InboxDatabase, maximumAttempts: Int = 4, maximumInterruptions: Int = 8) {
    self.database = database
    self.maximumAttempts = maximumAttempts
    self.maximumInterruptions = maximumInterruptions
  }

  /// How many seconds pass before another attempt: longer each time.
  private static func pause(after attempts: Int) -> Int64 { min(900, 5 << min(Int64(max(0, attempts - 1)), 10)) }

  /// How many seconds pass before a job that was put back is begun again.
  private static let pauseOfExcused: Int64 = 1

  package func add(_ kind: InboxJob.Kind, for bundle: String, at date: Timestamp) throws(InboxError) {
    try add(kind, forEach: [bundle], at: date)
  }

  package func add(_ kind: InboxJob.Kind, forEach bundles: [String], at date: Timestamp) throws(InboxError) {
    guard !bundles.isEmpty else { return }
    try database.write("add a job") { database in
      let statement = try database.makeStatement(
        sql: """
          INSERT OR IGNORE INTO jobs (kind, bundle, state, attempts, not_before, lease_ends, date)
            VALUES (?, ?, 'waiting', 0, 0, 0, ?)
          """)
      for bundle in bundles { try statement.execute(arguments: [kind.rawValue, bundle, date.rfc3339]) }
    }
  }

  package func lease(by owner: String, for seconds: Int64, at date: Timestamp) throws(InboxError) -> InboxJob? {
    let now = date.secondsSince1970
    return try database.write("take a job") { database -> InboxJob? in
      try endInterrupted(at: date, database)
      let row = try Row.fetchOne(
        database,
        sql: """
          SELECT * FROM jobs WHERE state = 'waiting' AND not_before <= ?1 OR state = 'running' AND lease_ends < ?1
            ORDER BY not_before, id LIMIT 1
          """, arguments: [now])
      guard var job = row.flatMap(Self.job) else { return nil }
      if job.state == .running { job.interrupted += 1 }
      job.state = .running
      job.attempts += 1
      job.owner = owner
      job.leaseEnds = now + seconds
      job.date = date.rfc3339
      try database.execute(
        sql: """
          UPDATE jobs SET state = 'running', attempts = ?, interrupted = ?, owner = ?, lease_ends = ?, date = ? WHERE id = ?
          """,
        arguments: [job.attempts, job.interrupted, owner, job.leaseEnds, job.date, job.id])
      return job
    }
  }

  /// Fails the jobs whose leases have ended too often without a word.
  private func endInterrupted(at date: Timestamp, _ database: Database) throws {
    let jobs = try Row.fetchAll(
      database, sql: "SELECT * FROM jobs WHERE state = 'running' AND lease_ends < ? AND interrupted + 1 >= ?",
      arguments: [date.secondsSince1970, maximumInterruptions]
    ).compactMap(Self.job)
    for job in jobs {
      let failure = InboxBundle.Failure(
        code: job.code ?? InboxError.Kind.tries.rawValue,
        words: job.words ?? "The process that worked at it died each time.")
      try database.execute(
        sql: "UPDATE jobs SET state = 'failed', code = ?, words = ?, date = ?, owner = NULL WHERE id = ?",
        arguments: [failure.code, failure.words, date.rfc3339, job.id])
      if job.refuses(failure.code) { try SQLiteInboxRecords.refuse(job.bundle, failure, database) }
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
  ) throws(InboxError) -> InboxJob.State? {
    var (state, failure, notBefore) = (InboxJob.State.done, InboxBundle.Failure?.none, Int64(0))
    var excused = job.excused
    // Attempts that ended with an error of their own.
    let counted = job.attempts - job.excused - job.interrupted
    switch outcome {
    case .done: break
    case .failed(let reason): (state, failure) = (.failed, reason)
    case .putBack(let reason) where excused < Self.maximumExcused:
      (state, failure) = (.waiting, reason)
      excused += 1
      notBefore = date.secondsSince1970 + Self.pauseOfExcused
    case .putBack(let reason), .tryAgain(let reason):
      state = counted < maximumAttempts ? .waiting : .failed
      failure = reason
      notBefore = date.secondsSince1970 + Self.pause(after: counted)
    }
    return try database.write("end a job") { [state, failure, notBefore, excused] database in
      try database.execute(
        sql: """
          UPDATE jobs SET state = ?, code = ?, words = ?, not_before = ?, excused = ?, lease_ends = 0, date = ?, owner = NULL
            WHERE \(Self.isOurs)
          """,
        arguments: [
          state.rawValue, failure?.code, failure?.words, notBefore, excused, date.rfc3339, job.id, job.owner,
          job.attempts,
        ])
      guard database.changesCount > 0 else { return nil }
      if state == .failed, let failure, job.refuses(failure.code) {
        try SQLiteInboxRecords.refuse(job.bundle, failure, database)
      }
      return state
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
            ON CONFLICT (bundle, kind) DO UPDATE SET state = 'waiting', attempts = 0, excused = 0,
              interrupted = 0, not_before = 0, lease_ends = 0,
              code = NULL, words = NULL, owner = NULL, date = excluded.date WHERE state <> 'running'
          """, arguments: [kind.rawValue, bundle, date.rfc3339])
      if kind == .open, database.changesCount > 0 { try SQLiteInboxRecords.receiveAgain(bundle, database) }
    }
  }

  package func jobs(of bundle: String) throws(InboxError) -> [InboxJob] {
    try database.read("list the jobs") { try Self.jobs(of: bundle, $0) }
  }

  static func jobs(of bundle: String, _ database: Database) throws -> [InboxJob] {
    try Row.fetchAll(database, sql: "SELECT * FROM jobs WHERE bundle = ? ORDER BY id", arguments: [bundle])
      .compactMap(job)
  }

  package func pending() throws(InboxError) -> [InboxJob] {
    try database.read("list the jobs") { database in
      try Row.fetchAll(database, sql: "SELECT * FROM jobs WHERE state IN ('waiting', 'running') ORDER BY id")
        .compactMap(Self.job)
    }
  }

  package func counts() throws(InboxError) -> [InboxJob.State: Int] {
    try database.read("count the jobs") { database in
      try Row.fetchAll(database, sql: "SELECT state, count(*) AS count FROM jobs GROUP BY state")
        .reduce(into: [:]) { counts, row in
          if let state = InboxJob.State(rawValue: row["state"]) { counts[state] = row["count"] }
        }
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
      excused: row["excused"],
      interrupted: row["interrupted"],
      notBefore: row["not_before"], leaseEnds: row["lease_ends"], owner: row["owner"], code: row["code"],
      words: row["words"], date: row["date"])
  }
}
