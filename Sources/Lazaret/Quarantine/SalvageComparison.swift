internal import ManagedObjectModel
package import Platform
internal import Salvage

/// How two results of salvaging one quarantined store differ, and by what.
package struct SalvageComparison: Sendable, Hashable, Codable {
  /// The account of an entity in the earlier result and in the later one.
  package struct Entity: Sendable, Hashable, Codable {
    /// The name of the entity, else of the table.
    package var name: String

    /// The table.
    package var table: String

    /// What the earlier result has; nil where it does not know the table.
    package var earlier: Receipt.Salvage.Entity?

    /// What the later result has; nil where it does not know the table.
    package var later: Receipt.Salvage.Entity?
  }

  /// The earlier result: its store.
  package var earlier: PathText

  /// The later result: its store.
  package var later: PathText

  /// The entities whose accounts differ, by table and name.
  package var entities: [Entity]

  /// What only one of them stands on, a sentence each; empty where both stand on the same.
  package var evidence: [String]

  /// Both of them, and how they differ, in sentences.
  package var words: String

  /// Compares two results.
  package init(_ earlier: Receipt.Salvage.Result, _ later: Receipt.Salvage.Result) {
    self.earlier = earlier.name
    self.later = later.name
    entities = SalvageAccountPair.all(earlier, later).compactMap { pair in
      guard pair.earlier != pair.later else { return nil }
      return Entity(name: pair.name, table: pair.table, earlier: pair.earlier, later: pair.later)
    }
    evidence = Self.differences(earlier.evidence, later.evidence)
    var sentences: [String] = []
    if entities.isEmpty {
      sentences.append("The salvage of \(printable(earlier.date)) recovered the same: \(Self.counts(later)).")
    } else {
      sentences.append("The salvage of \(printable(earlier.date)): \(Self.counts(earlier)).")
      sentences.append("The salvage of \(printable(later.date)): \(Self.counts(later)).")
    }
    sentences += evidence
    if evidence.isEmpty { sentences.append("Both stand on the same evidence.") }
    words = sentences.joined(separator: " ")
  }

  private static func counts(_ result: Receipt.Salvage.Result) -> String {
    let inexact = result.entities.filter { !$0.lostIsExact }
    let about = inexact.isEmpty ? "" : inexact.allSatisfy { $0.lost == 0 } ? "at least " : "about "
    func sum(_ number: (Receipt.Salvage.Entity) -> Int64) -> Int64 { result.entities.reduce(0) { $0 &+ number($1) } }
    return "\(grouped(sum(\.recovered))) recovered, \(grouped(sum(\.doubtful))) of them doubtful, "
      + "\(about)\(grouped(sum(\.lost))) lost"
  }

  private static func differences(
    _ earlier: Receipt.Salvage.Evidence?, _ later: Receipt.Salvage.Evidence?
  ) -> [String] {
    guard let earlier, let later else { return ["What one of them stands on is not known."] }
    var sentences = fileDifferences(earlier, later)
    func add(_ what: String, _ before: String?, _ after: String?) {
      guard before != after else { return }
      if let before { sentences.append("Only the earlier one used the \(what) \(printable(before)).") }
      if let after { sentences.append("Only the later one used the \(what) \(printable(after)).") }
    }
    add("recovery kit", earlier.kit, later.kit)
    add("backup", earlier.backup, later.backup)
    if earlier.deleted != later.deleted {
      sentences.append("Only the \(later.deleted ? "later" : "earlier") one looked for deleted records.")
    }
    if earlier.library != later.library {
      sentences.append(
        "Lazaret \(printable(earlier.library)) made the earlier one, \(printable(later.library)) the later one.")
    }
    return sentences
  }

  /// Whether both read the same bytes of the quarantined store, in a sentence where they did not, or nothing tells.
  private static func fileDifferences(
    _ earlier: Receipt.Salvage.Evidence, _ later: Receipt.Salvage.Evidence
  ) -> [String] {
    guard let before = earlier.digest, let after = later.digest else {
      return ["Whether the quarantined files were the same is not known."]
    }
    guard before != after else {
      return EvidenceCheck.words(later.changes ?? []).map {
        ["For both the files were no longer what was quarantined: \($0)."]
      } ?? []
    }
    func words(_ name: String, _ evidence: Receipt.Salvage.Evidence) -> String? {
      EvidenceCheck.words(evidence.changes ?? []).map {
        "For the \(name) one they were no longer what was quarantined: \($0)."
      }
    }
    return ["The quarantined files were changed between the two."]
      + [words("earlier", earlier), words("later", later)].compactMap(\.self)
  }
}

extension Receipt.Salvage {
  /// How the result of each other salvage and the current one differ, in the order of the others.
  package var comparisons: [SalvageComparison] {
    guard let result else { return [] }
    return (others ?? []).map { other in
      // Dates of one form, so that their text has their order.
      other.date <= result.date ? SalvageComparison(other, result) : SalvageComparison(result, other)
    }
  }
}

extension Receipt.Salvage.Result {
  /// Whether another result says and stands on the same, so that one of the two is enough.
  package func isSame(as other: Self) -> Bool {
    entities == other.entities && pairs == other.pairs && evidence == other.evidence && version == other.version
      && isUsable == other.isUsable && (setAside == nil) == (other.setAside == nil)
  }

  /// Whether this result, which was made later, takes the place of an earlier one.
  ///
  /// One that the app can open is better than one that it cannot, unless it has no record and the other one has. Of two
  /// alike, the one is better that has more certain records of some entity and of none fewer; then the one that has more
  /// records. Of two that have the same records the one is better that knows more about what is missing. What is better in
  /// one entity and worse in another is not better.
  ///
  /// - Parameter isUsable: whether the app can open the earlier one as it is now.
  package func isBetter(than earlier: Self, whichIsUsable isUsable: Bool) -> Bool {
    let (hasAny, hadAny) = (entities.contains { $0.recovered > 0 }, earlier.entities.contains { $0.recovered > 0 })
    if hadAny, !hasAny { return false }
    if self.isUsable != isUsable { return self.isUsable }
    // Receipts are not to be trusted: no sum of theirs may stop the run.
    let pairs = SalvageAccountPair.all(earlier, self)
    for count in [{ $0.recovered &- $0.doubtful }, { $0.recovered }] as [(Receipt.Salvage.Entity) -> Int64] {
      let numbers = pairs.map { (before: $0.earlier.map(count) ?? 0, after: $0.later.map(count) ?? 0) }
      if numbers.contains(where: { $0.after < $0.before }) { return false }
      if numbers.contains(where: { $0.after > $0.before }) { return true }
    }
    guard isUsable, let ours = evidence, let theirs = earlier.evidence else { return true }
    if ours.knowledge != theirs.knowledge { return ours.knowledge > theirs.knowledge }
    return isSame(as: earlier) || ours.library != theirs.library
  }
}

extension Receipt.Salvage.Evidence {
  /// How much it tells of what is missing: a kit says what there was, a search for deleted records what was meant to go.
  fileprivate var knowledge: Int { (kit == nil ? 0 : 2) + (deleted ? 1 : 0) }
}

/// The accounts that two results of salvaging one quarantined store have of the same records.
struct SalvageAccountPair {
  /// The name of the entity; that of the table where the results have other entities in it.
  let name: String

  let table: String

  /// What the earlier result has; nil where it does not know the table.
  let earlier: Receipt.Salvage.Entity?

  /// What the later result has; nil where it does not know the table.
  let later: Receipt.Salvage.Entity?

  /// The accounts of two results by table and entity, in that order.
  ///
  /// Several entities share the table of their hierarchy. Where the results name others in a table, as one does that was made
  /// without a model, the sums of the table are compared.
  static func all(
    _ earlier: [Receipt.Salvage.Entity], _ later: [Receipt.Salvage.Entity]
  ) -> [SalvageAccountPair] {
    let before = Dictionary(grouping: earlier, by: \.table)
    let after = Dictionary(grouping: later, by: \.table)
    return Set(before.keys).union(after.keys).sorted().flatMap { table in
      pairs(of: table, before[table] ?? [], after[table] ?? [])
    }
  }

  /// The accounts of two results, those of the pairs of relationships among them where both have these.
  static func all(_ earlier: Receipt.Salvage.Result, _ later: Receipt.Salvage.Result) -> [SalvageAccountPair] {
    guard let before = earlier.pairs, let after = later.pairs else { return all(earlier.entities, later.entities) }
    return all(earlier.entities + before, later.entities + after)
  }

  private static func pairs(
    of table: String, _ earlier: [Receipt.Salvage.Entity], _ later: [Receipt.Salvage.Entity]
  ) -> [SalvageAccountPair] {
    let names = Set(earlier.map(\.name))
    guard names == Set(later.map(\.name)), names.count == earlier.count, names.count == later.count else {
      let (before, after) = (sum(of: table, earlier), sum(of: table, later))
      return [
        SalvageAccountPair(name: (after ?? before)?.name ?? table, table: table, earlier: before, later: after)
      ]
    }
    return zip(earlier.ordered { $0.name < $1.name }, later.ordered { $0.name < $1.name }).map { before, after in
      SalvageAccountPair(name: after.name, table: table, earlier: before, later: after)
    }
  }

  /// The accounts of a table as one; nil for none.
  private static func sum(of table: String, _ accounts: [Receipt.Salvage.Entity]) -> Receipt.Salvage.Entity? {
    guard accounts.count > 1 else { return accounts.first }
    // Receipts are not to be trusted: no sum of theirs may stop the run.
    func sum(_ number: (Receipt.Salvage.Entity) -> Int64) -> Int64 { accounts.reduce(0) { $0 &+ number($1) } }
    let taken = sum { $0.fromBackup ?? 0 }
    let apart = sum { $0.setAside ?? 0 }
    return Receipt.Salvage.Entity(
      name: table, table: table, recovered: sum(\.recovered), doubtful: sum(\.doubtful),
      fromBackup: taken == 0 ? nil : taken, setAside: apart == 0 ? nil : apart, lost: sum(\.lost),
      lostIsExact: accounts.allSatisfy(\.lostIsExact))
  }
}
