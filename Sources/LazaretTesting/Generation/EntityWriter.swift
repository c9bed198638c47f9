internal import Foundation
internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

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
    for name in properties.keys.sorted(by: precedesByCodeUnit) {
      guard let inherited = properties[name] else { continue }
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
        ([key.name] + path).joined(separator: ".")),
      isUnique: isUnique, isOptional: isOptional, isLeaf: !path.isEmpty)
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
      guard
        let target = reference.plan.target(number: member.entity.number, index: index, primaryKey: primaryKey)
      else { continue }
      row.values[reference.key] = target.key.databaseValue
      if let place = reference.entity { row.values[place] = target.number.databaseValue }
      if let place = reference.order { row.values[place] = target.order.databaseValue }
    }
    return row
  }
}
