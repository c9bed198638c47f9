/// How the pairs of a many-to-many relationship differ between two stores.
package struct PairComparison: Sendable, Hashable {
  /// The relationship: its name in a comparison.
  package var name: String

  /// The names of both its sides, such as `Port.ships` and `Ship.ports`; one where it is its own inverse.
  package var sides: [String]

  /// The number of pairs in the first store; nil where it has no such relationship, or counting took too long.
  package var first: Int64?

  /// The number of pairs in the second store; nil where it has no such relationship, or counting took too long.
  package var second: Int64?

  /// How many pairs differ in each way, those at another place of an order as changed; nil where comparing took too long, or
  /// one store has no such relationship.
  package var counts: [RecordDifference: Int64]?

  /// Whether the first store has such a relationship.
  package var isInFirst: Bool

  /// Whether the second store has such a relationship.
  package var isInSecond: Bool

  init(_ name: String, _ first: ManyToMany?, _ second: ManyToMany?) {
    self.name = name
    let shown = first ?? second
    let names = shown.map { [$0.first.name, $0.second.name] } ?? []
    sides = names.first == names.last ? Array(names.prefix(1)) : names
    isInFirst = first != nil
    isInSecond = second != nil
  }

  /// How many pairs differ in one way; where one store alone has the relationship all of them do.
  ///
  /// - Returns: nil where they were not compared.
  package func count(_ difference: RecordDifference) -> Int64? {
    if let counts { return counts[difference] ?? 0 }
    switch (isInFirst, isInSecond) {
    case (true, false): return difference == .missing ? first : 0
    case (false, true): return difference == .added ? second : 0
    case (true, true): return nil
    case (false, false): return 0
    }
  }
}
