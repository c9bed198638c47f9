internal import StoreFiles

/// Equal damage that was seen before: how often, since when, and with which versions of the app.
package struct InboxGroup: Sendable, Hashable {
  /// A version of the app, and how often it was seen with it.
  package struct Version: Sendable, Hashable {
    /// The version; nil where the bundles do not say.
    package var version: String?

    /// How many stores it was seen in.
    package var count: Int64
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

  /// The versions of the app, oldest first.
  package var versions: [Version]

  /// How many of the bundles are still in the inbox.
  package var bundlesKept: Int64

  /// The oldest version of the app that it was seen with.
  package var since: String? { versions.lazy.compactMap(\.version).first }

  /// How often, and since which version: `seen 14 times since 2.3`.
  package var words: String {
    let times = count == 1 ? "seen once" : count == 2 ? "seen twice" : "seen \(count) times"
    return since.map { "\(times) since \($0)" } ?? times
  }

  /// Whether a version is older than another: numbers within are compared as numbers.
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
