internal import ManagedObjectModel
import Platform

struct LayoutBuilder {
  let model: ManagedObjectModel
  var entities: [EntityLayout] = []
  var entityIndexes: [String: Int] = [:]
  var tables: [TableLayout] = []
  var joinTables: [JoinTableLayout] = []
  var indexes: [IndexLayout] = []
  var spatialIndexes: [SpatialIndexLayout] = []
  var triggers: [TriggerLayout] = []
  var notes: [LayoutNote] = []
  var storages: [PropertyKey: PropertyStorage] = [:]

  /// Tables and indexes share a namespace in SQLite.
  var schemaNames = NameAllocator(reserving: StoreLayout.bookkeepingTableNames)
  var triggerNames = NameAllocator()

  init(_ model: ManagedObjectModel) throws(PersistentStoreError) {
    self.model = model
    try checkNames()
    try numberEntities()
  }

  func place(of name: String) -> EntityLayout? { entityIndexes[name].map { entities[$0] } }

  /// Searches the entity, then its ancestors.
  func property(_ name: String, of entityName: String) -> (key: PropertyKey, property: Property)? {
    var next: String? = entityName
    while let current = next, let entity = model.entities[current] {
      if let property = entity.properties[name] { return (PropertyKey(entityName: current, name: name), property) }
      next = entity.parentName
    }
    return nil
  }

  func inverse(of relationship: Relationship) -> (key: PropertyKey, relationship: Relationship)? {
    guard let name = relationship.inverseName, let found = property(name, of: relationship.destinationEntityName),
      let inverse = found.property.relationship, !inverse.traits.isTransient
    else { return nil }
    return (found.key, inverse)
  }

  func note(_ kind: LayoutNote.Kind, _ entityName: String, _ subject: String) -> LayoutNote {
    LayoutNote(kind: kind, entityName: entityName, subject: subject)
  }

  func unstorable(_ detail: String) -> PersistentStoreError {
    PersistentStoreError(.unstorableModel, operation: "lay out the model", detail: detail)
  }
}

extension LayoutBuilder {
  func checkNames() throws(PersistentStoreError) {
    func check(_ name: String) throws(PersistentStoreError) {
      if name.utf8.contains(0) { throw unstorable("the name \"\(printable(name))\" contains a zero byte") }
      if name.utf8.count > 10_000 { throw unstorable("a name is longer than 10,000 bytes") }
    }
    for (name, entity) in model.entities {
      try check(name)
      guard name == entity.name else { throw unstorable("an entity is listed under a name that is not its own") }
      for (name, property) in entity.properties {
        try check(name)
        guard name == property.name else { throw unstorable("a property is listed under a name that is not its own") }
        var elements = property.attribute?.compositeElements ?? []
        while let element = elements.popLast() {
          try check(element.name)
          elements += element.compositeElements
        }
      }
      for index in entity.fetchIndexes { try check(index.name) }
    }
  }

  /// Real hierarchies are far shallower.
  static let maximumDepth = 256

  /// Numbers entities depth-first, siblings by case-insensitive name (format section 3.3).
  mutating func numberEntities() throws(PersistentStoreError) {
    var children: [String: [String]] = [:]
    var roots: [String] = []
    for entity in model.entities.values {
      if let parent = entity.parentName {
        guard model.entities[parent] != nil else {
          throw unstorable("the parent of entity \"\(printable(entity.name))\" is not in the model")
        }
        children[parent, default: []].append(entity.name)
      } else {
        roots.append(entity.name)
      }
    }
    var waiting = NameOrder.withoutCase(roots).reversed().map { (name: $0, depth: 1) }
    while let (name, depth) = waiting.popLast() {
      guard depth <= Self.maximumDepth else {
        throw unstorable("entities inherit from each other more than \(Self.maximumDepth) times over")
      }
      let parentName = model.entities[name]?.parentName
      let parent = parentName.flatMap(place(of:))
      let number = entities.count + 1
      entityIndexes[name] = entities.count
      entities.append(
        EntityLayout(
          name: name, number: number, parentName: parentName, parentNumber: parent?.number ?? 0,
          rootName: parent?.rootName ?? name, lastDescendantNumber: number, tableName: ""))
      if let names = children[name] { waiting += NameOrder.withoutCase(names).reversed().map { ($0, depth + 1) } }
    }
    guard entities.count == model.entities.count else {
      throw unstorable("entities inherit from each other in a circle")
    }
    for entity in entities.reversed() where !entity.isRoot {
      let parent = entity.parentNumber - 1
      let last = entities[entity.number - 1].lastDescendantNumber
      entities[parent].lastDescendantNumber = max(entities[parent].lastDescendantNumber, last)
    }
  }
}

extension LayoutBuilder {
  /// Builds join tables (format section 3.6).
  ///
  /// Entities are visited by case-insensitive name, each with inherited properties in legacy order; the first side
  /// visited names the table.
  mutating func buildJoinTables() {
    var columnNames: [String: NameAllocator] = [:]
    var done: Set<PropertyKey> = []
    for name in NameOrder.withoutCase(entities.map(\.name)) {
      let pending = manyToManyProperties(of: name).filter { !done.contains($0.value.key) }
      guard !pending.isEmpty else { continue }
      let order = pending.count == 1 ? Array(pending.keys) : legacyOrder(of: name, TableInProgress())
      for propertyName in order {
        guard let found = pending[propertyName], !done.contains(found.key),
          let inverse = inverse(of: found.relationship)
        else { continue }
        done.insert(found.key)
        done.insert(inverse.key)
        addJoinTable(found, inverse, columnNames: &columnNames)
      }
    }
  }

  private typealias Side = (key: PropertyKey, relationship: Relationship)

  private mutating func addJoinTable(_ side: Side, _ inverse: Side, columnNames: inout [String: NameAllocator]) {
    guard let own = place(of: side.key.entityName), let other = place(of: inverse.key.entityName) else { return }
    let upper = side.key.name.uppercased()
    let upperInverse = inverse.key.name.uppercased()
    func allocate(_ name: String, for entity: EntityLayout) -> String {
      columnNames[entity.name, default: NameAllocator()].allocate(name)
    }
    let layout: JoinTableLayout
    if side.key == inverse.key {
      let column = allocate("Z_\(own.number)\(upper)", for: own)
      layout = JoinTableLayout(
        name: schemaNames.allocate("Z_\(own.number)\(upper)"), relationship: side.key, inverse: side.key,
        sourceColumn: column, destinationColumn: "REFLEXIVE",
        sourceOrderColumn: side.relationship.isOrdered ? "Z_FOK_\(own.number)\(upper)" : nil,
        destinationOrderColumn: side.relationship.isOrdered ? "FOK_REFLEXIVE" : nil)
    } else {
      let destination = allocate("Z_\(other.number)\(upper)", for: other)
      let destinationOrder = side.relationship.isOrdered ? allocate("Z_FOK_\(other.number)\(upper)", for: other) : nil
      var source = allocate("Z_\(own.number)\(upperInverse)", for: own)
      // Only names starting with a digit, invalid in models, still collide here.
      while source == destination { source = allocate("Z_\(own.number)\(upperInverse)", for: own) }
      let sourceOrder = inverse.relationship.isOrdered ? allocate("Z_FOK_\(own.number)\(upperInverse)", for: own) : nil
      layout = JoinTableLayout(
        name: schemaNames.allocate("Z_\(own.number)\(upper)"), relationship: side.key, inverse: inverse.key,
        sourceColumn: source, destinationColumn: destination, sourceOrderColumn: sourceOrder,
        destinationOrderColumn: destinationOrder)
    }
    joinTables.append(layout)
    storages[side.key] = .toManyByJoinTable(
      table: layout.name, ownColumn: layout.sourceColumn, destinationColumn: layout.destinationColumn,
      orderColumn: layout.destinationOrderColumn)
    guard !layout.isReflexive else { return }
    storages[inverse.key] = .toManyByJoinTable(
      table: layout.name, ownColumn: layout.destinationColumn, destinationColumn: layout.sourceColumn,
      orderColumn: layout.sourceOrderColumn)
  }

  private func manyToManyProperties(of entityName: String) -> [String: Side] {
    var result: [String: Side] = [:]
    for ancestor in model.lineage(of: entityName).reversed() {
      for (name, property) in ancestor.properties {
        let key = PropertyKey(entityName: ancestor.name, name: name)
        if let relationship = property.relationship, isManyToMany(relationship, key: key) {
          result[name] = (key, relationship)
        } else {
          result[name] = nil
        }
      }
    }
    return result
  }
}

extension LayoutBuilder {
  struct OneWayToMany {
    let key: PropertyKey
    let ownerNumber: Int
    let isOrdered: Bool
  }

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

  /// Returns to-many relationships without an inverse by destination, in order of owner number and name.
  ///
  /// One whose inverse leads elsewhere counts too: two join tables cannot share a side (unverified; Core Data rejects
  /// such models).
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

  func isManyToMany(_ relationship: Relationship, key: PropertyKey) -> Bool {
    guard relationship.isToMany, !relationship.traits.isTransient, let inverse = inverse(of: relationship),
      inverse.relationship.isToMany, let back = self.inverse(of: inverse.relationship)
    else { return false }
    return back.key == key
  }

  /// Returns own properties by code unit, as columns are sorted (925 of 925 column groups in real stores).
  func sortedProperties(of entityName: String) -> [Property] {
    guard let properties = model.entities[entityName]?.properties else { return [] }
    return properties.keys.ordered(by: NameOrder.byCodeUnits).compactMap { properties[$0] }
  }

  private mutating func add(_ entity: EntityLayout, oneWay: [OneWayToMany], to table: inout TableInProgress) {
    let properties = sortedProperties(of: entity.name).filter { !$0.traits.isTransient }
    for property in inAllocationOrder(properties) {
      let key = PropertyKey(entityName: entity.name, name: property.name)
      switch property {
      case .attribute(let attribute): table.allocate(attribute, key: key)
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
    table.groupColumns(
      of: entity.name, properties: properties, oneWay: oneWay,
      legacyOrder: orderColumns ? legacyOrder(of: entity.name, table) : [], storages: &storages)
    for relationship in oneWay {
      guard let owner = table.ownerColumn(of: relationship.key) else { continue }
      storages[relationship.key] = .toManyByColumn(
        table: entity.tableName, column: owner.column, orderColumn: owner.orderColumn)
    }
  }

  /// Returns the naming order: for names differing only in case within one entity, it is the legacy order (format
  /// section 3.6.1).
  private func inAllocationOrder(_ properties: [Property]) -> [Property] {
    guard Set(properties.map { $0.name.uppercased() }).count < properties.count else { return properties }
    let byName = Dictionary(properties.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let toOnes = properties.compactMap { $0.relationship }.filter { !$0.isToMany }
    let keys = ["_pk", "_ent", "_opt"] + byName.keys + toOnes.map { "_Z" + $0.name.uppercased() }
    return LegacyOrder.ordered(keys).compactMap { byName[$0] }
  }

  /// Returns own and inherited property names in legacy order (format section 3.6.1).
  ///
  /// - Parameter table: has the columns of an entity that is not stored yet.
  private func legacyOrder(of entityName: String, _ table: TableInProgress) -> [String] {
    var keys: Set<String> = ["_pk", "_ent", "_opt"]
    for ancestor in model.lineage(of: entityName) {
      for (name, property) in ancestor.properties where property.isStored {
        keys.insert(name)
        var columns = table.toOneColumns[name]
        if case .toOne(let column, let entityColumn, _) = storages[PropertyKey(entityName: ancestor.name, name: name)] {
          columns = (column, entityColumn)
        }
        keys.formUnion([columns?.column, columns?.entityColumn].compactMap(\.self).map { "_" + $0 })
      }
    }
    return LegacyOrder.ordered(Array(keys))
  }

  /// Stores to-many relationships in their to-one inverse's column.
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
