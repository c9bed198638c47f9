internal import Platform

/// That a bundle was removed: which, when, and by which rule.
package struct InboxRemoval: Sendable, Hashable {
  /// Why a bundle is removed.
  package enum Rule: String, Sendable, Hashable, Codable, CaseIterable {
    /// It is older than what is kept.
    case days

    /// There are enough newer ones of its damage.
    case last

    /// All bundles together are larger than they may be, and it is among the oldest.
    case bytes

    case discarded
  }

  /// Its number, in the order of removals; 0 where it has none yet.
  package var number: Int64

  /// The bundle's identifier.
  package var bundle: String

  /// When it was removed, in RFC 3339.
  package var date: String

  /// Why.
  package var rule: Rule

  /// The sender.
  package var sender: String

  /// When it had arrived, in RFC 3339.
  package var arrived: String

  /// Its SHA-256 as it arrived.
  package var sha256: String

  /// The mark of its damage; nil for none.
  package var group: String?

  /// How many bytes were kept of it; a bucket that keeps versions, or locks objects, has them still.
  package var bytes: Int64

  /// Whether its files were removed too, as far as their storage lets them go; else that is done at the next chance.
  package var isCleared: Bool

  /// A removal as records keep it.
  package init(
    number: Int64, bundle: String, date: String, rule: Rule, sender: String, arrived: String, sha256: String,
    group: String?, bytes: Int64, isCleared: Bool
  ) {
    self.number = number
    self.bundle = bundle
    self.date = date
    self.rule = rule
    self.sender = sender
    self.arrived = arrived
    self.sha256 = sha256
    self.group = group
    self.bytes = bytes
    self.isCleared = isCleared
  }

  /// The removal of a bundle now.
  ///
  /// - Parameter placed: how many bytes were placed of it.
  init(of bundle: InboxBundle, placed: Int64, by rule: Rule, at date: Timestamp) {
    self.init(
      number: 0, bundle: bundle.id, date: date.rfc3339, rule: rule, sender: bundle.sender, arrived: bundle.date,
      sha256: bundle.sha256, group: bundle.fingerprint?.group, bytes: bundle.bytes + placed, isCleared: false)
  }

  /// The removal of a bundle now.
  init(of bundle: RetentionCandidate, by rule: Rule, at date: Timestamp) {
    self.init(
      number: 0, bundle: bundle.id, date: date.rfc3339, rule: rule, sender: bundle.sender, arrived: bundle.date,
      sha256: bundle.sha256, group: bundle.group, bytes: bundle.bytes, isCleared: false)
  }

  /// The same removal, with what the bundle is now.
  package func telling(of bundle: RetentionCandidate) -> InboxRemoval {
    var removal = self
    removal.sender = bundle.sender
    removal.arrived = bundle.date
    removal.sha256 = bundle.sha256
    removal.group = bundle.group
    removal.bytes = bundle.bytes
    return removal
  }
}

extension InboxRemoval: Encodable {
  /// Writes the removal for programs.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "bundle": bundle, "date": date, "rule": rule, "sender": sender, "arrived": arrived, "sha256": sha256,
      "group": group, "bytes": bytes, "cleared": isCleared,
    ])
  }
}
