package import Platform

/// What becomes of jobs: how often they are begun, how long they wait in between, and what follows for their bundles.
///
/// It is the one place of these rules; a queue keeps what comes of them.
package struct JobRules: Sendable, Hashable {
  /// How often a job is begun that ends with an error each time.
  package var maximumAttempts: Int

  /// How often a job is begun at once whose attempts end without a word each time; later ones wait for a pause.
  package var maximumInterruptions: Int

  /// How many bundles get their jobs in one step: a statement on a server has its time.
  package var addedAtOnce: Int

  /// How often a job is put back for a moment before it waits as long as in an outage.
  private static let maximumExcused = 200

  /// How many seconds pass before a job that was put back is begun again.
  private static let pauseOfExcused: Int64 = 1

  /// The most seconds that pass before a job is begun again that an outage has kept from being done.
  private static let longestPauseOfOutage: Int64 = 60

  /// The most seconds that pass before a job is begun again that its surroundings have kept from being done.
  private static let longestPauseOfHindrance: Int64 = 300

  /// How many seconds pass where nothing counts: twice as many each time, up to a bound.
  private static func pause(after times: Int, from first: Int64, to longest: Int64) -> Int64 {
    min(longest, first << Int64(min(max(0, times), 16)))
  }

  /// Rules.
  package init(maximumAttempts: Int = 4, maximumInterruptions: Int = 8, addedAtOnce: Int = 5000) {
    self.addedAtOnce = addedAtOnce
    self.maximumAttempts = maximumAttempts
    self.maximumInterruptions = maximumInterruptions
  }

  /// How many seconds pass before another attempt: longer each time.
  private static func pause(after attempts: Int) -> Int64 { min(900, 5 << min(Int64(max(0, attempts - 1)), 10)) }

  /// A job that waits, or whose lease has ended, as it is once it was taken.
  package func leased(_ job: InboxJob, by owner: String, for seconds: Int64, at date: Timestamp) -> InboxJob {
    var job = job
    if job.state == .running { job.interrupted += 1 }
    job.state = .running
    job.attempts += 1
    job.owner = owner
    job.leaseEnds = date.secondsSince1970 + seconds
    job.date = date.rfc3339
    return job
  }

  /// Whether a job whose lease has ended ended without a word so often that it is not begun at once.
  package func isPostponed(_ job: InboxJob) -> Bool { job.interrupted + 1 >= maximumInterruptions }

  /// Such a job, which waits: that a process is heard of no more says nothing of the bundle.
  package func postponed(_ job: InboxJob, at date: Timestamp) -> InboxJob {
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

  /// A job that runs, as it is after what came of it.
  package func ended(_ job: InboxJob, _ outcome: InboxJobOutcome, at date: Timestamp) -> InboxJob {
    var (state, failure, notBefore) = (InboxJob.State.done, InboxBundle.Failure?.none, Int64(0))
    // Attempts that ended with an error of their own.
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

  /// Why the bundle of a job is refused, which is noted in the step that notes the job; nil where it is not.
  package func refusal(by job: InboxJob) -> InboxBundle.Failure? {
    guard job.state == .failed, let code = job.code, job.refuses(code) else { return nil }
    return InboxBundle.Failure(code: code, words: job.words ?? "")
  }
}
