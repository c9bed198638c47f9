package import Platform

/// The rules of attempts, pauses and consequences.
///
/// Queues only store their results.
package struct JobRules: Sendable, Hashable {
  /// The most attempts that fail by themselves.
  package var maximumAttempts: Int

  /// The most attempts without outcome that restart at once.
  package var maximumInterruptions: Int

  /// The bundles queued per step: a server limits a statement's time.
  package var addedAtOnce: Int

  /// The most put-backs before it waits as in an outage.
  private static let maximumExcused = 200

  /// The pause after a put-back, in seconds.
  private static let pauseOfExcused: Int64 = 1

  /// The longest pause in an outage, in seconds.
  private static let longestPauseOfOutage: Int64 = 60

  /// The longest pause for its environment, in seconds.
  private static let longestPauseOfHindrance: Int64 = 300

  /// The pause in seconds, doubling up to a bound.
  private static func pause(after times: Int, from first: Int64, to longest: Int64) -> Int64 {
    min(longest, first << Int64(min(max(0, times), 16)))
  }

  package init(maximumAttempts: Int = 4, maximumInterruptions: Int = 8, addedAtOnce: Int = 5000) {
    self.addedAtOnce = addedAtOnce
    self.maximumAttempts = maximumAttempts
    self.maximumInterruptions = maximumInterruptions
  }

  /// The pause in seconds, growing by attempt.
  private static func pause(after attempts: Int) -> Int64 { min(900, 5 << min(Int64(max(0, attempts - 1)), 10)) }

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

  package func ended(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) -> InboxJob {
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
      notBefore = date.secondsSince1970 + Self.pause(after: counted)
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
  package func refusal(by job: InboxJob) -> InboxBundle.Failure? {
    guard job.state == .failed, let code = job.code, job.refuses(code) else { return nil }
    return InboxBundle.Failure(code: code, words: job.words ?? "")
  }
}
