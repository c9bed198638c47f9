internal import ManagedObjectModel

extension LayoutBuilder {
  /// Builds the join tables of the many-to-many relationships (format section 3.6).
  ///
  /// The entities are walked in one flat list sorted by name without regard to case, each with its inherited properties,
  /// in the legacy order; the side that is reached first names the table.
  mutating func buildJoinTables() {
    var columnNames: [String: NameAllocator] = [:]
    var done: Set<PropertyKey> = []
    for name in NameOrder.withoutCase(entities.map(\.name)) {
      let pending = manyToManyProperties(of: name).filter { !done.contains($0.value.key) }
      guard !pending.isEmpty else { continue }
      let order = pending.count == 1 ? Array(pending.keys) : legacyOrder(of: name)
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
      let destinationOrder =
        side.relationship.isOrdered ? allocate("Z_FOK_\(other.number)\(upper)", for: other) : nil
      var source = allocate("Z_\(own.number)\(upperInverse)", for: own)
      // Only names that begin with a digit, which no model may have, can still meet here.
      while source == destination { source = allocate("Z_\(own.number)\(upperInverse)", for: own) }
      let sourceOrder =
        inverse.relationship.isOrdered ? allocate("Z_FOK_\(own.number)\(upperInverse)", for: own) : nil
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

  /// The many-to-many relationships of an entity, inherited ones included.
  private func manyToManyProperties(of entityName: String) -> [String: Side] {
    var result: [String: Side] = [:]
    for ancestor in lineage(of: entityName).reversed() {
      for (name, property) in model.entities[ancestor]?.properties ?? [:] {
        let key = PropertyKey(entityName: ancestor, name: name)
        if let relationship = property.relationship, isManyToMany(relationship, key: key) {
          result[name] = (key, relationship)
        } else {
          result[name] = nil
        }
      }
    }
    return result
  }

  /// The names of an entity's properties, inherited ones included, in the legacy order (format section 3.6.1).
  func legacyOrder(of entityName: String) -> [String] {
    var keys: Set<String> = ["_pk", "_ent", "_opt"]
    for ancestor in lineage(of: entityName) {
      for (name, property) in model.entities[ancestor]?.properties ?? [:] where !property.traits.isTransient {
        if case .fetchedProperty = property { continue }
        keys.insert(name)
        if case .toOne(let column, let entityColumn, _) = storages[PropertyKey(entityName: ancestor, name: name)] {
          keys.insert("_" + column)
          if let entityColumn { keys.insert("_" + entityColumn) }
        }
      }
    }
    return LegacyOrder.ordered(Array(keys))
  }
}
