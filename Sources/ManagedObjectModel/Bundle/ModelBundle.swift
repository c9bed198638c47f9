public import Platform
public import SystemPackage

/// All versions of an app's model, oldest first.
public struct ModelBundle: Sendable {
  /// A version that cannot be read.
  public struct UnreadableVersion: Sendable {
    /// The version's name.
    public let name: String

    /// The reason.
    public let error: ModelError

    package init(name: String, error: ModelError) {
      self.name = name
      self.error = error
    }
  }

  /// The file's or folder's name without extension.
  public let name: String

  /// The source path.
  public let path: FilePath?

  /// The versions, oldest first: in the given order, else by natural order of names, which proves little; see `order`.
  public private(set) var versions: [ModelVersion]

  /// The versions missing from the given order: recognized, but never migrated through.
  public private(set) var unorderedVersions: [ModelVersion]

  /// The unreadable versions, never including the current one.
  public let unreadableVersions: [UnreadableVersion]

  /// The version that stores are created with and migrated to.
  public private(set) var current: ModelVersion

  /// The caller's current version; nil for the bundle's own.
  private var chosenName: String?

  /// The known order of versions.
  public private(set) var order: VersionOrder

  /// Creates a bundle; the first version marked current counts, else the last.
  ///
  /// Returns nil without versions.
  ///
  /// - Parameters:
  ///   - isOrdered: whether versions come oldest first; otherwise names decide.
  ///   - unordered: versions missing from the order.
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

  /// Sorts version names naturally: `V2` before `V10`.
  public static func namesInOrder(_ names: [String]) -> [String] { names.ordered(by: precedesNaturally) }

  /// Returns the version of a name.
  public func version(named name: String) -> ModelVersion? {
    versions.first { $0.name == name } ?? unorderedVersions.first { $0.name == name }
  }

  package func choosing(_ name: String) -> ModelBundle? {
    guard let chosen = version(named: name) else { return nil }
    var bundle = self
    bundle.versions = versions.map { $0.named(current: name) }
    bundle.unorderedVersions = unorderedVersions.map { $0.named(current: name) }
    bundle.current = chosen.named(current: name)
    bundle.chosenName = name
    return bundle
  }

  /// Returns the bundle with additional known pairs of order.
  public func knowing(_ pairs: [(before: String, after: String)]) -> ModelBundle {
    var bundle = self
    bundle.order = order.knowing(pairs)
    return bundle
  }

  /// Returns the versions not newer than the given one, which comes last.
  public func versions(upTo version: ModelVersion) -> [ModelVersion] {
    versions.filter { $0.name != version.name && !isNewer($0, than: version) } + [version]
  }

  /// Returns the versions after the given one, by known order or name.
  public func versions(after version: ModelVersion) -> [ModelVersion] {
    versions.filter { order.comes($0.name, after: version.name) }
  }

  /// Whether a version is missing from the given order and its relation to the current one is unknown.
  package func isUnlisted(_ version: ModelVersion) -> Bool {
    order.isGiven && unorderedVersions.contains { $0.name == version.name }
      && order.relation(version.name, to: current.name) == nil
  }

  /// Whether a store's version is newer by known order, never by name.
  ///
  /// A version missing from the given order is newer if it has additional parts; no version is newer than a chosen one.
  public func isNewer(_ version: ModelVersion, than other: ModelVersion) -> Bool {
    guard version.versionHashes != other.versionHashes, other.name != chosenName else { return false }
    if let known = order.relation(version.name, to: other.name) { return known == .after }
    return isUnlisted(version) && !version.model.surplus(over: [other.model]).isEmpty
  }
}

/// Compares names naturally: digits by value, ignoring case, spaces and punctuation.
///
/// Code units break ties, for a stable order.
package func precedesNaturally(_ first: String, _ second: String) -> Bool {
  let (left, right) = (naturalKey(first), naturalKey(second))
  return left == right ? precedesByCodeUnit(first, second) : left.lexicographicallyPrecedes(right)
}

/// Numbers precede letters, shorter ones longer ones.
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
  /// Returns the version that wrote a store.
  ///
  /// Version hashes exclude renaming identifiers, defaults and indexes, so versions can share them. Then the store's
  /// version identifiers decide, then its cached model.
  ///
  /// - Parameters:
  ///   - hashes: the store's version hashes.
  ///   - identifiers: its version identifiers, if known.
  ///   - cached: its model; ignored if its hashes differ.
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
    return fitting.first { $0.name == current.name }
      ?? fitting.last { !order.comes($0.name, after: current.name) } ?? fitting.last
  }
}

/// The distance in unhashed parts.
private struct ModelDistance: Comparable {
  /// Different renaming identifiers, which decide what a migration keeps.
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
  /// More merged versions than any real app has.
  private static let mergedLimit = 1000

  /// Merges models as an app does at launch, with a version per combination.
  ///
  /// Returns nil for no models or shared entity names. With too many combinations only current versions count.
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

  /// Returns the bundle with its versions in the given order.
  ///
  /// - Parameters:
  ///   - names: the versions, oldest first. Others are recognized, but never migrated through.
  ///   - target: the version to migrate to; by default the current one.
  /// - Throws: `model-version-order` for an unknown or repeated name or a missing target.
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

/// The known order of versions.
///
/// Names prove little: a draft, a branch or `Model Old` may sort after the current version. So only a caller, lock
/// file, mapping or stage establishes order; names only help to find versions between two others.
public struct VersionOrder: Sendable, Hashable {
  /// The relation of one version to another.
  public enum Relation: Sendable, Hashable {
    case before

    case after
  }

  private let given: [String: Int]?

  private let natural: [String: Int]

  /// The versions known to follow each version.
  private var later: [String: Set<String>] = [:]

  /// Creates an order.
  ///
  /// - Parameters:
  ///   - names: all versions.
  ///   - given: the ordered ones, oldest first; nil if only names exist.
  public init(names: [String], given: [String]? = nil) {
    natural = Self.places(names.ordered(by: precedesNaturally))
    self.given = given.map { Self.places($0) }
  }

  private static func places(_ names: [String]) -> [String: Int] {
    Dictionary(names.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// Whether a caller or lock file gave the order.
  public var isGiven: Bool { given != nil }

  /// Returns the order with additional pairs, unless they contradict it or each other.
  public func knowing(_ pairs: [(before: String, after: String)]) -> VersionOrder {
    var order = self
    for pair in pairs where pair.before != pair.after && natural[pair.before] != nil && natural[pair.after] != nil {
      guard relation(pair.before, to: pair.after) != .after else { continue }
      order.later[pair.before, default: []].insert(pair.after)
    }
    order.closeUp()
    return order
  }

  /// Computes the transitive closure; cycles get no relation.
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
    for (name, found) in closed { later[name] = found.filter { closed[$0]?.contains(name) != true && $0 != name } }
  }

  /// Returns the known relation of two versions; nil if only names exist.
  public func relation(_ name: String, to other: String) -> Relation? {
    if let given, let place = given[name], let otherPlace = given[other], place != otherPlace {
      return place < otherPlace ? .before : .after
    }
    if later[name]?.contains(other) == true { return .before }
    if later[other]?.contains(name) == true { return .after }
    return nil
  }

  /// Whether a version follows another by known order, else by name.
  public func comes(_ name: String, after other: String) -> Bool {
    if let known = relation(name, to: other) { return known == .after }
    // It has no place.
    guard given == nil else { return false }
    return (natural[name] ?? 0) > (natural[other] ?? 0)
  }

  /// Returns the versions between two others, oldest first; all before the later one if the earlier one is unknown.
  public func names(from earlier: String?, to later: String) -> [String] {
    let between = natural.keys.filter { name in
      guard name != earlier, name != later, comes(later, after: name), !comes(name, after: later) else { return false }
      return earlier.map { comes(name, after: $0) && !comes($0, after: name) } ?? true
    }
    return sorted(between)
  }

  /// Sorts names in this order, oldest first.
  public func sorted(_ names: [String]) -> [String] {
    if let given {
      return names.ordered { first, second in
        (given[first] ?? .max, natural[first] ?? 0) < (given[second] ?? .max, natural[second] ?? 0)
      }
    }
    // In natural order, after all known predecessors.
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
