internal import PersistentStore

struct JoinPlan: Sendable {
  /// A row; order values are unique for each primary key.
  struct Pair {
    let source: Int64
    let destination: Int64
    var sourceOrder: Int64 { Self.order(source) }
    var destinationOrder: Int64 { Self.order(destination) }
    var reversed: Pair { Pair(source: destination, destination: source) }

    private static func order(_ key: Int64) -> Int64 {
      Int64(bitPattern: UInt64(bitPattern: key) &* 2_654_435_761 & 0x7FFF_FFFF)
    }
  }

  let table: JoinTableLayout
  private let own: RecordPool
  private let other: RecordPool
  private let least: Int
  private let most: (own: Int?, other: Int?)
  private let isMandatory: Bool
  private let numbers: SeededNumbers
  private let profile: StoreProfile

  init?(_ table: JoinTableLayout, _ plan: GenerationPlan) {
    let model = plan.layout.model
    guard
      let relationship = model.entities[table.relationship.entityName]?.properties[table.relationship.name]?
        .relationship,
      let inverse = model.entities[table.inverse.entityName]?.properties[table.inverse.name]?.relationship
    else { return nil }
    self.table = table
    own = plan.pool(of: table.relationship.entityName, and: inverse.destinationEntityName)
    other = plan.pool(of: table.inverse.entityName, and: relationship.destinationEntityName)
    least = max(relationship.leastDestinations, inverse.leastDestinations)
    most = (relationship.mostDestinations, inverse.mostDestinations)
    isMandatory = least > 0
    numbers = SeededNumbers(seed: plan.seed, "join", table.relationship.description)
    profile = plan.profile
  }

  /// Calls a closure for every pair, possibly twice.
  func forEachPair(_ body: (Pair) throws -> Void) throws {
    guard own.total > 0, other.total > 0, isMandatory || profile != .sparse else { return }
    func emit(_ position: Int, _ place: Int) throws {
      guard let source = own.record(at: position), let destination = other.record(at: place) else { return }
      if table.isReflexive {
        guard source.key != destination.key else { return }
        let pair = Pair(source: source.key, destination: destination.key)
        try body(pair)
        try body(pair.reversed)
      } else {
        try body(Pair(source: source.key, destination: destination.key))
      }
    }
    // All get the minimum; then some get more.
    if isMandatory || most.own != nil || most.other != nil {
      for round in 0..<max(1, least).clamped(to: 1...other.total) {
        for step in 0..<max(own.total, other.total) {
          let (position, place) = (step % own.total, (step + round + (table.isReflexive ? 1 : 0)) % other.total)
          guard round + step / own.total < most.own ?? .max, round + step / other.total < most.other ?? .max else {
            continue
          }
          try emit(position, place)
        }
      }
    }
    guard most.own == nil, most.other == nil else { return }
    for position in 0..<own.total {
      let count = profile == .uniform ? min(2, other.total) : numbers.number(position, below: 4)
      for place in 0..<count {
        try emit(
          position,
          profile == .uniform ? place : numbers.number(position &* 5 &+ place &+ 1, below: other.total))
      }
    }
  }
}
