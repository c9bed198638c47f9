internal import Platform

/// The retention rules; bundles outside every rule stay.
package struct InboxRetention: Sendable, Hashable {
  /// The days to keep bundles after arrival.
  package var days: Int?

  /// The newest bundles to keep per damage.
  package var last: Int?

  /// The most bytes of bundles and results; the oldest go first.
  package var bytes: Int64?

  /// Whether to keep the newest bundle of each damage in any case.
  package var keepsOneOfEach: Bool

  package init(days: Int? = nil, last: Int? = nil, bytes: Int64? = nil, keepsOneOfEach: Bool = true) {
    self.days = days
    self.last = last
    self.bytes = bytes
    self.keepsOneOfEach = keepsOneOfEach
  }

  package var hasRules: Bool { days != nil || last != nil || bytes != nil }

  /// The newer bundles of the same damage to count.
  var newerKnown: Int { max(1, last ?? 1) }
}

enum RetentionVerdict: Sendable, Hashable {
  case kept(InboxKeepingReason)

  case removed(InboxRemoval.Rule)
}

package enum InboxKeepingReason: String, Sendable, Hashable, Codable, CaseIterable {
  /// It is in use, or waits for a job.
  case work

  /// It is the newest of its damage.
  case newest

  /// It arrived within the kept days.
  case days

  /// It is among the newest kept of its damage.
  case last

  /// It is outside every rule.
  case none
}

package struct RetentionCandidate: Sendable, Hashable {
  var id: String

  var sender: String

  /// The arrival, in RFC 3339.
  var date: String

  /// The received file's SHA-256.
  var sha256: String

  var group: String?

  /// The size of the received file and results.
  var bytes: Int64

  /// The counted newer bundles of the same damage; 0 without damage.
  ///
  /// For a store in quarantine, only those with quarantined stores.
  package var newer: Int

  /// Whether it has a waiting or running job, or waits to be opened.
  var isAtWork: Bool

  /// The last time it was sent, in RFC 3339.
  var received: String

  var key: InboxKey { InboxKey(date: date, id: id) }
}

extension InboxRetention {
  /// Applies the rules on days and damage; that on bytes concerns all bundles together.
  ///
  /// - Parameter oldest: see ``oldest(at:)``.
  func verdict(on bundle: RetentionCandidate, oldest: String?) -> RetentionVerdict {
    if let reason = reasonToStay(bundle) { return .kept(reason) }
    if let oldest, bundle.received >= oldest { return .kept(.days) }
    if let last, bundle.group != nil {
      if bundle.newer < last { return .kept(.last) }
      return .removed(oldest == nil ? .last : .days)
    }
    return oldest == nil ? .kept(.none) : .removed(.days)
  }

  /// The earliest arrival kept by days, in RFC 3339.
  func oldest(at now: Timestamp) -> String? {
    days.map { Timestamp(secondsSince1970: now.secondsSince1970 - Int64($0) * 86_400).rfc3339 }
  }

  /// Whether a rule still removes a bundle.
  ///
  /// - Parameters:
  ///   - seen: the bundle as the rules saw it.
  ///   - oldest: see ``oldest(at:)``.
  func stillRemoves(
    _ bundle: RetentionCandidate, by rule: InboxRemoval.Rule, seen: RetentionCandidate?, oldest: String?
  ) -> Bool {
    guard let seen, seen.received == bundle.received else { return false }
    if case .removed = verdict(on: bundle, oldest: oldest) { return true }
    return rule == .bytes && reasonToStay(bundle) == nil
  }

  /// The reason to keep a bundle regardless of the rules.
  func reasonToStay(_ bundle: RetentionCandidate) -> InboxKeepingReason? {
    if bundle.isAtWork { return .work }
    return keepsOneOfEach && bundle.group != nil && bundle.newer == 0 ? .newest : nil
  }
}

package struct InboxRemoval: Sendable, Hashable, Encodable {
  package enum Rule: String, Sendable, Hashable, Codable, CaseIterable {
    /// It was too old.
    case days

    /// Enough newer bundles had its damage.
    case last

    /// All bundles were too large, and it was among the oldest.
    case bytes

    case discarded
  }

  /// In order of removal; 0 until recorded.
  package var number: Int64

  package var bundle: String

  /// The removal, in RFC 3339.
  package var date: String

  package var rule: Rule

  package var sender: String

  /// The bundle's arrival, in RFC 3339.
  package var arrived: String

  /// The received file's SHA-256.
  package var sha256: String

  package var group: String?

  /// The bundle's bytes; a bucket with versions or object lock still has them.
  package var bytes: Int64

  /// Whether the files were removed as far as storage allows; otherwise retried.
  package var isCleared: Bool

  /// All but ``number``.
  private enum CodingKeys: String, CodingKey {
    case bundle, date, rule, sender, arrived, sha256, group, bytes
    case isCleared = "cleared"
  }
}

extension InboxRemoval {
  /// Creates a bundle's removal.
  ///
  /// - Parameter placed: the size of its results.
  init(of bundle: InboxBundle, placed: Int64, by rule: Rule, at date: Timestamp) {
    self.init(
      number: 0, bundle: bundle.id, date: date.rfc3339, rule: rule, sender: bundle.sender, arrived: bundle.date,
      sha256: bundle.sha256, group: bundle.fingerprint?.group, bytes: bundle.bytes + placed, isCleared: false)
  }

  init(of bundle: RetentionCandidate, by rule: Rule, at date: Timestamp) {
    self.init(
      number: 0, bundle: bundle.id, date: date.rfc3339, rule: rule, sender: bundle.sender, arrived: bundle.date,
      sha256: bundle.sha256, group: bundle.group, bytes: bundle.bytes, isCleared: false)
  }

  func telling(of bundle: RetentionCandidate) -> InboxRemoval {
    var removal = self
    removal.sender = bundle.sender
    removal.arrived = bundle.date
    removal.sha256 = bundle.sha256
    removal.group = bundle.group
    removal.bytes = bundle.bytes
    return removal
  }
}
