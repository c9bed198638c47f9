internal import Platform
package import SupportBundle

/// The mark of a damage: equal damage in equal apps has the same.
///
/// It is made of the verdict, the states of pages in coarse shares, the damaged entities, the version of the model and of the
/// SQLite that wrote the store, and the app. ``group`` leaves out the app's version, so that a damage can be seen since one;
/// ``exact`` has it.
package struct DamageFingerprint: Sendable, Hashable, Codable {
  /// How many pages are in a state, as far as that tells one damage from another.
  package enum Share: String, Sendable, Hashable, Codable {
    case one

    /// Less than one in a hundred.
    case few

    /// Less than one in four.
    case some

    /// Less than three in four.
    case many

    /// Three in four, or more.
    case most

    /// The share of a number of pages in all of them.
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

  /// Twelve hexadecimal digits that equal damage shares, whatever the version of the app.
  package var group: String

  /// The same with the version of the app.
  package var exact: String

  /// The app.
  package var app: String?

  /// What was found, such as `damaged`.
  package var verdict: String

  /// The states of damaged pages with their shares, by state.
  package var states: [String: Share]

  /// The damaged entities, sorted; of very many, the first.
  package var entities: [String]

  /// The version of the model, or its checksum.
  package var model: String?

  /// The SQLite that wrote the store.
  package var sqlite: String?

  private static let usual: Set<String> = ["healthy", "overflow", "free", "special"]

  private static let maximumCount = 32
  private static let maximumLength = 200

  /// The fingerprint of what a bundle says; any text in it is bounded.
  package init(_ facts: BundleFacts) {
    func bounded(_ text: String) -> String { String(printable(text).prefix(Self.maximumLength)) }
    app = facts.app.map(bounded)
    verdict = bounded(facts.verdict)
    entities = Array(Set(facts.damagedTables.map(bounded)).sorted().prefix(Self.maximumCount))
    model = (facts.modelVersion ?? facts.modelChecksum).map(bounded)
    sqlite = facts.versions.storeWrittenBySQLite.map(bounded)
    // Numbers of a hostile bundle may be of any size.
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

  /// A hash of texts that no text can imitate by a separator of its own.
  private static func mark(_ parts: [String]) -> String {
    let text = parts.map { "\($0.utf8.count):\($0)" }.joined()
    return String(FileDigest(of: Array(text.utf8)).hexadecimal.prefix(12))
  }
}

extension DamageFingerprint {
  /// A mark that related damage shares.
  package struct Band: Sendable, Hashable {
    /// The mark.
    package var mark: Int64

    /// How much it tells that another fingerprint has it too.
    package var weight: Int64

    /// The weight of a mark that is made of all parts but one: above what all other marks weigh together.
    static let ofAllButOne: Int64 = 9
  }

  /// The seeds of the hashes whose least values stand for a set of entities.
  private static let seeds = 4

  /// The marks that related damage shares, in their order: an index finds it by them, and no fingerprint is compared with all others.
  ///
  /// There are two kinds. Most are made of the fingerprint without one of its parts, or without the two that change with a new
  /// version of app and system: who differs in that part alone has the same mark. The others are
  /// [MinHash](https://en.wikipedia.org/wiki/MinHash) values of the damaged entities, which sets that overlap are likely to share. They
  /// are kept in the records: a change of them is a new version of these.
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

  /// A number of texts that no text can imitate by a separator of its own.
  private static func number(_ parts: [String]) -> Int64 {
    let text = parts.map { "\($0.utf8.count):\($0)" }.joined()
    let digits = FileDigest(of: Array(text.utf8)).hexadecimal.utf8.prefix(16)
    let number = digits.reduce(UInt64(0)) { number, digit in
      number << 4 | UInt64(digit < 58 ? digit - 48 : digit - 87)
    }
    return Int64(bitPattern: number)
  }

  /// How much a fingerprint has in common with another, from 0 to 1; 1 for the same.
  package func likeness(to other: DamageFingerprint) -> Double {
    func share<Value: Hashable>(_ one: Set<Value>, _ two: Set<Value>) -> Double {
      let all = one.union(two).count
      return all == 0 ? 1 : Double(one.intersection(two).count) / Double(all)
    }
    func parts(_ fingerprint: DamageFingerprint) -> Set<String> {
      Set(fingerprint.states.map { "\($0.key)=\($0.value.rawValue)" }).union(fingerprint.states.keys)
    }
    // What the damage is counts more than in what it was found.
    let sum =
      (app == other.app ? 2.0 : 0) + (verdict == other.verdict ? 2 : 0) + (model == other.model ? 1 : 0)
      + (sqlite == other.sqlite ? 1 : 0) + 2 * share(parts(self), parts(other))
      + 3 * share(Set(entities), Set(other.entities))
    return sum / 11
  }

  /// The parts in which a fingerprint differs from another, by their names.
  package func differences(from other: DamageFingerprint) -> [String] {
    [
      app == other.app ? nil : "app", verdict == other.verdict ? nil : "verdict",
      states == other.states ? nil : "pages", entities == other.entities ? nil : "entities",
      model == other.model ? nil : "model", sqlite == other.sqlite ? nil : "SQLite",
    ].compactMap(\.self)
  }
}
