internal import Platform

package struct InboxJob: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Decrypts, unpacks, checks, and quarantines the store.
    case open

    case salvage
  }

  package enum State: String, Sendable, Hashable, Codable, CaseIterable {
    case waiting

    case running

    case done

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

  package init(
    id: Int64, kind: Kind, bundle: String, state: State, attempts: Int, excused: Int, interrupted: Int,
    isHindered: Bool, notBefore: Int64, leaseEnds: Int64, owner: String?, code: String?, words: String?, date: String
  ) {
    self.id = id
    self.kind = kind
    self.bundle = bundle
    self.state = state
    self.attempts = attempts
    self.excused = excused
    self.interrupted = interrupted
    self.isHindered = isHindered
    self.notBefore = notBefore
    self.leaseEnds = leaseEnds
    self.owner = owner
    self.code = code
    self.words = words
    self.date = date
  }

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
