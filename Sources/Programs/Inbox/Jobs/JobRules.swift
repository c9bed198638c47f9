package import StoreFiles

/// What becomes of jobs: how often they are begun, how long they wait in between, and what follows for their bundles.
///
/// It is the one place of these rules; a queue keeps what comes of them.
package struct JobRules: Sendable, Hashable {
  /// How often a job is begun that ends with an error each time.
  package var maximumAttempts: Int

  /// How often a job is begun that ends without a word each time: more often, since a server may be killed for reasons
  /// of its own.
  package var maximumInterruptions: Int

  /// How often a job is put back before that counts as an attempt.
  private static let maximumExcused = 200

  /// How many seconds pass before a job that was put back is begun again.
  private static let pauseOfExcused: Int64 = 1

  /// The most seconds that pass before a job whose bundle could not be fetched or kept is begun again.
  private static let longestPauseOfStorage: Int64 = 60

  /// Rules.
  package init(maximumAttempts: Int = 4, maximumInterruptions: Int = 8) {
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

  /// Whether a job whose lease has ended ended without a word as often as it may.
  package func isExhausted(_ job: InboxJob) -> Bool { job.interrupted + 1 >= maximumInterruptions }

  /// Such a job, which has failed.
  package func exhausted(_ job: InboxJob, at date: Timestamp) -> InboxJob {
    var job = job
    job.state = .failed
    job.code = job.code ?? InboxError.Kind.tries.rawValue
    job.words = job.words ?? "The process that worked at it died each time."
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
    switch outcome {
    case .done: break
    case .failed(let reason): (state, failure) = (.failed, reason)
    case .putBack(let reason) where job.excused < Self.maximumExcused:
      (state, failure) = (.waiting, reason)
      job.excused += 1
      notBefore = date.secondsSince1970 + Self.pauseOfExcused
    case .storageFault(let reason):
      (state, failure) = (.waiting, reason)
      notBefore = date.secondsSince1970 + min(Self.longestPauseOfStorage, 1 << Int64(min(job.excused, 6)))
      job.excused += 1
    case .putBack(let reason), .tryAgain(let reason):
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
