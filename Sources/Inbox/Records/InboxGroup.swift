/// The sightings of similar damage.
package struct InboxGroup: Sendable, Hashable {
  package struct Version: Sendable, Hashable {
    package var version: String?

    /// The number of stores.
    package var count: Int64

    package init(version: String?, count: Int64) {
      self.version = version
      self.count = count
    }
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
  package var since: String? { furtherCount > 0 ? nil : versions.lazy.compactMap(\.version).first }

  /// The summary, such as `seen 14 times since 2.3`.
  package var words: String {
    let times = count == 1 ? "seen once" : count == 2 ? "seen twice" : "seen \(count) times"
    return since.map { "\(times) since \($0)" } ?? times
  }

  /// Sorts the versions.
  package init(
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
  package static func isOlder(_ left: String, _ right: String) -> Bool {
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
