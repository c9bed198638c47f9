internal import ManagedObjectModel
internal import StoreFiles

/// The work in progress on a layout; each step is in an extension of its own.
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

  /// Tables and indexes share one space of names in SQLite.
  var schemaNames = NameAllocator(reserving: StoreLayout.bookkeepingTableNames)
  var triggerNames = NameAllocator()

  init(_ model: ManagedObjectModel) throws(PersistentStoreError) {
    self.model = model
    try checkNames()
    try numberEntities()
  }

  /// The entity's place; only asked for entities that have been numbered.
  func place(of name: String) -> EntityLayout? { entityIndexes[name].map { entities[$0] } }

  /// The names of the entity and its ancestors, itself first.
  func lineage(of name: String) -> [String] {
    var result: [String] = []
    var next = place(of: name)
    while let entity = next {
      result.append(entity.name)
      next = entity.parentName.flatMap(place(of:))
    }
    return result
  }

  /// The stored property of that name, nearest first among the entity and its ancestors.
  func property(_ name: String, of entityName: String) -> (key: PropertyKey, property: Property)? {
    var next = place(of: entityName)
    while let entity = next {
      if let property = model.entities[entity.name]?.properties[name] {
        return (PropertyKey(entityName: entity.name, name: name), property)
      }
      next = entity.parentName.flatMap(place(of:))
    }
    return nil
  }

  /// The stored relationship of the destination that leads back, where there is one.
  func inverse(of relationship: Relationship) -> (key: PropertyKey, relationship: Relationship)? {
    guard let name = relationship.inverseName,
      let found = property(name, of: relationship.destinationEntityName),
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
