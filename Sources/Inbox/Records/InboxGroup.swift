/// Equal damage that was seen before: how often, since when, and with which versions of the app.
package struct InboxGroup: Sendable, Hashable {
  /// A version of the app, and how often it was seen with it.
  package struct Version: Sendable, Hashable {
    /// The version; nil where the bundles do not say.
    package var version: String?

    /// How many stores it was seen in.
    package var count: Int64

    /// A version.
    package init(version: String?, count: Int64) {
      self.version = version
      self.count = count
    }
  }

  /// The fingerprint that they share.
  package var id: String

  /// What the damage is, as the latest of the bundles says.
  package var fingerprint: DamageFingerprint

  /// How many stores it was seen in; one that was sent again is not counted again.
  package var count: Int64

  /// When it was seen first, in RFC 3339.
  package var first: String

  /// When it was seen last, in RFC 3339.
  package var last: String

  /// The versions of the app, oldest first; of very many, those that were seen first.
  package var versions: [Version]

  /// How many stores it was seen in with further versions, which are not listed.
  package var furtherCount: Int64

  /// How many of the bundles are still in the inbox.
  package var bundlesKept: Int64

  /// The oldest version of the app that it was seen with; nil where not all are known.
  package var since: String? { furtherCount > 0 ? nil : versions.lazy.compactMap(\.version).first }

  /// How often, and since which version: `seen 14 times since 2.3`.
  package var words: String {
    let times = count == 1 ? "seen once" : count == 2 ? "seen twice" : "seen \(count) times"
    return since.map { "\(times) since \($0)" } ?? times
  }

  /// A group of what is known of it; its versions in any order.
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

  /// Whether a version is older than another: numbers within are compared as numbers.
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
