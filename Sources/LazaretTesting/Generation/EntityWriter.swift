internal import Foundation
internal import GRDB

struct EntityWriter {
  struct Row {
    var values: [DatabaseValue]
    var files: [(name: String, bytes: [UInt8])]
  }

  private struct Reference {
    let plan: ReferencePlan
    let key: Int
    let entity: Int?
    let order: Int?
  }

  let sql: String

  private let member: RecordPool.Member
  private let width: Int
  private let attributes: [(place: Int, values: AttributeValues)]
  private let references: [Reference]
  private let saves: SeededNumbers

  init(_ member: RecordPool.Member, _ table: TableLayout, _ plan: GenerationPlan) {
    self.member = member
    let layout = plan.layout
    let entity = member.entity
    var columns = ["Z_PK", "Z_ENT", "Z_OPT"]
    var attributes: [(place: Int, values: AttributeValues)] = []
    var references: [Reference] = []
    func place(_ column: String) -> Int {
      columns.append(column)
      return columns.count - 1
    }
    let unique = plan.uniqueAttributes(inHierarchyOf: entity.rootName)
    let properties = layout.model.properties(of: entity.name)
    for (name, inherited) in properties.inCodeUnitOrder() {
      let key = PropertyKey(entityName: inherited.declaringEntityName, name: name)
      switch layout.storage(of: name, in: entity.name) {
      case .attribute(let stored):
        guard let attribute = inherited.property.attribute, !attribute.isDerived else { continue }
        for column in stored {
          guard let values = Self.values(attribute, column, key, isUnique: unique.contains(key), entity, plan) else {
            continue
          }
          attributes.append((place(column.name), values))
        }
      case .toOne(let column, let entityColumn, let orderColumn):
        guard let relationship = inherited.property.relationship else { continue }
        references.append(
          Reference(
            plan: ReferencePlan(key, relationship, plan), key: place(column), entity: entityColumn.map(place),
            order: orderColumn.map(place)))
      case .toManyByColumn, .toManyByJoinTable, nil: continue
      }
    }
    for column in table.columns {
      // The hidden columns of to-many relationships without an inverse.
      guard case .owner(let key) = column.role,
        let relationship = layout.model.entities[key.entityName]?.properties[key.name]?.relationship,
        layout.entity(named: relationship.destinationEntityName)?.numbers.contains(entity.number) == true
      else { continue }
      let order = table.columns.first { $0.role == .ownerOrder(key) }?.name
      references.append(
        Reference(
          plan: ReferencePlan(owners: key, relationship, plan), key: place(column.name), entity: nil,
          order: order.map(place)))
    }
    self.attributes = attributes
    self.references = references
    width = columns.count
    saves = SeededNumbers(seed: plan.seed, "saves", entity.name)
    sql =
      "INSERT INTO \(SQLText.identifier(table.name)) (\(columns.map(SQLText.identifier).joined(separator: ", "))) "
      + "VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))"
  }

  private static func values(
    _ attribute: Attribute, _ column: ColumnLayout, _ key: PropertyKey, isUnique: Bool, _ entity: EntityLayout,
    _ plan: GenerationPlan
  ) -> AttributeValues? {
    var leaf = attribute
    var isOptional = attribute.traits.isOptional
    var path: [String] = []
    if case .compositeLeaf(_, let names, _) = column.role {
      for name in names {
        guard let next = leaf.compositeElements.first(where: { $0.name == name }) else { return nil }
        leaf = next
        isOptional = isOptional || next.traits.isOptional
      }
      path = names
    }
    return AttributeValues(
      leaf, profile: plan.profile,
      numbers: SeededNumbers(
        seed: plan.seed, "value", plan.profile == .uniform ? key.entityName : entity.name,
        ([key.name] + path).joined(separator: ".")), isUnique: isUnique, isOptional: isOptional, isLeaf: !path.isEmpty)
  }

  func row(_ index: Int) -> Row {
    let primaryKey = member.primaryKey(index)
    var row = Row(values: [DatabaseValue](repeating: .null, count: width), files: [])
    row.values[0] = primaryKey.databaseValue
    row.values[1] = member.entity.number.databaseValue
    row.values[2] = (1 + saves.number(index, below: 5)).databaseValue
    for (place, values) in attributes {
      switch values.value(index, primaryKey: primaryKey) {
      case .stored(let value): row.values[place] = value
      case .external(let name, let bytes):
        row.values[place] = Data([2] + Array(name.utf8) + [0]).databaseValue
        row.files.append((name, bytes))
      }
    }
    for reference in references {
      guard let target = reference.plan.target(number: member.entity.number, index: index, primaryKey: primaryKey)
      else { continue }
      row.values[reference.key] = target.key.databaseValue
      if let place = reference.entity { row.values[place] = target.number.databaseValue }
      if let place = reference.order { row.values[place] = target.order.databaseValue }
    }
    return row
  }
}

/// The destinations of a column: a to-one relationship, or the hidden one of a to-many without an inverse.
struct ReferencePlan: Sendable {
  struct Target {
    let number: Int
    let key: Int64

    /// The position among the records with this destination; unique for each primary key.
    let order: Int64
  }

  private enum Kind {
    /// At most one source for each destination; positions differ by a shift.
    case oneToOne(shift: Int)

    case pairs

    /// Any number of sources within the other side's limits.
    case manyToOne(least: Int, most: Int?)
  }

  private let kind: Kind
  private let own: RecordPool
  private let other: RecordPool
  private let isOptional: Bool
  private let isMandatoryEitherSide: Bool
  private let numbers: SeededNumbers
  private let profile: StoreProfile

  init(_ key: PropertyKey, _ relationship: Relationship, _ plan: GenerationPlan) {
    profile = plan.profile
    let inverse = plan.layout.mutualInverse(of: relationship, key)
    isOptional = relationship.leastDestinations == 0
    isMandatoryEitherSide = !isOptional || (inverse?.relationship.leastDestinations ?? 0) > 0
    if let inverse, !inverse.relationship.isToMany {
      own = plan.pool(of: key.entityName, and: inverse.relationship.destinationEntityName)
      other = plan.pool(of: relationship.destinationEntityName, and: inverse.key.entityName)
      // Both sides draw the same numbers.
      let isFirst = key.description <= inverse.key.description
      numbers = SeededNumbers(seed: plan.seed, "pair", isFirst ? key.description : inverse.key.description)
      if inverse.key == key {
        kind = .pairs
      } else {
        let shift = own.total == other.total && own.total > 0 ? 1 : 0
        kind = .oneToOne(shift: isFirst ? shift : -shift)
      }
    } else {
      own = plan.pool(of: key.entityName)
      other = plan.pool(of: relationship.destinationEntityName, and: inverse?.key.entityName)
      numbers = SeededNumbers(seed: plan.seed, "to-one", key.description)
      kind = .manyToOne(
        least: inverse?.relationship.leastDestinations ?? 0, most: inverse?.relationship.mostDestinations)
    }
  }

  /// Plans the owners in a to-many relationship without an inverse.
  init(owners key: PropertyKey, _ relationship: Relationship, _ plan: GenerationPlan) {
    profile = plan.profile
    own = plan.pool(of: relationship.destinationEntityName)
    other = plan.pool(of: key.entityName)
    isOptional = true
    isMandatoryEitherSide = relationship.leastDestinations > 0
    numbers = SeededNumbers(seed: plan.seed, "owner", key.description)
    kind = .manyToOne(least: relationship.leastDestinations, most: relationship.mostDestinations)
  }

  var isIncomplete: Bool {
    guard !isOptional, own.total > 0 else { return false }
    switch kind {
    case .oneToOne: return other.total < own.total
    case .pairs: return own.total % 2 == 1
    case .manyToOne(_, let most): return other.total == 0 || most.map { other.total * $0 < own.total } ?? false
    }
  }

  func target(number: Int, index: Int, primaryKey: Int64) -> Target? {
    guard let position = own.position(number: number, index: index), other.total > 0,
      let place = place(position), let found = other.record(at: place)
    else { return nil }
    return Target(
      number: found.number, key: found.key,
      order: Int64(bitPattern: UInt64(bitPattern: primaryKey) &* 2_654_435_761 & 0x7FFF_FFFF))
  }

  private func place(_ position: Int) -> Int? {
    switch kind {
    case .pairs:
      let partner = position ^ 1
      guard partner < own.total, isConnected(position & ~1) else { return nil }
      return partner
    case .oneToOne(let shift):
      guard max(own.total, other.total) > 0 else { return nil }
      let total = other.total
      let place = shift == 0 ? position : (position + shift + total) % total
      // Both sides ask about the one whose key comes first.
      guard place < total, isConnected(shift < 0 ? place : position) else { return nil }
      return place
    case .manyToOne(let least, let most):
      if position / other.total < least { return position % other.total }
      if isOptional {
        switch profile {
        case .sparse, .empty: return nil
        case .typical, .edge: if numbers.number(position, below: 4) == 0 { return nil }
        case .uniform: break
        }
      }
      if let most { return position / other.total < most || !isOptional ? position % other.total : nil }
      if profile == .uniform { return 0 }
      // Some destinations are popular.
      let isPopular = numbers.number(~position, below: 3) == 0
      return numbers.number(position &+ 1, below: isPopular ? max(1, other.total / 10) : other.total)
    }
  }

  private func isConnected(_ position: Int) -> Bool {
    if isMandatoryEitherSide || profile == .uniform { return true }
    return profile == .sparse ? false : numbers.number(position, below: 4) != 0
  }
}

/// Stateless random numbers from a seed and a name, by index (SplitMix64).
struct SeededNumbers: Sendable {
  private let base: UInt64

  init(seed: UInt64, _ names: String...) {
    // FNV-1a over the names, each terminated by a byte that text lacks.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for name in names {
      for byte in Array(name.utf8) + [0xFF] { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
    }
    base = (hash &+ seed.mixed).mixed
  }

  subscript(index: Int) -> UInt64 { (base &+ UInt64(bitPattern: Int64(index)) &* SeededGenerator.step).mixed }

  /// Returns 0 if the limit is not positive.
  func number(_ index: Int, below limit: Int) -> Int { limit > 0 ? Int(self[index] % UInt64(limit)) : 0 }

  func fraction(_ index: Int) -> Double { Double(self[index] >> 11) / 9_007_199_254_740_992 }

  func bytes(_ index: Int, count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count + 8)
    var state = self[index]
    while result.count < count {
      state = (state &+ SeededGenerator.step).mixed
      for shift in 0..<8 { result.append(UInt8(truncatingIfNeeded: state >> UInt64(8 * shift))) }
    }
    result.removeLast(result.count - count)
    return result
  }
}
