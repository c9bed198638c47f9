public import ManagedObjectModel

/// Core Data's layout of a model in SQLite: which tables, columns, indexes and triggers a store of that model has, and
/// which property is where (format sections 3.3 to 3.9).
///
/// The same model gives the same layout, down to the letter. A store that Core Data migrated in place has the same
/// tables and columns in another order, so stores are read by name.
public struct StoreLayout: Sendable {
  /// The model that is laid out.
  public let model: ManagedObjectModel

  /// The entities in the order of their numbers; the first has number 1.
  public let entities: [EntityLayout]

  /// The tables of the root entities, in the order of their numbers.
  public let tables: [TableLayout]

  /// The join tables in the order in which they are named.
  public let joinTables: [JoinTableLayout]

  /// The indexes of tables and join tables, R-trees left out.
  public let indexes: [IndexLayout]

  /// The R-tree indexes.
  public let spatialIndexes: [SpatialIndexLayout]

  /// The triggers of R-tree indexes and derived attributes.
  public let triggers: [TriggerLayout]

  /// What could not be made as Core Data would make it.
  public let notes: [LayoutNote]

  private let entityIndexes: [String: Int]
  private let tableIndexes: [String: Int]
  private let storages: [PropertyKey: PropertyStorage]

  /// Lays out a model.
  ///
  /// - Throws: `PersistentStoreError.unstorableModel` where entities inherit from each other in a circle, a stored
  ///   relationship leads to an entity that is not there, or a name cannot be written in SQL.
  public init(_ model: ManagedObjectModel) throws(PersistentStoreError) {
    var builder = try LayoutBuilder(model)
    try builder.buildTables()
    builder.buildJoinTables()
    builder.buildIndexes()
    builder.buildDerivedAttributeTriggers()
    self.model = model
    entities = builder.entities
    tables = builder.tables
    joinTables = builder.joinTables
    indexes = builder.indexes
    spatialIndexes = builder.spatialIndexes
    triggers = builder.triggers
    notes = builder.notes
    entityIndexes = builder.entityIndexes
    tableIndexes = Dictionary(
      builder.tables.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { first, _ in first })
    storages = builder.storages
  }

  /// The place of an entity.
  public func entity(named name: String) -> EntityLayout? { entityIndexes[name].map { entities[$0] } }

  /// The entity of that number.
  public func entity(numbered number: Int) -> EntityLayout? {
    entities.indices.contains(number &- 1) ? entities[number &- 1] : nil
  }

  /// The table of a root entity; nil for the names of join tables and others.
  public func table(named name: String) -> TableLayout? { tableIndexes[name].map { tables[$0] } }

  /// The table that an entity's records are in.
  public func table(of entityName: String) -> TableLayout? {
    entity(named: entityName).flatMap { table(named: $0.tableName) }
  }

  /// The join table of that name.
  public func joinTable(named name: String) -> JoinTableLayout? { joinTables.first { $0.name == name } }

  /// Where a property of an entity is stored, whether the entity declares it itself or inherits it.
  ///
  /// Nil for transient and fetched properties, and for names that the entity does not have.
  public func storage(of property: String, in entityName: String) -> PropertyStorage? {
    var next = entity(named: entityName)
    while let entity = next {
      if let storage = storages[PropertyKey(entityName: entity.name, name: property)] { return storage }
      if model.entities[entity.name]?.properties[property] != nil { return nil }
      next = entity.parentName.flatMap { self.entity(named: $0) }
    }
    return nil
  }

  /// Where a property is stored, by the entity that declares it.
  public func storage(of key: PropertyKey) -> PropertyStorage? { storages[key] }

  /// The names of an entity and its ancestors, itself first, root last.
  public func lineage(of entityName: String) -> [String] {
    var result: [String] = []
    var next = entity(named: entityName)
    while let entity = next {
      result.append(entity.name)
      next = entity.parentName.flatMap { self.entity(named: $0) }
    }
    return result
  }
}
