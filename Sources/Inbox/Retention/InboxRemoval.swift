internal import Platform

package struct InboxRemoval: Sendable, Hashable {
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
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "bundle": bundle, "date": date, "rule": rule, "sender": sender, "arrived": arrived, "sha256": sha256,
      "group": group, "bytes": bytes, "cleared": isCleared,
    ])
  }
}
