import StoreFiles

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
