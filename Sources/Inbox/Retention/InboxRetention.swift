internal import Platform

/// Which bundles are kept: those that a rule keeps, and those that no rule is about.
package struct InboxRetention: Sendable, Hashable {
  /// Keep what arrived within so many days; nil for no such rule.
  package var days: Int?

  /// Keep the newest so many of each damage; nil for no such rule.
  package var last: Int?

  /// Keep no more than so many bytes, bundles with what was made of them: the oldest go first; nil for no such rule.
  package var bytes: Int64?

  /// Whether the newest bundle of each damage stays, whatever the rules say.
  package var keepsOneOfEach: Bool

  /// Rules.
  package init(days: Int? = nil, last: Int? = nil, bytes: Int64? = nil, keepsOneOfEach: Bool = true) {
    self.days = days
    self.last = last
    self.bytes = bytes
    self.keepsOneOfEach = keepsOneOfEach
  }

  /// Whether there is any rule.
  package var hasRules: Bool { days != nil || last != nil || bytes != nil }

  /// How many newer bundles of the same damage have to be known of a bundle.
  var newerKnown: Int { max(1, last ?? 1) }
}

/// What the rules of retention say of a bundle that is there.
package enum RetentionVerdict: Sendable, Hashable {
  /// It stays, for this reason.
  case kept(InboxKeepingReason)

  /// It goes, by this rule.
  case removed(InboxRemoval.Rule)
}

/// Why a bundle stays.
package enum InboxKeepingReason: String, Sendable, Hashable, Codable, CaseIterable {
  /// It is being worked on, or waits for that.
  case work

  /// It is the newest of its damage.
  case newest

  /// It arrived within the days that are kept.
  case days

  /// It is among the last of its damage that are kept.
  case last

  /// No rule is about it.
  case none
}

/// What the rules need to know of a bundle.
package struct RetentionCandidate: Sendable, Hashable {
  /// The bundle's identifier.
  package var id: String

  /// The sender.
  package var sender: String

  /// When it arrived, in RFC 3339.
  package var date: String

  /// Its SHA-256 as it arrived.
  package var sha256: String

  /// The mark of its damage; nil for none.
  package var group: String?

  /// Its size as it arrived and what was placed of it, in bytes.
  package var bytes: Int64

  /// How many newer bundles of the same damage there are, as far as they were counted; 0 where it has none.
  ///
  /// Where its store is in quarantine, only those whose stores are there too.
  package var newer: Int

  /// Whether a job of it waits or runs, or it waits to be opened.
  package var isAtWork: Bool

  /// When it was sent last, in RFC 3339: later than it arrived where its sender sent it again.
  package var received: String

  /// A bundle as the rules see it.
  package init(
    id: String, sender: String, date: String, sha256: String, group: String?, bytes: Int64, newer: Int, isAtWork: Bool,
    received: String
  ) {
    self.id = id
    self.sender = sender
    self.date = date
    self.sha256 = sha256
    self.group = group
    self.bytes = bytes
    self.newer = newer
    self.isAtWork = isAtWork
    self.received = received
  }

  /// Its place in the list of bundles.
  package var key: InboxKey { InboxKey(date: date, id: id) }
}

extension InboxRetention {
  /// What the rules on days and on damage say; that on bytes is about all bundles together.
  ///
  /// - Parameter oldest: when what is kept by days arrived at the earliest, in RFC 3339.
  func verdict(on bundle: RetentionCandidate, oldest: String?) -> RetentionVerdict {
    if let reason = reasonToStay(bundle) { return .kept(reason) }
    if let oldest, bundle.received >= oldest { return .kept(.days) }
    if let last, bundle.group != nil {
      if bundle.newer < last { return .kept(.last) }
      return .removed(oldest == nil ? .last : .days)
    }
    return oldest == nil ? .kept(.none) : .removed(.days)
  }

  /// When what is kept by days arrived at the earliest, in RFC 3339; nil where there is no such rule.
  func oldest(at now: Timestamp) -> String? {
    days.map { Timestamp(secondsSince1970: now.secondsSince1970 - Int64($0) * 86_400).rfc3339 }
  }

  /// Whether a bundle that a rule was to remove is still to be removed as it is now.
  ///
  /// - Parameters:
  ///   - rule: the rule.
  ///   - seen: the bundle as the rules saw it.
  ///   - oldest: when what is kept by days arrived at the earliest, in RFC 3339.
  func stillRemoves(
    _ bundle: RetentionCandidate, by rule: InboxRemoval.Rule, seen: RetentionCandidate?, oldest: String?
  ) -> Bool {
    guard let seen, seen.received == bundle.received else { return false }
    if case .removed = verdict(on: bundle, oldest: oldest) { return true }
    return rule == .bytes && reasonToStay(bundle) == nil
  }

  /// Why a bundle stays whatever the rules say; nil where it need not.
  func reasonToStay(_ bundle: RetentionCandidate) -> InboxKeepingReason? {
    if bundle.isAtWork { return .work }
    return keepsOneOfEach && bundle.group != nil && bundle.newer == 0 ? .newest : nil
  }
}
