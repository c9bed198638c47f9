package import Platform

package struct InboxJob: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Decrypts, unpacks, checks, and quarantines the store.
    case open

    case salvage
  }

  package enum State: String, Sendable, Hashable, Codable, CaseIterable {
    case waiting, running, done

    /// Failed by the bundle's fault; only a restart helps.
    case failed
  }

  package var id: Int64

  package var kind: Kind

  package var bundle: String

  package var state: State

  package var attempts: Int

  /// Attempts put back, which do not count.
  package var excused: Int

  /// Attempts without outcome: killed or cut off from the records.
  package var interrupted: Int

  /// Whether it waits for its environment (see ``code``), also during a retry.
  package var isHindered: Bool

  /// The earliest start, in seconds since 1970.
  var notBefore: Int64

  /// The lease's end, in seconds since 1970; 0 without one.
  package var leaseEnds: Int64

  package var owner: String?

  package var code: String?

  /// The last error, as a sentence.
  package var words: String?

  /// The last change of state, in RFC 3339.
  package var date: String

  /// Attempts that failed by themselves or run.
  package var counted: Int { attempts - excused - interrupted }

  func refuses(_ code: String?) -> Bool { kind == .open || code == InboxError.Kind.room.rawValue }
}

/// An attempt's outcome.
package enum InboxJobOutcome: Sendable, Hashable {
  case done

  /// The job has failed for good.
  case failed(InboxBundle.Failure)

  /// Not started for an unrelated reason: it queues again, and the attempt does not count.
  case putBack(InboxBundle.Failure)

  /// Storage, records or disk failed: it waits up to a minute, growing, and the attempt never counts.
  case outage(InboxBundle.Failure)

  /// The environment's fault: it waits up to five minutes, growing, and the attempt never counts.
  case hindered(InboxBundle.Failure)

  /// Perhaps the bundle's fault: it retries after growing pauses, up to a limit.
  case tryAgain(InboxBundle.Failure)
}

/// A job queue that survives kills.
///
/// A process leases a job; expiry frees it for the next. Attempts that fail by the bundle's fault are bounded, by the
/// environment's not. The protocol fits any database.
package protocol JobQueue: Sendable {
  /// Adds a job unless the bundle has one of that kind.
  func add(_ kind: InboxJob.Kind, for bundle: String, at date: Timestamp) throws(InboxError)

  /// Adds a job for each bundle in a state without one of that kind, in order of arrival.
  func add(_ kind: InboxJob.Kind, forAll state: InboxBundle.State, at date: Timestamp) throws(InboxError)

  /// Leases the job that waited longest, and counts the attempt.
  ///
  /// Many attempts without outcome delay a job, with the code `worker-lost`.
  ///
  /// - Returns: nil if no job is due.
  func lease(by owner: String, for seconds: Int64, at date: Timestamp) throws(InboxError) -> InboxJob?

  /// Extends a lease; false if it is lost.
  func extend(_ job: InboxJob, for seconds: Int64, at date: Timestamp) throws(InboxError) -> Bool

  /// Records a job's outcome.
  ///
  /// The same transaction may refuse the bundle, so that a kill leaves no bundle waiting for a failed job.
  ///
  /// - Returns: the new state; nil, without recording, if the lease was lost.
  func end(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) throws(InboxError) -> InboxJob.State?

  /// Ends a dead owner's leases, as attempts without outcome.
  func release(owner: String, at date: Timestamp) throws(InboxError)

  /// Restarts a job with all attempts, unless it runs.
  ///
  /// A bundle to reopen becomes `received`.
  func restart(_ kind: InboxJob.Kind, of bundle: String, at date: Timestamp) throws(InboxError)

  /// The jobs of a bundle in order of execution.
  func jobs(of bundle: String) throws(InboxError) -> [InboxJob]

  /// A page of jobs, latest bundles first.
  ///
  /// Failed jobs have their reasons; ``restart(_:of:at:)`` queues them again on request, or a salvage when its bundle
  /// is reopened.
  func jobs(in state: InboxJob.State, after id: Int64?, limit: Int) throws(InboxError) -> [InboxJob]

  /// The number of jobs by state.
  ///
  /// - Throws: `inbox-records`.
  func counts() throws(InboxError) -> [InboxJob.State: Int]

  /// Jobs waiting for their environment, by error code; the most frequent only.
  ///
  /// - Throws: `inbox-records`.
  func hindrances(limit: Int) throws(InboxError) -> [String: Int]

  func remove(of bundle: String) throws(InboxError)
}

extension JobQueue {
  /// Running jobs, also with expired leases.
  package func running() throws(InboxError) -> [InboxJob] { try jobs(in: .running, after: nil, limit: .max) }
}

/// The rules of attempts, pauses and consequences.
///
/// Queues only store their results.
package struct JobRules: Sendable, Hashable {
  /// The most attempts that fail by themselves.
  package var maximumAttempts = 4

  /// The most attempts without outcome that restart at once.
  package var maximumInterruptions = 8

  /// The bundles queued per step: a server limits a statement's time.
  package var addedAtOnce = 5000

  /// The most put-backs before it waits as in an outage.
  private static let maximumExcused = 200

  /// The pause after a put-back, in seconds.
  private static let pauseOfExcused: Int64 = 1

  /// The longest pause in an outage, in seconds.
  private static let longestPauseOfOutage: Int64 = 60

  /// The longest pause between attempts that fail by themselves, in seconds.
  private static let longestPauseOfRetry: Int64 = 900

  /// The longest pause for its environment, in seconds.
  private static let longestPauseOfHindrance: Int64 = 300

  /// The pause in seconds, doubling up to a bound.
  private static func pause(after times: Int, from first: Int64, to longest: Int64) -> Int64 {
    min(longest, first << Int64(min(max(0, times), 16)))
  }

  package init() {}

  /// Returns a job as leased.
  func leased(_ job: InboxJob, by owner: String, for seconds: Int64, at date: Timestamp) -> InboxJob {
    var job = job
    if job.state == .running { job.interrupted += 1 }
    job.state = .running
    job.attempts += 1
    job.owner = owner
    job.leaseEnds = date.secondsSince1970 + seconds
    job.date = date.rfc3339
    return job
  }

  /// Whether an expired job had too many attempts without outcome to restart at once.
  func isPostponed(_ job: InboxJob) -> Bool { job.interrupted + 1 >= maximumInterruptions }

  /// Returns a job as waiting: a lost process says little about the bundle.
  func postponed(_ job: InboxJob, at date: Timestamp) -> InboxJob {
    var job = job
    job.interrupted += 1
    job.state = .waiting
    job.isHindered = true
    job.code = InboxError.Kind.lost.rawValue
    job.words =
      "\(job.interrupted) attempts ended without a word: their processes were killed, or could not reach the records."
    job.notBefore =
      date.secondsSince1970
      + Self.pause(after: job.interrupted - maximumInterruptions, from: 60, to: Self.longestPauseOfHindrance)
    job.leaseEnds = 0
    job.owner = nil
    job.date = date.rfc3339
    return job
  }

  func ended(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) -> InboxJob {
    var (state, failure, notBefore) = (InboxJob.State.done, InboxBundle.Failure?.none, Int64(0))
    let counted = job.counted
    var job = job
    job.isHindered = false
    switch outcome {
    case .done: break
    case .failed(let reason): (state, failure) = (.failed, reason)
    case .putBack(let reason):
      (state, failure) = (.waiting, reason)
      notBefore =
        date.secondsSince1970
        + (job.excused < Self.maximumExcused ? Self.pauseOfExcused : Self.longestPauseOfOutage)
      job.excused += 1
    case .outage(let reason):
      (state, failure, job.isHindered) = (.waiting, reason, true)
      notBefore = date.secondsSince1970 + Self.pause(after: job.excused, from: 1, to: Self.longestPauseOfOutage)
      job.excused += 1
    case .hindered(let reason):
      (state, failure, job.isHindered) = (.waiting, reason, true)
      notBefore = date.secondsSince1970 + Self.pause(after: job.excused, from: 5, to: Self.longestPauseOfHindrance)
      job.excused += 1
    case .tryAgain(let reason):
      state = counted < maximumAttempts ? .waiting : .failed
      failure = reason
      notBefore = date.secondsSince1970 + Self.pause(after: counted - 1, from: 5, to: Self.longestPauseOfRetry)
    }
    job.state = state
    job.code = failure?.code
    job.words = failure?.words
    job.notBefore = notBefore
    job.leaseEnds = 0
    job.owner = nil
    job.date = date.rfc3339
    return job
  }

  /// The reason to refuse the bundle, stored in the same transaction as the job.
  func refusal(by job: InboxJob) -> InboxBundle.Failure? {
    guard job.state == .failed, let code = job.code, job.refuses(code) else { return nil }
    return InboxBundle.Failure(code: code, words: job.words ?? "")
  }
}
