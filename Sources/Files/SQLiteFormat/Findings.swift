/// The findings of one piece of work: all are counted, and the first ones kept.
///
/// A hostile file can hold a flaw per byte; memory stays bounded because only ``limit`` findings are stored.
public struct Findings: Sendable {
  /// How many findings are kept at most.
  public let limit: Int

  /// The findings that were kept, in the order they were met.
  public private(set) var items: [Finding] = []

  /// How many findings there were of each kind, kept or not.
  public private(set) var counts: [Finding.Kind: Int] = [:]

  /// An empty list that keeps up to `limit` findings.
  public init(limit: Int = 1000) {
    self.limit = max(0, limit)
  }

  /// How many findings there were, kept or not.
  public var total: Int { counts.values.reduce(0, &+) }

  /// Whether nothing at all was found.
  public var isEmpty: Bool { counts.isEmpty }

  /// Whether any finding means that content is damaged, and is not just worth knowing.
  public var hasDamage: Bool { counts.keys.contains { $0.severity == .damage } }

  /// How many findings of damage there were of each kind, kept or not.
  package var damage: [Finding.Kind: Int] { counts.filter { $0.key.severity == .damage } }

  /// Whether a finding of this kind was met.
  public func contains(_ kind: Finding.Kind) -> Bool { counts[kind] != nil }

  /// How many findings of this kind were met.
  public func count(of kind: Finding.Kind) -> Int { counts[kind] ?? 0 }

  /// Adds a finding.
  public mutating func append(_ finding: Finding) {
    counts[finding.kind, default: 0] &+= 1
    if items.count < limit { items.append(finding) }
  }

  /// Adds all findings of another list; what that one had only counted is counted.
  public mutating func append(contentsOf other: Findings) {
    for (kind, count) in other.counts { counts[kind, default: 0] &+= count }
    items.append(contentsOf: other.items.prefix(max(0, limit - items.count)))
  }

  mutating func note(
    _ kind: Finding.Kind, page: UInt32? = nil, cell: Int? = nil, root: UInt32? = nil, expected: Int64? = nil,
    found: Int64? = nil
  ) {
    append(Finding(kind, page: page, cell: cell, root: root, expected: expected, found: found))
  }
}
