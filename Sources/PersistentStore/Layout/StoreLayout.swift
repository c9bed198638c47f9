internal import Foundation
package import GRDB
public import ManagedObjectModel

/// Core Data's SQLite layout of a model: tables, columns, indexes, triggers and property storage (format sections 3.3
/// to 3.9).
///
/// Equal models give identical layouts. A store migrated in place by Core Data may have another order, so stores are
/// read by name.
public struct StoreLayout: Sendable {
  /// The model.
  public let model: ManagedObjectModel

  /// The entities by number, from 1.
  public let entities: [EntityLayout]

  /// The root entities' tables by number.
  public let tables: [TableLayout]

  /// The join tables in naming order.
  public let joinTables: [JoinTableLayout]

  /// The indexes except R-trees.
  public let indexes: [IndexLayout]

  /// The R-tree indexes.
  public let spatialIndexes: [SpatialIndexLayout]

  /// The triggers of R-tree indexes and derived attributes.
  public let triggers: [TriggerLayout]

  /// Deviations from Core Data's layout.
  public let notes: [LayoutNote]

  private let entityIndexes: [String: Int]
  private let tableIndexes: [String: Int]
  private let storages: [PropertyKey: PropertyStorage]

  /// Lays out a model.
  ///
  /// - Throws: `PersistentStoreError.unstorableModel` for circular inheritance, a stored relationship's missing
  ///   destination, or a name invalid in SQL.
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
    tableIndexes = Dictionary(builder.tables.enumerated().map { ($1.name, $0) }) { first, _ in first }
    storages = builder.storages
  }

  /// Returns an entity's layout.
  public func entity(named name: String) -> EntityLayout? { entityIndexes[name].map { entities[$0] } }

  /// Returns the entity with a number.
  public func entity(numbered number: Int) -> EntityLayout? {
    entities.indices.contains(number &- 1) ? entities[number &- 1] : nil
  }

  /// Returns a root entity's table; nil for other names.
  public func table(named name: String) -> TableLayout? { tableIndexes[name].map { tables[$0] } }

  /// Returns the table of an entity's records.
  public func table(of entityName: String) -> TableLayout? {
    entity(named: entityName).flatMap { table(named: $0.tableName) }
  }

  /// Returns a join table by name.
  public func joinTable(named name: String) -> JoinTableLayout? { joinTables.first { $0.name == name } }

  /// Returns the storage of an own or inherited property; nil for transient, fetched or unknown ones.
  public func storage(of property: String, in entityName: String) -> PropertyStorage? {
    var next: String? = entityName
    while let name = next, let entity = model.entities[name] {
      if let storage = storages[PropertyKey(entityName: name, name: property)] { return storage }
      if entity.properties[property] != nil { return nil }
      next = entity.parentName
    }
    return nil
  }

  /// Returns the storage of a property by its declaring entity.
  public func storage(of key: PropertyKey) -> PropertyStorage? { storages[key] }

  /// Returns the entity and its ancestors, root last.
  public func lineage(of entityName: String) -> [String] { model.lineage(of: entityName).map(\.name) }
}

extension StoreLayout {
  /// Returns a derived attribute's SQL over the record `o`, if supported; for times only if `isTimeWanted`.
  package func derivedValue(of attribute: Attribute, _ entity: EntityLayout, isTimeWanted: Bool = true) -> String? {
    guard attribute.filteringPredicate == nil, let text = attribute.derivationExpression else { return nil }
    switch DerivationExpression(text) {
    case .now?: return isTimeWanted ? "NSCoreDataNow()" : nil
    case .keyPath(let path)?: return pathValue(path, entity)
    case .function("lowercase", let path)?: return pathValue(path, entity).map { "LOWER(\($0))" }
    case .function("uppercase", let path)?: return pathValue(path, entity).map { "UPPER(\($0))" }
    case .function("count", let path)? where path.count == 1:
      switch storage(of: path[0], in: entity.name) {
      case .toManyByColumn(let table, let column, _), .toManyByJoinTable(let table, let column, _, _):
        return
          "(SELECT count(*) FROM main.\(SQLText.identifier(table)) AS p WHERE p.\(SQLText.identifier(column)) = o.Z_PK)"
      case nil, .attribute?, .toOne?: return nil
      }
    case .function("sum", let path)? where path.count == 2:
      guard case .toManyByColumn(let table, let key, _) = storage(of: path[0], in: entity.name),
        let target = destination(of: path[0], entity),
        case .attribute(let columns) = storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT ifnull(sum(p.\(column.sqlName)), 0) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.\(SQLText.identifier(key)) = o.Z_PK)"
    case .function?, nil: return nil
    }
  }

  private func pathValue(_ path: [String], _ entity: EntityLayout) -> String? {
    guard let first = path.first else { return nil }
    switch storage(of: first, in: entity.name) {
    case .attribute(let columns) where path.count == 1: return columns.first.map { "o.\($0.sqlName)" }
    case .toOne(let key, _, _) where path.count == 2:
      guard let target = destination(of: first, entity), let table = self.entity(named: target)?.tableName,
        case .attribute(let columns) = storage(of: path[1], in: target), let column = columns.first
      else { return nil }
      return "(SELECT p.\(column.sqlName) FROM main.\(SQLText.identifier(table)) AS p "
        + "WHERE p.Z_PK = o.\(SQLText.identifier(key)))"
    case nil, .attribute?, .toOne?, .toManyByColumn?, .toManyByJoinTable?: return nil
    }
  }

  private func destination(of relationship: String, _ entity: EntityLayout) -> String? {
    model.properties(of: entity.name)[relationship]?.property.relationship?.destinationEntityName
  }
}

extension StoreLayout {
  /// All table names, including R-tree indexes.
  package var tableNames: [String] {
    tables.map(\.name) + joinTables.map(\.name) + spatialIndexes.map(\.name) + Self.bookkeepingTableNames
  }

  /// Returns whether a trigger has Core Data's prefix (format section 3.9), so that a layout recreates it.
  package static func isOwnTrigger(_ name: String) -> Bool {
    ["Z_DA_", "Z_RT_", "ZT_", "ZQ_"].contains { name.hasPrefix($0) }
  }

  package func makeTables(on database: Database) throws {
    for table in tables { try database.execute(sql: table.statement) }
    for table in joinTables { try database.execute(sql: table.statement) }
    for statement in Self.bookkeepingStatements { try database.execute(sql: statement) }
  }

  package func makeSpatialIndexes(on database: Database) throws {
    for index in spatialIndexes { try make(index, on: database) }
  }

  package func make(_ index: SpatialIndexLayout, on database: Database) throws {
    // Remains of an unlisted one would collide.
    for name in ShadowTables.names(of: index.name, module: "rtree") {
      try database.execute(sql: "DROP TABLE IF EXISTS main.\(SQLText.quotedIdentifier(name))")
    }
    try database.execute(sql: index.statement)
    try database.execute(sql: fillingStatement(of: index))
  }

  package func makeTriggers(on database: Database) throws {
    for trigger in triggers { try database.execute(sql: trigger.statement) }
  }

  package static func notePrimaryKey(_ highest: Int64, of entity: EntityLayout, on database: Database) throws {
    try database.execute(
      sql: "INSERT INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, ?)",
      arguments: [entity.number, entity.name, entity.parentNumber, highest])
  }

  package func noteMetadata(_ metadata: StoreMetadata, on database: Database) throws {
    try noteMetadata(metadata, modelCache: try model.modelCache(), on: database)
  }

  /// Writes `Z_METADATA` and, if there is one, `Z_MODELCACHE`.
  func noteMetadata(_ metadata: StoreMetadata, modelCache: [UInt8]?, on database: Database) throws {
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
      arguments: [metadata.uuid, Data(try metadata.propertyListBytes())])
    guard let modelCache else { return }
    try database.execute(sql: "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [Data(modelCache)])
  }
}

extension StoreLayout {
  /// The statements for an empty store, in Core Data's order and wording.
  ///
  /// Each table is followed by the join tables its entities name; then come indexes, triggers and the three bookkeeping
  /// tables. Persistent history is not created.
  public var statements: [String] {
    let joinTables = Dictionary(grouping: joinTables) { entity(named: $0.relationship.entityName)?.rootName }
    return tables.flatMap { table in [table.statement] + (joinTables[table.rootEntityName] ?? []).map(\.statement) }
      + indexes.map(\.statement) + spatialIndexes.map(\.statement) + triggers.map(\.statement)
      + Self.bookkeepingStatements
  }

  /// The statements for the bookkeeping tables (format sections 3.2 to 3.4).
  package static let bookkeepingStatements = bookkeepingTables.map(\.statement)

  /// The bookkeeping tables' columns and keys; `Z_MODELCACHE` has no key.
  static let bookkeepingTables = [
    BookkeepingTable(
      name: "Z_PRIMARYKEY", key: "Z_ENT",
      columns: [("Z_NAME", "VARCHAR"), ("Z_SUPER", "INTEGER"), ("Z_MAX", "INTEGER")]),
    BookkeepingTable(name: "Z_METADATA", key: "Z_VERSION", columns: [("Z_UUID", "VARCHAR(255)"), ("Z_PLIST", "BLOB")]),
    BookkeepingTable(name: "Z_MODELCACHE", key: nil, columns: [("Z_CONTENT", "BLOB")]),
  ]

  struct BookkeepingTable: Sendable {
    let name: String

    let key: String?

    let columns: [(name: String, type: String)]

    var statement: String {
      let list = [key.map { "\($0) INTEGER PRIMARY KEY" }].compactMap(\.self) + columns.map { "\($0) \($1)" }
      return "CREATE TABLE \(name) (\(list.joined(separator: ", ")))"
    }
  }

  /// The tables in every Core Data store.
  public static let bookkeepingTableNames = bookkeepingTables.map(\.name)

  /// Returns a column's role; nil for join tables and unknown columns.
  public func role(ofColumn column: String, table: String) -> ColumnRole? {
    self.table(named: table)?.column(named: column)?.role
  }

  /// Returns the statement filling an empty spatial index in the schema `main`.
  func fillingStatement(of index: SpatialIndexLayout) -> String {
    let columns = index.columns.map(SQLText.identifier)
    let numbers = entity(named: index.entityName)?.numbers ?? 0...0
    let conditions =
      columns.map { "\($0) IS NOT NULL" } + ["Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound)"]
    return "INSERT INTO main.\(SQLText.identifier(index.name)) SELECT Z_PK, "
      + columns.flatMap { [$0, $0] }.joined(separator: ", ")
      + " FROM main.\(SQLText.identifier(index.tableName)) WHERE \(conditions.joined(separator: " AND "))"
  }
}

/// The location of a property's values.
public enum PropertyStorage: Sendable, Hashable {
  /// An attribute's column, or one per composite leaf.
  case attribute(columns: [ColumnLayout])

  /// A to-one relationship's columns in the entity's table.
  ///
  /// The entity column exists if the destination has sub-entities, the order column if the inverse is ordered.
  case toOne(column: String, entityColumn: String?, orderColumn: String?)

  /// A to-many relationship in a destination column holding the owner's primary key.
  ///
  /// The column is the to-one inverse's, or hidden without an inverse.
  case toManyByColumn(table: String, column: String, orderColumn: String?)

  /// A many-to-many relationship's join table, with the columns of own key, destination key and, if ordered,
  /// destination position.
  case toManyByJoinTable(table: String, ownColumn: String, destinationColumn: String, orderColumn: String?)
}

/// A deviation from Core Data's layout that is harmless to records.
public struct LayoutNote: Sendable, Hashable {
  /// A kind of deviation.
  public enum Kind: String, Sendable {
    /// A derived attribute without a trigger: its values are stale until Core Data opens the store.
    case derivedAttributeWithoutTrigger = "derived-attribute-without-trigger"

    /// A fetch index omitted because of an expression or a property without a column.
    case indexLeftOut = "index-left-out"

    /// A partial index over all rows, because its predicate is not expressible in SQL.
    case partialIndexMadeWhole = "partial-index-made-whole"

    /// A uniqueness constraint omitted because of a property without a column.
    case constraintLeftOut = "constraint-left-out"
  }

  /// The kind of deviation.
  public let kind: Kind

  /// The declaring entity.
  public let entityName: String

  /// The affected attribute, index or constraint.
  public let subject: String

  package init(kind: Kind, entityName: String, subject: String) {
    self.kind = kind
    self.entityName = entityName
    self.subject = subject
  }
}
