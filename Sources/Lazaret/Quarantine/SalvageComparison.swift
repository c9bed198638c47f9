internal import ManagedObjectModel
package import Platform
internal import Salvage

/// The differences between two salvage results, and their causes.
package struct SalvageComparison: Sendable, Hashable, Codable {
  package struct Entity: Sendable, Hashable, Codable {
    /// The entity, or the table.
    package var name: String

    package var table: String

    /// Nil if the earlier result lacks the table.
    package var earlier: Receipt.Salvage.Entity?

    /// Nil if the later result lacks the table.
    package var later: Receipt.Salvage.Entity?
  }

  package var earlier: PathText

  var later: PathText

  /// The entities with different accounts, by table and name.
  package var entities: [Entity]

  /// The sources of only one result, a sentence each.
  package var evidence: [String]

  package var words: String

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
  /// The comparisons with the current result.
  package var comparisons: [SalvageComparison] {
    guard let result else { return [] }
    return (others ?? []).map { other in
      // Dates of one form sort as text.
      other.date <= result.date ? SalvageComparison(other, result) : SalvageComparison(result, other)
    }
  }
}

extension Receipt.Salvage.Result {
  /// Whether content and sources are equal, so that one result is redundant.
  func isSame(as other: Self) -> Bool {
    entities == other.entities && pairs == other.pairs && evidence == other.evidence && version == other.version
      && isUsable == other.isUsable && (setAside == nil) == (other.setAside == nil)
  }

  /// Whether this later result replaces an earlier one.
  ///
  /// A result that the app can open is better, unless it alone has no record. Otherwise the better one has more certain
  /// records of some entity and fewer of none, then more records, then more knowledge about losses. Better in one
  /// entity and worse in another is not better.
  ///
  /// - Parameter isUsable: whether the app can open the earlier one now.
  package func isBetter(than earlier: Self, whichIsUsable isUsable: Bool) -> Bool {
    let (hasAny, hadAny) = (entities.contains { $0.recovered > 0 }, earlier.entities.contains { $0.recovered > 0 })
    if hadAny, !hasAny { return false }
    if self.isUsable != isUsable { return self.isUsable }
    // Receipts are untrusted: an overflow must not crash.
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
  /// A kit shows the former records, a search for deleted records shows intended removals.
  fileprivate var knowledge: Int { (kit == nil ? 0 : 2) + (deleted ? 1 : 0) }
}

/// Two results' accounts of the same records.
struct SalvageAccountPair {
  /// The entity; the table if the results have different entities in it.
  let name: String

  let table: String

  let earlier: Receipt.Salvage.Entity?

  let later: Receipt.Salvage.Entity?

  /// Returns the accounts by table and entity.
  ///
  /// If the results name different entities in a hierarchy's table, as one without a model does, the table's sums are
  /// compared.
  static func all(_ earlier: [Receipt.Salvage.Entity], _ later: [Receipt.Salvage.Entity]) -> [SalvageAccountPair] {
    let before = Dictionary(grouping: earlier, by: \.table)
    let after = Dictionary(grouping: later, by: \.table)
    return Set(before.keys).union(after.keys).sorted().flatMap { table in
      pairs(of: table, before[table] ?? [], after[table] ?? [])
    }
  }

  /// Includes the pairs if both results have them.
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
      return [SalvageAccountPair(name: (after ?? before)?.name ?? table, table: table, earlier: before, later: after)]
    }
    return zip(earlier.ordered { $0.name < $1.name }, later.ordered { $0.name < $1.name }).map { before, after in
      SalvageAccountPair(name: after.name, table: table, earlier: before, later: after)
    }
  }

  private static func sum(of table: String, _ accounts: [Receipt.Salvage.Entity]) -> Receipt.Salvage.Entity? {
    guard accounts.count > 1 else { return accounts.first }
    // An overflow must not crash.
    func sum(_ number: (Receipt.Salvage.Entity) -> Int64) -> Int64 { accounts.reduce(0) { $0 &+ number($1) } }
    let taken = sum { $0.fromBackup ?? 0 }
    let apart = sum { $0.setAside ?? 0 }
    return Receipt.Salvage.Entity(
      name: table, table: table, recovered: sum(\.recovered), doubtful: sum(\.doubtful),
      fromBackup: taken == 0 ? nil : taken, setAside: apart == 0 ? nil : apart, lost: sum(\.lost),
      lostIsExact: accounts.allSatisfy(\.lostIsExact))
  }
}
