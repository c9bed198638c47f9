internal import Platform

/// Work on one bundle that a worker does.
package struct InboxJob: Sendable, Hashable {
  /// What is to be done.
  package enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// The bundle is decrypted, unpacked and checked, and its store is placed in quarantine.
    case open

    case salvage
  }

  /// How far it is.
  package enum State: String, Sendable, Hashable, Codable, CaseIterable {
    /// It waits for a worker.
    case waiting

    /// A worker has it, until its lease ends.
    case running

    case done

    /// It failed by what its bundle is; only what begins it anew brings it back.
    case failed
  }

  /// Its number.
  package var id: Int64

  /// What is to be done.
  package var kind: Kind

  /// The bundle that it is done to.
  package var bundle: String

  /// How far it is.
  package var state: State

  /// How often it was begun.
  package var attempts: Int

  /// How many of those do not count, because it was put back.
  package var excused: Int

  /// How many of those ended without a word: the process that had it was killed, or could not reach the records.
  package var interrupted: Int

  /// Whether it waits for its surroundings, which its ``code`` names; also while it is tried again.
  package var isHindered: Bool

  /// Before when it is not begun, in seconds since 1970.
  package var notBefore: Int64

  /// Until when the worker that has it is believed to live, in seconds since 1970; 0 where none has.
  package var leaseEnds: Int64

  /// Who has it.
  package var owner: String?

  /// The stable word of the latest error; nil where there was none.
  package var code: String?

  /// What went wrong, as a sentence.
  package var words: String?

  /// When its state changed last, in RFC 3339.
  package var date: String

  /// A job as a queue keeps it.
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

  /// How many attempts ended with an error of their own, the one that runs included.
  package var counted: Int { attempts - excused - interrupted }

  /// Whether its bundle is refused when it fails with a code.
  func refuses(_ code: String?) -> Bool { kind == .open || code == InboxError.Kind.room.rawValue }
}

/// What came of one attempt at a job.
package enum InboxJobOutcome: Sendable, Hashable {
  case done

  /// It is not worth another try.
  case failed(InboxBundle.Failure)

  /// It could not be begun for what has nothing to do with it: it waits its turn again, and the attempt does not count.
  case putBack(InboxBundle.Failure)

  /// What every job needs could not be used, such as the storage of the bundles, the records or the disk: it waits for a pause
  /// that grows to a minute, and the attempt never counts.
  case outage(InboxBundle.Failure)

  /// Its surroundings were at fault, and not its bundle: it waits for a pause that grows to five minutes, and the attempt never
  /// counts.
  case hindered(InboxBundle.Failure)

  /// Its bundle may be at fault: it is tried again after a growing pause, as often as the queue allows.
  case tryAgain(InboxBundle.Failure)
}
