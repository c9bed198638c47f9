internal import GRDB
import ManagedObjectModel
internal import PersistentStore
import Platform

/// Adds Core Data's functions, with a constant time.
@Sendable func addCoreDataFunctions(to database: Database) {
  for function in CoreDataFunctions.all(now: { 0 }) { database.add(function: function) }
}

/// One of two compared stores, by its own tables and entities, without a model.
struct ComparedStore {
  struct Table {
    let name: String

    /// `key` is the 1-based position in the primary key, or 0.
    let columns: [(name: String, key: Int)]

    let hasRowid: Bool

    /// Whether it has all columns of these lower-case names.
    func has(_ names: String...) -> Bool {
      names.allSatisfy { name in columns.contains { $0.name.lowercased() == name } }
    }
  }

  struct Entity {
    let name: String

    /// The entity number (`Z_ENT`).
    let number: Int64

    let table: String
  }

  let schema: String

  /// The tables by lower-case name, without views and virtual tables.
  let tables: [String: Table]

  /// Empty for a plain store.
  let entities: [String: Entity]

  /// Nil for a plain store or if unreadable.
  let metadata: StoreMetadata?

  /// A limit against hostile stores.
  private static let limit = 20_000

  init(_ database: Database, schema: String) throws {
    self.schema = schema
    var tables: [String: Table] = [:]
    let names = try Row.fetchAll(
      database,
      sql: "SELECT name, wr FROM pragma_table_list WHERE schema = ? AND type = 'table' "
        + "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name NOT LIKE 'lazaret\\_%' ESCAPE '\\' LIMIT ?",
      arguments: [schema, Self.limit])
    for row in names {
      let name: String = row[0]
      let columns = try Row.fetchAll(
        database, sql: "SELECT name, pk FROM pragma_table_info(?, ?) ORDER BY cid", arguments: [name, schema])
      tables[name.lowercased()] = Table(
        name: name, columns: columns.map { ($0[0], $0[1]) }, hasRowid: (row[1] as Int64?) == 0)
    }
    self.tables = tables
    entities = try Self.entities(database, schema, tables)
    metadata = try Self.metadata(database, schema, tables)
  }

  /// The qualified SQL name of a table.
  func sql(_ table: Table) -> String { "\(schema).\(SQLText.quotedIdentifier(table.name))" }

  private static func metadata(
    _ database: Database, _ schema: String, _ tables: [String: Table]
  ) throws -> StoreMetadata? {
    guard let table = tables["z_metadata"], table.has("z_uuid", "z_plist"),
      let row = try Row.fetchOne(
        database, sql: "SELECT Z_UUID, Z_PLIST FROM \(schema).\(SQLText.quotedIdentifier(table.name)) LIMIT 1")
    else { return nil }
    let uuid: DatabaseValue = row[0]
    let list: DatabaseValue = row[1]
    guard case .blob(let bytes) = list.storage else { return nil }
    return try? StoreMetadata(uuid: String.fromDatabaseValue(uuid) ?? "", propertyList: Array(bytes))
  }

  /// Reads the stored model (format section 3.4), if any.
  func modelCache(_ database: Database) throws -> [UInt8]? {
    guard let table = tables["z_modelcache"], table.has("z_content") else { return nil }
    let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM \(sql(table)) LIMIT 1")
    guard case .blob(let bytes) = value?.storage else { return nil }
    return Array(bytes)
  }

  private static func entities(
    _ database: Database, _ schema: String, _ tables: [String: Table]
  ) throws -> [String: Entity] {
    guard let list = tables["z_primarykey"], list.has("z_ent", "z_name", "z_super") else { return [:] }
    let rows = try Row.fetchAll(
      database,
      sql: "SELECT Z_ENT, Z_NAME, Z_SUPER FROM \(schema).\(SQLText.quotedIdentifier(list.name)) "
        + "WHERE typeof(Z_ENT) = 'integer' AND typeof(Z_NAME) = 'text' LIMIT \(limit)")
    var known: [Int64: (name: String, parent: Int64?)] = [:]
    for row in rows {
      let parent: DatabaseValue = row[2]
      known[row[0]] = (row[1], Int64.fromDatabaseValue(parent))
    }
    var result: [String: Entity] = [:]
    for (number, entity) in known {
      var root = entity
      // A cycle of parents must end.
      for _ in 0..<known.count {
        guard let parent = root.parent, parent != 0, let next = known[parent] else { break }
        root = next
      }
      guard let table = tables["z\(root.name.lowercased())"] else { continue }
      result[entity.name] = Entity(name: entity.name, number: number, table: table.name)
    }
    return result
  }

  /// A join table and its relationship.
  struct JoinTable {
    let table: Table

    /// The sorted names of both sides, such as `Port.ships` and `Ship.ports`; one for a self-inverse relationship,
    /// empty if unknown.
    let relationships: [String]

    /// The renaming identifiers of both sides, in the same order.
    let identifiers: [String]

    /// The key columns, in the same order.
    private(set) var keys: [String]

    /// The order columns, in the same order; nil if unordered.
    private(set) var places: [String?]

    /// Whether a known model has the relationship.
    var isNamed: Bool { !relationships.isEmpty }

    /// By lower-case name.
    var others: [(key: String, name: String)] {
      let own = Set((keys + places.compactMap(\.self)).map { $0.lowercased() })
      return table.columns.map { ($0.name.lowercased(), $0.name) }.filter { !own.contains($0.0) }
    }

    /// Returns it with sides in the other's order; nil if the relationships differ.
    func aligned(with other: JoinTable, by rule: MatchRule) -> JoinTable? {
      switch rule {
      case .identifiers:
        guard isNamed, other.isNamed else { return nil }
        if identifiers == other.identifiers { return self }
        guard identifiers.reversed() == other.identifiers else { return nil }
        var turned = self
        turned.keys.reverse()
        turned.places.reverse()
        return turned
      case .names: return isNamed && relationships == other.relationships ? self : nil
      case .tables:
        guard !isNamed || !other.isNamed else { return nil }
        return table.name.lowercased() == other.table.name.lowercased() ? self : nil
      }
    }
  }

  /// A criterion of equality, surest first.
  enum MatchRule: CaseIterable {
    /// The renaming identifiers, which migrations use too.
    case identifiers

    case names

    /// The table name, if a relationship is unknown.
    case tables
  }

  /// Returns the join tables by name.
  ///
  /// - Parameters:
  ///   - models: the models that name relationships, besides the stored one.
  ///   - taken: the lower-case names of the entities' tables.
  func joinTables(_ database: Database, models: [ModelBundle], leavingOut taken: Set<String>) throws -> [JoinTable] {
    let layout = try model(database, models)
    let named = layout.map { Dictionary($0.joinTables.map { ($0.name.lowercased(), $0) }) { $1 } }
    return tables.filter { Self.isJoinTable($0.key) && !taken.contains($0.key) }.ordered { $0.key < $1.key }.map {
      name, table in
      named?[name].flatMap { Self.joinTable(table, $0, layout?.model) }
        ?? JoinTable(
          table: table, relationships: [], identifiers: [], keys: table.columns.prefix(2).map { $0.name }, places: [])
    }
  }

  private static func joinTable(_ table: Table, _ layout: JoinTableLayout, _ model: ManagedObjectModel?) -> JoinTable? {
    func column(_ name: String?) -> String? {
      name.flatMap { name in table.columns.first { $0.name.lowercased() == name.lowercased() }?.name }
    }
    guard let source = column(layout.sourceColumn), let destination = column(layout.destinationColumn) else {
      return nil
    }
    let sides = [
      (key: layout.relationship, column: source, place: column(layout.destinationOrderColumn)),
      (key: layout.inverse, column: destination, place: column(layout.sourceOrderColumn)),
    ].ordered { ($0.key.entityName, $0.key.name) < ($1.key.entityName, $1.key.name) }
    let names = sides.map { "\($0.key.entityName).\($0.key.name)" }
    let identifiers = sides.map { side in
      let entity = model?.entities[side.key.entityName]
      let property = entity?.properties[side.key.name]
      return
        "\(entity?.renamingIdentifier ?? side.key.entityName).\(property?.traits.renamingIdentifier ?? side.key.name)"
    }
    return JoinTable(
      table: table, relationships: layout.isReflexive ? Array(names.prefix(1)) : names, identifiers: identifiers,
      keys: sides.map(\.column), places: sides.map(\.place))
  }

  private static func isJoinTable(_ name: String) -> Bool {
    name.hasPrefix("z_") && name.dropFirst(2).first?.isNumber == true
  }

  /// Returns the layout of the metadata's model version, else of the stored model.
  private func model(_ database: Database, _ models: [ModelBundle]) throws -> StoreLayout? {
    guard let metadata else { return nil }
    // An invalid cached model names no relationship.
    let cached = try modelCache(database).flatMap { try? ManagedObjectModel(modelCache: $0) }
    let known = models.lazy.compactMap { bundle in
      bundle.version(matching: metadata.versionHashes, identifiers: metadata.versionIdentifiers, cached: cached)?.model
    }.first
    return (known ?? cached).flatMap { try? StoreLayout($0) }
  }
}
