package import Platform

/// Why a backup is kept, or why it is not.
package enum RetentionReason: Sendable, Hashable {
  /// There are no rules, so everything is kept.
  case policyIsEmpty

  /// It has all tags of a list.
  case tags([String])

  /// It is not older than a rule says.
  case within(RetentionDuration)

  /// It is the newest of its period, of which a number is kept.
  case newest(of: RetentionPeriod)

  /// It is the newest of its period, of which one each is kept for some time.
  case newestWithin(RetentionPeriod, RetentionDuration)

  /// It is the last one that has been checked so far, or further.
  case lastProven(RetentionSnapshot.Verification)

  /// It is the newest of all.
  case newestOfAll

  /// Another one cannot be restored without it.
  case neededBy(String)

  /// It is evidence, or of a store that was not sound, which rules never touch.
  case apart

  /// A migration removed records that it still holds; rules do not touch it until it is released.
  case onlyHere(OnlyHereNote)

  /// It is the last one of before the store was quarantined, which another one took the place of lately.
  case beforeQuarantine

  /// It is the last one of before entities lost more than half of their records, as another one shows.
  case beforeFall(entities: [String], in: String)

  /// It is the last one that has large values which the records of another one that is kept refer to, and which that one lacks.
  case holdsValues(count: Int, lackedBy: String)

  /// It shows that entities lost more than half of the records that another one has, which is kept because of it.
  case showsFall(since: String)

  /// What it is cannot be told, so that rules do not touch it.
  case unknown

  /// It is dated later than now, so that a clock was or is wrong; it takes no other one's place.
  case datedInTheFuture

  /// It is dated before the backup that it is a delta of, so that a clock was wrong.
  case datedBeforeParent

  /// The history jumps over many days behind it, and what came then does not show yet that the clock is right; judged
  /// without what came then, it would be kept.
  case clockMayHaveJumped(days: Int)

  /// A rule keeps it although it is not proven; it takes no proven one's place.
  case notProven(RetentionSnapshot.Proof)

  case noRule

  /// The rules count other ones in its place, for its proof failed or is missing.
  case noProof(RetentionSnapshot.Proof)

  /// The stable word for the reason; part of the command line's contract.
  package var code: String {
    switch self {
    case .policyIsEmpty: "policy-is-empty"
    case .tags: "tag"
    case .within: "within"
    case .newest(let period): period.rawValue
    case .newestWithin(let period, _): "within-\(period.rawValue)"
    case .lastProven: "last-proven"
    case .newestOfAll: "newest"
    case .neededBy: "needed"
    case .apart: "apart"
    case .onlyHere: "only-here"
    case .beforeQuarantine: "before-quarantine"
    case .beforeFall: "before-fall"
    case .holdsValues: "holds-values"
    case .showsFall: "shows-fall"
    case .unknown: "unknown"
    case .datedInTheFuture: "dated-in-the-future"
    case .datedBeforeParent: "dated-before-its-parent"
    case .clockMayHaveJumped: "clock-may-have-jumped"
    case .notProven: "not-proven-yet"
    case .noRule: "no-rule"
    case .noProof: "no-proof"
    }
  }

  /// The reason in plain words; those of the rules are restic's.
  package var words: String {
    switch self {
    case .policyIsEmpty: "policy is empty"
    case .tags(let tags): "has tags [\(tags.joined(separator: ", "))]"
    case .within(let duration): "within \(duration)"
    case .newest(let period): "\(period.rawValue) snapshot"
    case .newestWithin(let period, let duration): "\(period.rawValue) within \(duration)"
    case .lastProven(let verification): "the last one \(verification.words)"
    case .newestOfAll: "the newest"
    case .neededBy(let child): "\(child) cannot be restored without it"
    case .apart: "kept apart: rules never touch evidence and backups of stores that were not sound"
    case .onlyHere(let note): "\(Self.words(of: note)), and is kept until it is released"
    case .beforeQuarantine:
      "the last one of before the store was quarantined, kept for \(RetentionJudgement.daysAfterQuarantine) days"
    case .beforeFall(let entities, let later):
      "the last one before \(Self.list(entities)) lost more than half of the records, in \(later): kept for "
        + "\(RetentionJudgement.daysAfterFall) days, or until it is released"
    case .holdsValues(let count, let later):
      "the last one with \(counted(count, "large value")) that records in \(later) refer to, and that \(later) lacks"
    case .showsFall(let earlier): "it shows what was lost after \(earlier), which is kept because of that"
    case .unknown: "its manifest cannot be read, so that rules do not touch it"
    case .datedInTheFuture: "dated in the future: a clock is or was wrong"
    case .datedBeforeParent: "dated before the backup it builds on: a clock was wrong"
    case .clockMayHaveJumped(let days): "the next one is dated \(days) days later: the clock may have jumped"
    case .notProven(let proof): "kept but not counted, for its proof \(proof.words)"
    case .noRule: "no rule keeps it"
    case .noProof(let proof): "no rule keeps it, and its proof \(proof.words)"
    }
  }

  /// What a note says of an original, in words that follow its name: `holds 12 records of Person that …`.
  package static func words(of note: OnlyHereNote) -> String {
    note.records.map { "holds \($0) that its migration removed" }
      ?? "has a note of removed records that cannot be read"
  }

  /// The first names of a list, and how many more there are.
  private static func list(_ names: [String]) -> String {
    let shown = names.prefix(3).joined(separator: ", ")
    return names.count > 3 ? "\(shown) and \(names.count - 3) more" : shown
  }

  /// Whether it is one of restic's rules that keeps the backup.
  package var isRule: Bool {
    switch self {
    case .policyIsEmpty, .tags, .within, .newest, .newestWithin: true
    case .lastProven, .newestOfAll, .neededBy, .apart, .onlyHere, .beforeQuarantine, .beforeFall, .holdsValues,
      .showsFall, .unknown, .datedInTheFuture, .datedBeforeParent, .clockMayHaveJumped, .notProven, .noRule, .noProof:
      false
    }
  }
}

extension RetentionSnapshot.Verification {
  /// What was checked, in words that follow `the last one`.
  fileprivate var words: String {
    switch self {
    case .files: "whose files were read back; its store was not checked"
    case .pages: "of which every page was checked; the entries of some indexes could not be compared"
    case .changed: "of which every page was checked, and the indexes of what had changed"
    case .whole: "of which every page and every index was checked"
    }
  }
}

extension RetentionSnapshot.Proof {
  fileprivate var words: String {
    switch self {
    case .proven: "succeeded"
    case .unproven: "is still to come"
    case .failed: "failed"
    case .inconclusive: "was inconclusive"
    }
  }
}
