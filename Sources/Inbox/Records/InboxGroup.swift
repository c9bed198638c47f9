internal import Platform

/// The sightings of similar damage.
package struct InboxGroup: Sendable, Hashable {
  package struct Version: Sendable, Hashable {
    package var version: String?

    /// The number of stores.
    package var count: Int64
  }

  /// The fingerprints' group.
  package var id: String

  /// The latest bundle's fingerprint.
  package var fingerprint: DamageFingerprint

  /// The number of stores; a resent one counts once.
  package var count: Int64

  /// The first sighting, in RFC 3339.
  package var first: String

  /// The last sighting, in RFC 3339.
  package var last: String

  /// Oldest first; limited to those seen first.
  package var versions: [Version]

  /// Stores with versions beyond the limit.
  package var furtherCount: Int64

  /// Bundles still in the inbox.
  package var bundlesKept: Int64

  /// The oldest version seen; nil if not all are known.
  var since: String? { furtherCount > 0 ? nil : versions.lazy.compactMap(\.version).first }

  /// The summary, such as `seen 14 times since 2.3`.
  package var words: String {
    let times = count == 1 ? "seen once" : count == 2 ? "seen twice" : "seen \(count) times"
    return since.map { "\(times) since \($0)" } ?? times
  }

  /// Sorts the versions.
  init(
    id: String, fingerprint: DamageFingerprint, first: String, last: String, versions: [Version], bundlesKept: Int64
  ) {
    self.id = id
    self.fingerprint = fingerprint
    count = versions.reduce(0) { $0 + $1.count }
    self.first = first
    self.last = last
    let isFurther = { (version: Version) in version.version == InboxSighting.furtherVersion }
    furtherCount = versions.filter(isFurther).reduce(0) { $0 + $1.count }
    self.versions = versions.filter { !isFurther($0) }.sorted { first, second in
      switch (first.version, second.version) {
      case (let first?, let second?): Self.isOlder(first, second)
      case (_?, nil): true
      default: false
      }
    }
    self.bundlesKept = bundlesKept
  }

  /// Whether a version is older, comparing numbers within as numbers.
  static func isOlder(_ left: String, _ right: String) -> Bool {
    let (first, second) = (parts(left), parts(right))
    for (one, other) in zip(first, second) where one != other {
      if let one = Int(one), let other = Int(other) { return one < other }
      return one < other
    }
    return first.count != second.count ? first.count < second.count : left < right
  }

  private static func parts(_ text: String) -> [Substring] {
    text.split { !$0.isNumber && !$0.isLetter }
  }
}

/// A sighting of damage, which outlives its bundle.
package struct InboxSighting: Sendable, Hashable {
  var bundle: String

  /// Identifies the store, which at another level is the same sighting.
  var store: String

  var fingerprint: DamageFingerprint

  /// The bounded app version, if known.
  var appVersion: String?

  var date: String

  /// Stands for versions beyond the limit; no real one equals it.
  static let furtherVersion = "\u{1}"

  /// The most versions recorded per damage: senders choose them.
  static let maximumVersions = 200

  /// Returns the version to record.
  ///
  /// - Parameters:
  ///   - isKnown: whether the damage was seen with it.
  ///   - count: the number of versions seen.
  static func noted(_ version: String, isKnown: Bool, count: Int) -> String {
    isKnown || count < maximumVersions ? version : furtherVersion
  }

  package init(bundle: String, store: String, fingerprint: DamageFingerprint, appVersion: String?, date: String) {
    self.bundle = bundle
    self.store = store
    self.fingerprint = fingerprint
    self.appVersion = appVersion.map { String(printable($0).prefix(200)) }
    self.date = date
  }
}

package struct RelatedDamage: Sendable, Hashable {
  package var group: InboxGroup

  /// From 0 to 1.
  package var likeness: Double

  /// The names of differing parts.
  package var differences: [String]

  /// The most fingerprints read per mark; a sample stands for very common ones.
  static let maximumOfBand = 500

  /// The most fingerprints compared, by descending weight of common marks.
  static let maximumCompared = 100
}

extension InboxRecords {
  /// Finds the damage most similar to a fingerprint, without its own, by an index for any number of stores.
  package func related(to fingerprint: DamageFingerprint, limit: Int) throws(InboxError) -> [RelatedDamage] {
    let found = try fingerprints(sharing: fingerprint.bands, limit: RelatedDamage.maximumCompared)
      .filter { $0.group != fingerprint.group }
      .map { (fingerprint: $0, likeness: fingerprint.likeness(to: $0)) }
      .sorted { ($1.likeness, $0.fingerprint.group) < ($0.likeness, $1.fingerprint.group) }
    let groups = Dictionary(
      try groups(found.prefix(max(0, limit)).map { $0.fingerprint.group }).map { ($0.id, $0) }
    ) { first, _ in first }
    return found.prefix(max(0, limit)).compactMap { item in
      groups[item.fingerprint.group].map { group in
        RelatedDamage(
          group: group, likeness: item.likeness, differences: item.fingerprint.differences(from: fingerprint))
      }
    }
  }
}
