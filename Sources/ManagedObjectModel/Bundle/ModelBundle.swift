public import Platform
public import SystemPackage

/// All versions of an app's model, oldest first.
public struct ModelBundle: Sendable {
  /// A version that is in the bundle and cannot be read.
  public struct UnreadableVersion: Sendable {
    /// The name of the version.
    public let name: String

    /// Why it cannot be read.
    public let error: ModelError

    /// A version that cannot be read.
    package init(name: String, error: ModelError) {
      self.name = name
      self.error = error
    }
  }

  /// The name of the bundle: that of its file or folder, without extension.
  public let name: String

  /// Where it was loaded from.
  public let path: FilePath?

  /// The versions, oldest first: in the order given by the caller or a lock file, else in natural order of their names
  /// (`V2` before `V10`), which says little; `order` tells what is known.
  public private(set) var versions: [ModelVersion]

  /// The versions of the folder that a given order leaves out: stores of them are recognized, and nothing leads through them.
  public private(set) var unorderedVersions: [ModelVersion]

  /// The versions that could not be read; the current one is never among them.
  public let unreadableVersions: [UnreadableVersion]

  /// The version that stores are created with and migrated to.
  public private(set) var current: ModelVersion

  /// The name of the version that the caller chose as the current one, whatever the order says; nil for the bundle's own.
  private var chosenName: String?

  /// What is known of the order of the versions.
  public private(set) var order: VersionOrder

  /// Puts a bundle together from versions that are read already; the first that is current counts, else the last.
  ///
  /// Returns nil for no versions at all.
  ///
  /// - Parameters:
  ///   - isOrdered: whether the versions come in the order in which they were made; else only their names tell.
  ///   - unordered: versions that the order leaves out.
  public init?(
    name: String, path: FilePath? = nil, versions: [ModelVersion], isOrdered: Bool = true,
    unordered: [ModelVersion] = [], unreadableVersions: [UnreadableVersion] = []
  ) {
    guard let current = versions.first(where: \.isCurrent) ?? versions.last else { return nil }
    self.name = name
    self.path = path
    self.versions = versions
    unorderedVersions = unordered
    self.unreadableVersions = unreadableVersions
    self.current = current
    let names = versions.map(\.name)
    order = VersionOrder(names: names + unordered.map(\.name), given: isOrdered ? names : nil)
  }

  /// Names of versions in the order in which people count: `V2` before `V10`.
  public static func namesInOrder(_ names: [String]) -> [String] { names.ordered(by: precedesNaturally) }

  /// The version of that name.
  public func version(named name: String) -> ModelVersion? {
    versions.first { $0.name == name } ?? unorderedVersions.first { $0.name == name }
  }

  /// The same bundle with another version as the current one; nil where it has none of that name that can be read.
  package func choosing(_ name: String) -> ModelBundle? {
    guard let chosen = version(named: name) else { return nil }
    var bundle = self
    bundle.versions = versions.map { $0.named(current: name) }
    bundle.unorderedVersions = unorderedVersions.map { $0.named(current: name) }
    bundle.current = chosen.named(current: name)
    bundle.chosenName = name
    return bundle
  }

  /// The same bundle, with pairs of versions of which the first is known to have come before the second.
  public func knowing(_ pairs: [(before: String, after: String)]) -> ModelBundle {
    var bundle = self
    bundle.order = order.knowing(pairs)
    return bundle
  }

  /// The versions that are not newer than one of them, that one last.
  public func versions(upTo version: ModelVersion) -> [ModelVersion] {
    versions.filter { $0.name != version.name && !isNewer($0, than: version) } + [version]
  }

  /// The versions that come after one of them, by what is known or by their names.
  public func versions(after version: ModelVersion) -> [ModelVersion] {
    versions.filter { order.comes($0.name, after: version.name) }
  }

  /// Whether the order that was given leaves a version out, and nothing else tells how it stands to the current one.
  package func isUnlisted(_ version: ModelVersion) -> Bool {
    order.isGiven && unorderedVersions.contains { $0.name == version.name }
      && order.relation(version.name, to: current.name) == nil
  }

  /// Whether a store of one version is newer than another version: by what is known of the order, and never by its name.
  ///
  /// A version that the given order leaves out counts as newer where it has what the other lacks; and none is newer than one
  /// that was chosen.
  public func isNewer(_ version: ModelVersion, than other: ModelVersion) -> Bool {
    guard version.versionHashes != other.versionHashes, other.name != chosenName else { return false }
    if let known = order.relation(version.name, to: other.name) { return known == .after }
    return isUnlisted(version) && !version.model.surplus(over: [other.model]).isEmpty
  }
}

/// Names in the order in which people count: runs of digits by their value, letters without regard to case, and spaces and
/// punctuation not at all.
///
/// Equal names in that sense are ordered by their code units, so that the order is always the same.
package func precedesNaturally(_ first: String, _ second: String) -> Bool {
  let (left, right) = (naturalKey(first), naturalKey(second))
  return left == right ? precedesByCodeUnit(first, second) : left.lexicographicallyPrecedes(right)
}

/// A piece of a name; numbers come before letters, and shorter ones before longer ones.
private enum NaturalPiece: Comparable {
  case number(length: Int, digits: String)
  case letter(UInt16)
}

private func naturalKey(_ name: String) -> [NaturalPiece] {
  var pieces: [NaturalPiece] = []
  var rest = Array(name.lowercased().utf16)[...]
  let isDigit = { (unit: UInt16) in (0x30...0x39).contains(unit) }
  while let unit = rest.first {
    if isDigit(unit) {
      let digits = String(decoding: rest.prefix(while: isDigit).drop { $0 == 0x30 }, as: UTF16.self)
      pieces.append(.number(length: digits.utf8.count, digits: digits))
      rest = rest.drop(while: isDigit)
    } else {
      if unit > 0x7F || (0x61...0x7A).contains(unit) { pieces.append(.letter(unit)) }
      rest = rest.dropFirst()
    }
  }
  return pieces
}

extension ModelBundle {
  /// The version that a store was written with.
  ///
  /// Version hashes say nothing of renaming identifiers, defaults and indexes, so that several versions can have the same.
  /// Then the identifiers that the store notes decide, and after them the model that it carries.
  ///
  /// - Parameters:
  ///   - hashes: the version hashes in the store's metadata.
  ///   - identifiers: the version identifiers there; nil where they are not known.
  ///   - cached: the model that the store carries; one of other hashes counts for nothing.
  public func version(
    matching hashes: [String: VersionHash], identifiers: [String]? = nil, cached: ManagedObjectModel? = nil
  ) -> ModelVersion? {
    var fitting = (versions + unorderedVersions).filter { $0.versionHashes == hashes }
    guard fitting.count > 1 else { return fitting.first }
    if let identifiers {
      let same = fitting.filter { Set($0.model.versionIdentifiers) == Set(identifiers) }
      if !same.isEmpty { fitting = same }
    }
    if fitting.count > 1, let cached, cached.versionHashes() == hashes {
      let distances = fitting.map { ModelDistance(from: cached, to: $0.model) }
      if let least = distances.min() { fitting = zip(fitting, distances).filter { $1 == least }.map(\.0) }
    }
    // What is left does not differ in anything that the store tells.
    return fitting.first { $0.name == current.name }
      ?? fitting.last { !order.comes($0.name, after: current.name) } ?? fitting.last
  }
}

/// How far two models of the same version hashes are from each other in what is not hashed.
private struct ModelDistance: Comparable {
  /// The renaming identifiers that differ; they decide what a migration keeps.
  private var identifiers = 0

  private var others = 0

  init(from first: ManagedObjectModel, to second: ManagedObjectModel) {
    for (name, one) in first.entities {
      guard let other = second.entities[name] else { continue }
      if one.renamingIdentifier != other.renamingIdentifier { identifiers += 1 }
      if one.className != other.className { others += 1 }
      if one.fetchIndexes != other.fetchIndexes { others += 1 }
      for (key, property) in one.properties {
        guard let counterpart = other.properties[key] else { continue }
        compare(property, counterpart)
      }
    }
  }

  private mutating func compare(_ one: Property, _ other: Property) {
    if one.traits.renamingIdentifier != other.traits.renamingIdentifier { identifiers += 1 }
    if one.traits.isIndexed != other.traits.isIndexed { others += 1 }
    if one.attribute?.defaultValue != other.attribute?.defaultValue { others += 1 }
    if one.attribute?.valueTransformerName != other.attribute?.valueTransformerName { others += 1 }
    if one.relationship?.deleteRule != other.relationship?.deleteRule { others += 1 }
  }

  static func < (first: ModelDistance, second: ModelDistance) -> Bool {
    (first.identifiers, first.others) < (second.identifiers, second.others)
  }
}

extension ModelBundle {
  /// More versions of merged models than any app has had.
  private static let mergedLimit = 1000

  /// Several models as one with the entities of all, as an app merges them when it starts: a version for each choice of theirs.
  ///
  /// Returns nil for none, for models that have an entity of the same name, and where there are too many choices; then only the
  /// current versions count.
  package static func merging(_ bundles: [ModelBundle]) -> ModelBundle? {
    let count = bundles.reduce(1) { min(mergedLimit + 1, $0 * max(1, $1.versions.count)) }
    var choices: [[ModelVersion]] = [[]]
    for bundle in bundles {
      let versions = count > mergedLimit ? [bundle.current] : bundle.versions
      choices = choices.flatMap { chosen in versions.map { chosen + [$0] } }
    }
    let versions = choices.compactMap { chosen -> ModelVersion? in
      let entities = chosen.flatMap { Array($0.model.entities.values) }
      guard Set(entities.map(\.name)).count == entities.count else { return nil }
      return ModelVersion(
        name: chosen.map(\.name).joined(separator: " + "),
        model: ManagedObjectModel(
          entities: entities, versionIdentifiers: chosen.flatMap(\.model.versionIdentifiers),
          fetchRequests: chosen.reduce(into: [:]) { $0.merge($1.model.fetchRequests) { first, _ in first } }),
        isCurrent: chosen.map(\.name) == bundles.map(\.current.name))
    }
    guard versions.contains(where: \.isCurrent) else { return nil }
    return ModelBundle(
      name: bundles.map(\.name).joined(separator: " + "), versions: versions, isOrdered: false,
      unreadableVersions: bundles.flatMap(\.unreadableVersions))
  }

  /// The same bundle with its versions in the order in which they were made.
  ///
  /// - Parameters:
  ///   - names: the versions, oldest first. The versions that it leaves out are still recognized in stores, and nothing leads
  ///     through them.
  ///   - target: the version that a migration leads to; the current one if not given.
  /// - Throws: `model-version-order` for a name that the bundle lacks or that is there twice, or without the target.
  public func ordered(_ names: [String], to target: String? = nil) throws(ModelError) -> ModelBundle {
    let all = versions + unorderedVersions
    let known = Set(all.map(\.name)).union(unreadableVersions.map(\.name))
    func refuse(_ detail: String, hint: String? = nil) -> ModelError {
      ModelError(.versionOrder, path: path, detail: detail, hint: hint)
    }
    if let unknown = names.first(where: { !known.contains($0) }) {
      throw refuse("the order names version \"\(printable(unknown))\", which is not in the bundle")
    }
    guard Set(names).count == names.count else { throw refuse("the order names a version twice") }
    guard names.contains(target ?? current.name) else {
      throw refuse(
        target.map { "the order leaves out version \"\(printable($0))\", which is to be led to" }
          ?? "the order leaves out the current version, \"\(printable(current.name))\"",
        hint: "Name that version too, where it belongs in the order.")
    }
    let ordered = names.compactMap { name in all.first { $0.name == name } }
    guard
      let bundle = ModelBundle(
        name: name, path: path, versions: ordered, isOrdered: true,
        unordered: all.filter { !names.contains($0.name) }, unreadableVersions: unreadableVersions)
    else { throw refuse("the order names no version that can be read") }
    return bundle
  }
}

/// What is known of the order in which a bundle's versions came about.
///
/// Names tell little: a draft, a branch or `Model Old` may sort after the current version. So an order is only known where
/// a caller or a lock file gave it, or a mapping or a stage leads from one version to another; names count where nothing
/// else tells, and then only for finding versions between two others.
public struct VersionOrder: Sendable, Hashable {
  /// How one version stands to another.
  public enum Relation: Sendable, Hashable {
    /// It came before the other.
    case before

    /// It came after the other.
    case after
  }

  /// The place of each version in the order that was given; nil where none was given.
  private let given: [String: Int]?

  /// The place of each version in the natural order of names.
  private let natural: [String: Int]

  /// What is known to have come after a version, near or far.
  private var later: [String: Set<String>] = [:]

  /// The order of versions.
  ///
  /// - Parameters:
  ///   - names: the names of all versions.
  ///   - given: the names of those whose order is known, oldest first; nil where nothing but the names tells.
  public init(names: [String], given: [String]? = nil) {
    natural = Self.places(names.ordered(by: precedesNaturally))
    self.given = given.map { Self.places($0) }
  }

  private static func places(_ names: [String]) -> [String: Int] {
    Dictionary(names.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether a caller or a lock file gave the order.
  public var isGiven: Bool { given != nil }

  /// The same order, with pairs of versions of which the first is known to have come before the second.
  ///
  /// Pairs that contradict the order that was given, or each other, tell nothing.
  public func knowing(_ pairs: [(before: String, after: String)]) -> VersionOrder {
    var order = self
    for pair in pairs where pair.before != pair.after && natural[pair.before] != nil && natural[pair.after] != nil {
      guard relation(pair.before, to: pair.after) != .after else { continue }
      order.later[pair.before, default: []].insert(pair.after)
    }
    order.closeUp()
    return order
  }

  /// Lets everything that comes after a later version come after the earlier one too; versions in a circle know nothing of
  /// each other.
  private mutating func closeUp() {
    let direct = later
    for name in direct.keys {
      var waiting = Array(direct[name] ?? [])
      var found: Set<String> = []
      while let next = waiting.popLast() {
        guard found.insert(next).inserted else { continue }
        waiting += direct[next] ?? []
      }
      later[name] = found
    }
    let closed = later
    for (name, found) in closed {
      later[name] = found.filter { closed[$0]?.contains(name) != true && $0 != name }
    }
  }

  /// How a version is known to stand to another; nil where only their names tell.
  public func relation(_ name: String, to other: String) -> Relation? {
    if let given, let place = given[name], let otherPlace = given[other], place != otherPlace {
      return place < otherPlace ? .before : .after
    }
    if later[name]?.contains(other) == true { return .before }
    if later[other]?.contains(name) == true { return .after }
    return nil
  }

  /// Whether a version comes after another by what is known, or where nothing is, by its name.
  public func comes(_ name: String, after other: String) -> Bool {
    if let known = relation(name, to: other) { return known == .after }
    // A version that the given order leaves out has no place in it.
    guard given == nil else { return false }
    return (natural[name] ?? 0) > (natural[other] ?? 0)
  }

  /// The versions between two others, oldest first; those before the later one where the earlier one is none of the bundle.
  ///
  /// A version that comes after the later one is never among them.
  public func names(from earlier: String?, to later: String) -> [String] {
    let between = natural.keys.filter { name in
      guard name != earlier, name != later, comes(later, after: name), !comes(name, after: later) else { return false }
      return earlier.map { comes(name, after: $0) && !comes($0, after: name) } ?? true
    }
    return sorted(between)
  }

  /// Names in this order, oldest first.
  public func sorted(_ names: [String]) -> [String] {
    if let given {
      return names.ordered { first, second in
        (given[first] ?? .max, natural[first] ?? 0) < (given[second] ?? .max, natural[second] ?? 0)
      }
    }
    // By name, but each only once everything that is known to come before it has come.
    var waiting = names.ordered { (natural[$0] ?? 0) < (natural[$1] ?? 0) }
    guard !later.isEmpty else { return waiting }
    var result: [String] = []
    while !waiting.isEmpty {
      let place =
        waiting.firstIndex { name in !waiting.contains { $0 != name && later[$0]?.contains(name) == true } } ?? 0
      result.append(waiting.remove(at: place))
    }
    return result
  }
}
