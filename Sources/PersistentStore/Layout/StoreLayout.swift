internal import Foundation
package import GRDB
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

extension StoreLayout {
  /// The value of a derived attribute, as SQL over the record `o` of an entity.
  ///
  /// Nil for expressions that are not known, for those with a predicate, and unless `isTimeWanted` for times.
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

/// The steps in which a store is made from its layout while it is filled; everything is in the schema `main`.
extension StoreLayout {
  /// The names of everything that is the layout's own among the store's tables, R-tree indexes included.
  package var tableNames: [String] {
    tables.map(\.name) + joinTables.map(\.name) + spatialIndexes.map(\.name) + Self.bookkeepingTableNames
  }

  /// Whether a trigger is Core Data's by the beginning of its name (format section 3.9), so that a layout makes it anew.
  package static func isOwnTrigger(_ name: String) -> Bool {
    ["Z_DA_", "Z_RT_", "ZT_", "ZQ_"].contains { name.hasPrefix($0) }
  }

  /// Makes all tables, still without indexes and triggers.
  package func makeTables(on database: Database) throws {
    for table in tables { try database.execute(sql: table.statement) }
    for table in joinTables { try database.execute(sql: table.statement) }
    for statement in Self.bookkeepingStatements { try database.execute(sql: statement) }
  }

  /// Makes the R-tree indexes, and fills them from the rows that are in their tables.
  package func makeSpatialIndexes(on database: Database) throws {
    for index in spatialIndexes { try make(index, on: database) }
  }

  /// Makes an R-tree index that is not there, and fills it from the rows of its table.
  package func make(_ index: SpatialIndexLayout, on database: Database) throws {
    // What is left of one that the schema lists no more stands in its way.
    for name in ShadowTables.names(of: index.name, module: "rtree") {
      try database.execute(sql: "DROP TABLE IF EXISTS main.\(SQLText.quotedIdentifier(name))")
    }
    try database.execute(sql: index.statement)
    try database.execute(sql: fillingStatement(of: index))
  }

  /// Makes the triggers; what is done to records before that is not seen by them.
  package func makeTriggers(on database: Database) throws {
    for trigger in triggers { try database.execute(sql: trigger.statement) }
  }

  /// Writes an entity's row of `Z_PRIMARYKEY`.
  package static func notePrimaryKey(_ highest: Int64, of entity: EntityLayout, on database: Database) throws {
    try database.execute(
      sql: "INSERT INTO main.Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, ?)",
      arguments: [entity.number, entity.name, entity.parentNumber, highest])
  }

  /// Writes the rows of `Z_METADATA` and, unless `hasModelCache` is false, of `Z_MODELCACHE`.
  package func noteMetadata(_ metadata: StoreMetadata, hasModelCache: Bool = true, on database: Database) throws {
    try database.execute(
      sql: "INSERT INTO main.Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (1, ?, ?)",
      arguments: [metadata.uuid, Data(try metadata.propertyListBytes())])
    guard hasModelCache else { return }
    try database.execute(
      sql: "INSERT INTO main.Z_MODELCACHE (Z_CONTENT) VALUES (?)", arguments: [Data(try model.modelCache())])
  }
}

extension StoreLayout {
  /// The statements that create an empty store, in Core Data's order and words.
  ///
  /// Each table is followed by the join tables that its entities name; then come indexes, triggers and the three tables of
  /// Core Data's own. Persistent history is not created.
  public var statements: [String] {
    let joinTables = Dictionary(grouping: joinTables) { entity(named: $0.relationship.entityName)?.rootName }
    return tables.flatMap { table in
      [table.statement] + (joinTables[table.rootEntityName] ?? []).map(\.statement)
    } + indexes.map(\.statement) + spatialIndexes.map(\.statement) + triggers.map(\.statement)
      + Self.bookkeepingStatements
  }

  /// The statements that create the tables every Core Data store has (format sections 3.2 to 3.4).
  package static let bookkeepingStatements = [
    "CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER)",
    "CREATE TABLE Z_METADATA (Z_VERSION INTEGER PRIMARY KEY, Z_UUID VARCHAR(255), Z_PLIST BLOB)",
    "CREATE TABLE Z_MODELCACHE (Z_CONTENT BLOB)",
  ]

  /// The columns of those tables with their declared types, and the one that is the primary key; `Z_MODELCACHE` has none.
  static let bookkeepingTables: [BookkeepingTable] = zip(
    bookkeepingStatements,
    [
      ("Z_PRIMARYKEY", "Z_ENT", [("Z_NAME", "VARCHAR"), ("Z_SUPER", "INTEGER"), ("Z_MAX", "INTEGER")]),
      ("Z_METADATA", "Z_VERSION", [("Z_UUID", "VARCHAR(255)"), ("Z_PLIST", "BLOB")]),
      ("Z_MODELCACHE", nil, [("Z_CONTENT", "BLOB")]),
    ]
  ).map { BookkeepingTable(name: $1.0, statement: $0, key: $1.1, columns: $1.2) }

  /// One of the tables that every Core Data store has.
  struct BookkeepingTable: Sendable {
    let name: String
    let statement: String

    /// The column that is the primary key, an integer; nil where there is none.
    let key: String?

    let columns: [(name: String, type: String)]
  }

  /// The names of the tables every Core Data store has.
  public static let bookkeepingTableNames = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"]

  /// What a column of a table holds; nil where the layout has no such column, or it is one of a join table.
  public func role(ofColumn column: String, table: String) -> ColumnRole? {
    self.table(named: table)?.column(named: column)?.role
  }

  /// The statement that fills a spatial index, just created and still empty, from the rows of its table.
  ///
  /// The table and the index are in the schema `main`.
  package func fillingStatement(of index: SpatialIndexLayout) -> String {
    let columns = index.columns.map(SQLText.identifier)
    let numbers = entity(named: index.entityName)?.numbers ?? 0...0
    let conditions =
      columns.map { "\($0) IS NOT NULL" } + ["Z_ENT BETWEEN \(numbers.lowerBound) AND \(numbers.upperBound)"]
    return "INSERT INTO main.\(SQLText.identifier(index.name)) SELECT Z_PK, "
      + columns.flatMap { [$0, $0] }.joined(separator: ", ")
      + " FROM main.\(SQLText.identifier(index.tableName)) WHERE \(conditions.joined(separator: " AND "))"
  }
}

/// Where the values of a property are in a store.
public enum PropertyStorage: Sendable, Hashable {
  /// An attribute: one column, or one for each leaf of a composite.
  case attribute(columns: [ColumnLayout])

  /// A to-one relationship: columns of the entity's own table.
  ///
  /// The entity column is there where the destination has sub-entities, the order column where the inverse is ordered.
  case toOne(column: String, entityColumn: String?, orderColumn: String?)

  /// A to-many relationship whose other side is a single column: in the destination's table, that column holds the
  /// primary key of the owner.
  ///
  /// The column is that of the inverse to-one relationship, or a hidden one where there is no inverse.
  case toManyByColumn(table: String, column: String, orderColumn: String?)

  /// A many-to-many relationship: a join table, with the column of this side's records, that of the destination's, and
  /// that of the destination's place where the relationship is ordered.
  case toManyByJoinTable(table: String, ownColumn: String, destinationColumn: String, orderColumn: String?)
}

/// Something in a model that its store cannot be given as Core Data would, without any harm to the records.
public struct LayoutNote: Sendable, Hashable {
  /// What it is.
  public enum Kind: String, Sendable {
    /// A derived attribute without a trigger: its values go stale until Core Data itself opens the store.
    case derivedAttributeWithoutTrigger = "derived-attribute-without-trigger"

    /// A fetch index that is left out, because it indexes an expression or something that has no column.
    case indexLeftOut = "index-left-out"

    /// A partial index that is made for all rows, because its predicate cannot be written as SQL.
    case partialIndexMadeWhole = "partial-index-made-whole"

    /// A uniqueness constraint that names a property which has no column.
    case constraintLeftOut = "constraint-left-out"
  }

  /// What kind of shortcoming it is.
  public let kind: Kind

  /// The entity that declares it.
  public let entityName: String

  /// The attribute, index or constraint it is about.
  public let subject: String

  package init(kind: Kind, entityName: String, subject: String) {
    self.kind = kind
    self.entityName = entityName
    self.subject = subject
  }
}
