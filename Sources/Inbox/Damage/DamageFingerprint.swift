internal import Platform
package import SupportBundle

/// A fingerprint shared by similar damage.
///
/// It covers verdict, coarse shares of page states, damaged entities, model version, the writing SQLite's version, and
/// app. ``group`` omits the app's version, so that damage can be followed across versions; ``exact`` has it.
package struct DamageFingerprint: Sendable, Hashable, Codable {
  package enum Share: String, Sendable, Hashable, Codable {
    case one

    /// Below 1 %.
    case few

    /// Below 25 %.
    case some

    /// Below 75 %.
    case many

    /// 75 % or more.
    case most

    init(of count: Int64, in all: Int64) {
      let share = Double(count) / Double(max(all, 1))
      self =
        switch (count, share) {
        case (...1, ..<0.75): .one
        case (_, ..<0.01): .few
        case (_, ..<0.25): .some
        case (_, ..<0.75): .many
        default: .most
        }
    }
  }

  /// Twelve hexadecimal digits, for any app version.
  package var group: String

  /// The same with the app version.
  package var exact: String

  package var app: String?

  /// The verdict, such as `damaged`.
  package var verdict: String

  /// The shares of damaged pages by state.
  package var states: [String: Share]

  /// The damaged entities, sorted and limited.
  package var entities: [String]

  /// The model's version or checksum.
  package var model: String?

  /// The SQLite version that wrote the store.
  package var sqlite: String?

  private static let usual: Set<String> = ["healthy", "overflow", "free", "special"]

  private static let maximumCount = 32
  private static let maximumLength = 200

  /// Computes a bundle's fingerprint, with bounded texts.
  package init(_ facts: BundleFacts) {
    func bounded(_ text: String) -> String { String(printable(text).prefix(Self.maximumLength)) }
    app = facts.app.map(bounded)
    verdict = bounded(facts.verdict)
    entities = Array(Set(facts.damagedTables.map(bounded)).sorted().prefix(Self.maximumCount))
    model = (facts.modelVersion ?? facts.modelChecksum).map(bounded)
    sqlite = facts.versions.storeWrittenBySQLite.map(bounded)
    // Hostile numbers may have any size.
    let all = facts.pageStates.values.reduce(Int64(0)) { sum, count in
      let (total, isTooLarge) = sum.addingReportingOverflow(max(0, count))
      return isTooLarge ? .max : total
    }
    states = [:]
    let damaged = facts.pageStates.filter { $0.value > 0 && !Self.usual.contains($0.key) }
    for (state, count) in damaged.sorted(by: { $0.key < $1.key }).prefix(Self.maximumCount) {
      states[bounded(state)] = Share(of: count, in: all)
    }
    let parts: [String] =
      ["1", app ?? "-", verdict, model ?? "-", sqlite ?? "-"]
      + states.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.rawValue)" } + ["/"] + entities
    group = Self.mark(parts)
    exact = Self.mark(parts + ["/", facts.versions.app.map(bounded) ?? "-"])
  }

  private static func mark(_ parts: [String]) -> String { String(FileDigest(ofTexts: parts).hexadecimal.prefix(12)) }
}

extension FileDigest {
  /// Digests texts unambiguously, despite separators in them.
  init(ofTexts parts: [String]) { self.init(of: Array(parts.map { "\($0.utf8.count):\($0)" }.joined().utf8)) }
}

extension DamageFingerprint {
  /// A value shared by similar fingerprints.
  package struct Band: Sendable, Hashable {
    package var mark: Int64

    var weight: Int64

    /// The weight of a mark without one part: more than all others together.
    static let ofAllButOne: Int64 = 9
  }

  /// The seeds of the entities' MinHash values.
  private static let seeds = 4

  /// The marks by which an index finds similar fingerprints without comparing all pairs.
  ///
  /// Most hash all parts but one, or but the two that change with app and system updates: fingerprints that differ only
  /// there share the mark. The others are [MinHash](https://en.wikipedia.org/wiki/MinHash) values of the entities,
  /// which overlapping sets likely share. The records store them, so a change needs a new records version.
  package var bands: [Band] {
    let (app, verdict) = (["app", app ?? "-"], ["verdict", verdict])
    let (model, sqlite) = (["model", model ?? "-"], ["sqlite", sqlite ?? "-"])
    let shares = ["shares"] + states.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.rawValue)" }
    let kinds = ["states"] + states.keys.sorted()
    let entities = ["entities"] + entities
    var bands: [Int64: Int64] = [:]
    let combinations: [[[String]]] = [
      [verdict, model, sqlite, shares, entities], [app, model, sqlite, shares, entities],
      [app, verdict, sqlite, shares, entities], [app, verdict, model, shares, entities],
      [app, verdict, model, sqlite, entities], [app, verdict, model, sqlite, shares],
      [app, verdict, shares, entities], [app, verdict, kinds, entities],
    ]
    for (number, combination) in combinations.enumerated() {
      let mark = Self.number(["1", "\(number)"] + combination.flatMap { [String($0.count)] + $0 })
      bands[mark] = combination.count == 5 ? Band.ofAllButOne : 2
    }
    for seed in 0..<(self.entities.isEmpty ? 0 : Self.seeds) {
      let least = self.entities.map { Self.number(["2", "\(seed)", $0]) }.min() ?? 0
      bands[Self.number(["3", "\(seed)", "\(least)"] + app)] = 1
    }
    return bands.sorted { $0.key < $1.key }.map { Band(mark: $0.key, weight: $0.value) }
  }

  private static func number(_ parts: [String]) -> Int64 {
    let digits = FileDigest(ofTexts: parts).hexadecimal.prefix(16)
    return Int64(bitPattern: UInt64(digits, radix: 16) ?? 0)
  }

  /// Similarity from 0 to 1; 1 for equal fingerprints.
  package func likeness(to other: DamageFingerprint) -> Double {
    func share<Value: Hashable>(_ one: Set<Value>, _ two: Set<Value>) -> Double {
      let all = one.union(two).count
      return all == 0 ? 1 : Double(one.intersection(two).count) / Double(all)
    }
    func parts(_ fingerprint: DamageFingerprint) -> Set<String> {
      Set(fingerprint.states.map { "\($0.key)=\($0.value.rawValue)" }).union(fingerprint.states.keys)
    }
    // The damage weighs more than its environment.
    let sum =
      (app == other.app ? 2.0 : 0) + (verdict == other.verdict ? 2 : 0) + (model == other.model ? 1 : 0)
      + (sqlite == other.sqlite ? 1 : 0) + 2 * share(parts(self), parts(other))
      + 3 * share(Set(entities), Set(other.entities))
    return sum / 11
  }

  package func differences(from other: DamageFingerprint) -> [String] {
    [
      app == other.app ? nil : "app", verdict == other.verdict ? nil : "verdict",
      states == other.states ? nil : "pages", entities == other.entities ? nil : "entities",
      model == other.model ? nil : "model", sqlite == other.sqlite ? nil : "SQLite",
    ].compactMap(\.self)
  }
}

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

  private static func parts(_ text: String) -> [Substring] { text.split { !$0.isNumber && !$0.isLetter } }
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
