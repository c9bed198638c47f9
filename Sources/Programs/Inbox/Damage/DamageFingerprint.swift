internal import StoreFiles
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
