internal import ManagedObjectModel
internal import StoreFiles

extension LayoutBuilder {
  /// A to-many relationship without an inverse, seen from its destination.
  struct OneWayToMany {
    let key: PropertyKey
    let ownerNumber: Int
    let isOrdered: Bool
  }

  /// Builds the tables of the root entities and the storage of all properties but the many-to-many ones.
  mutating func buildTables() throws(PersistentStoreError) {
    for index in entities.indices where entities[index].isRoot {
      entities[index].tableName = schemaNames.allocate("Z" + entities[index].name.uppercased())
    }
    for index in entities.indices where !entities[index].isRoot {
      entities[index].tableName = place(of: entities[index].rootName)?.tableName ?? ""
    }
    let oneWay = try oneWayToManyRelationships()
    var first = 0
    while first < entities.count {
      let root = entities[first]
      var table = TableInProgress()
      for entity in entities[first..<root.lastDescendantNumber] {
        add(entity, oneWay: oneWay[entity.name] ?? [], to: &table)
      }
      tables.append(TableLayout(name: root.tableName, rootEntityName: root.name, columns: table.orderedColumns))
      first = root.lastDescendantNumber
    }
    storeToManyByInverse()
  }

  /// The to-many relationships without an inverse, by destination, in the order of their owners' numbers and names.
  ///
  /// A to-many relationship whose inverse does not lead back to it counts as one, because two join tables cannot share a
  /// side (unverified; Core Data refuses such models).
  private func oneWayToManyRelationships() throws(PersistentStoreError) -> [String: [OneWayToMany]] {
    var result: [String: [OneWayToMany]] = [:]
    for entity in entities {
      for property in sortedProperties(of: entity.name) {
        guard let relationship = property.relationship, !relationship.traits.isTransient else { continue }
        guard place(of: relationship.destinationEntityName) != nil else {
          throw unstorable(
            "the destination of \"\(printable(entity.name)).\(printable(relationship.name))\" is not in the model")
        }
        let key = PropertyKey(entityName: entity.name, name: relationship.name)
        guard relationship.isToMany, !isManyToMany(relationship, key: key) else { continue }
        if let inverse = inverse(of: relationship), !inverse.relationship.isToMany { continue }
        result[relationship.destinationEntityName, default: []].append(
          OneWayToMany(key: key, ownerNumber: entity.number, isOrdered: relationship.isOrdered))
      }
    }
    return result
  }

  /// Whether the relationship and its inverse are both to-many and each other's inverse.
  func isManyToMany(_ relationship: Relationship, key: PropertyKey) -> Bool {
    guard relationship.isToMany, !relationship.traits.isTransient, let inverse = inverse(of: relationship),
      inverse.relationship.isToMany, let back = self.inverse(of: inverse.relationship)
    else { return false }
    return back.key == key
  }

  /// The entity's own properties, sorted by name as columns are: by code unit (925 of 925 groups of columns in real stores).
  func sortedProperties(of entityName: String) -> [Property] {
    guard let properties = model.entities[entityName]?.properties else { return [] }
    return properties.keys.ordered(by: NameOrder.byCodeUnits).compactMap { properties[$0] }
  }

  /// Adds the columns of one entity's own properties to its table.
  private mutating func add(_ entity: EntityLayout, oneWay: [OneWayToMany], to table: inout TableInProgress) {
    let properties = sortedProperties(of: entity.name).filter { !$0.traits.isTransient }
    for property in inAllocationOrder(properties) {
      let key = PropertyKey(entityName: entity.name, name: property.name)
      switch property {
      case .attribute(let attribute):
        table.allocate(attribute, key: key)
      case .relationship(let relationship) where !relationship.isToMany:
        let destination = place(of: relationship.destinationEntityName)
        table.allocateToOne(
          key, destinationNumber: destination.flatMap { $0.hasSubentities ? $0.number : nil },
          isOrdered: inverse(of: relationship).map { $0.relationship.isToMany && $0.relationship.isOrdered } ?? false)
      case .relationship, .fetchedProperty: break
      }
    }
    for relationship in oneWay { table.allocateOwner(relationship) }
    let orderColumns = properties.contains { table.orderColumns[$0.name] != nil }
    table.finishEntity(
      named: entity.name, properties: properties, oneWay: oneWay,
      legacyOrder: orderColumns ? legacyOrder(of: entity.name, table: table) : [], storages: &storages)
    for relationship in oneWay {
      guard let owner = table.ownerColumn(of: relationship.key) else { continue }
      storages[relationship.key] = .toManyByColumn(
        table: entity.tableName, column: owner.column, orderColumn: owner.orderColumn)
    }
  }

  /// The order in which columns get their names: it matters only where two names of one entity are the same but for
  /// their case, and is the legacy order then (format section 3.6.1).
  private func inAllocationOrder(_ properties: [Property]) -> [Property] {
    guard Set(properties.map { $0.name.uppercased() }).count < properties.count else { return properties }
    let byName = Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let toOnes = properties.compactMap { $0.relationship }.filter { !$0.isToMany }
    let keys = ["_pk", "_ent", "_opt"] + byName.keys + toOnes.map { "_Z" + $0.name.uppercased() }
    return LegacyOrder.ordered(keys).compactMap { byName[$0] }
  }

  /// The properties of an entity, inherited ones included, in the legacy order, while its table is being built.
  private func legacyOrder(of entityName: String, table: TableInProgress) -> [String] {
    var keys: Set<String> = ["_pk", "_ent", "_opt"]
    for name in lineage(of: entityName) {
      for property in sortedProperties(of: name) where !property.traits.isTransient {
        if case .fetchedProperty = property { continue }
        keys.insert(property.name)
        let storage = storages[PropertyKey(entityName: name, name: property.name)]
        if case .toOne(let column, let entityColumn, _) = storage {
          keys.insert("_" + column)
          if let entityColumn { keys.insert("_" + entityColumn) }
        } else if let column = table.toOneColumns[property.name] {
          keys.insert("_" + column.column)
          if let entityColumn = column.entityColumn { keys.insert("_" + entityColumn) }
        }
      }
    }
    return LegacyOrder.ordered(Array(keys))
  }

  /// Notes where to-many relationships with a to-one inverse are: in the inverse's column.
  private mutating func storeToManyByInverse() {
    for entity in entities {
      for property in sortedProperties(of: entity.name) {
        guard let relationship = property.relationship, relationship.isToMany, !relationship.traits.isTransient,
          let inverse = inverse(of: relationship), !inverse.relationship.isToMany,
          case .toOne(let column, _, let orderColumn) = storages[inverse.key],
          let destination = place(of: inverse.key.entityName)
        else { continue }
        storages[PropertyKey(entityName: entity.name, name: relationship.name)] = .toManyByColumn(
          table: destination.tableName, column: column, orderColumn: orderColumn)
      }
    }
  }
}
