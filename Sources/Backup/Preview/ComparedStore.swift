package import GRDB
import ManagedObjectModel
package import PersistentStore
import Platform

/// One of two stores that are compared, by its own lists of tables and entities; no model is needed.
package struct ComparedStore {
  /// A table.
  package struct Table {
    /// Its name.
    package let name: String

    /// The columns in order, with the place of each in the primary key, from 1; 0 for those that are not in it.
    package let columns: [(name: String, key: Int)]

    /// Whether it has rowids.
    package let hasRowid: Bool
  }

  /// An entity that has records.
  package struct Entity {
    /// Its name.
    package let name: String

    /// Its number.
    package let number: Int64

    /// The table of its hierarchy.
    package let table: String
  }

  /// The name under which the file is attached.
  package let schema: String

  /// The tables by their names in lower case; views and virtual tables are left out.
  package let tables: [String: Table]

  /// The entities by name; empty for a plain store.
  package let entities: [String: Entity]

  /// Its metadata; nil for a plain store, and where they cannot be read.
  package let metadata: StoreMetadata?

  /// The most entities and tables that any store has; more are hostile.
  private static let limit = 20_000

  /// Reads the lists of a store that is attached.
  package init(_ database: Database, schema: String) throws {
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

  /// The table of that name, as it stands in SQL.
  package func sql(_ table: Table) -> String { "\(schema).\(SQLText.quotedIdentifier(table.name))" }

  private static func metadata(
    _ database: Database, _ schema: String, _ tables: [String: Table]
  ) throws -> StoreMetadata? {
    guard let table = tables["z_metadata"],
      ["z_uuid", "z_plist"].allSatisfy({ name in table.columns.contains { $0.name.lowercased() == name } }),
      let row = try Row.fetchOne(
        database, sql: "SELECT Z_UUID, Z_PLIST FROM \(schema).\(SQLText.quotedIdentifier(table.name)) LIMIT 1")
    else { return nil }
    let uuid: DatabaseValue = row[0]
    let list: DatabaseValue = row[1]
    guard case .blob(let bytes) = list.storage else { return nil }
    // Metadata that cannot be read tell no version, which is what the preview then says.
    return try? StoreMetadata(uuid: String.fromDatabaseValue(uuid) ?? "", propertyList: Array(bytes))
  }

  /// The model that the store carries (format section 3.4); nil where it carries none.
  package func modelCache(_ database: Database) throws -> [UInt8]? {
    guard let table = tables["z_modelcache"], table.columns.contains(where: { $0.name.lowercased() == "z_content" })
    else {
      return nil
    }
    let value = try DatabaseValue.fetchOne(database, sql: "SELECT Z_CONTENT FROM \(sql(table)) LIMIT 1")
    guard case .blob(let bytes) = value?.storage else { return nil }
    return Array(bytes)
  }

  private static func entities(
    _ database: Database, _ schema: String, _ tables: [String: Table]
  ) throws -> [String: Entity] {
    guard let list = tables["z_primarykey"],
      ["z_ent", "z_name", "z_super"].allSatisfy({ name in list.columns.contains { $0.name.lowercased() == name } })
    else { return [:] }
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
      // As many steps as there are entities: parents that run in a circle come to an end.
      for _ in 0..<known.count {
        guard let parent = root.parent, parent != 0, let next = known[parent] else { break }
        root = next
      }
      guard let table = tables["z\(root.name.lowercased())"] else { continue }
      result[entity.name] = Entity(name: entity.name, number: number, table: table.name)
    }
    return result
  }
}

extension ComparedStore {
  /// A join table, with the relationship that its pairs are of.
  struct JoinTable {
    let table: Table

    /// The names of both sides of the relationship in the order of the alphabet, such as `Port.ships` and `Ship.ports`; one
    /// where it is its own inverse, none where no model that is known names it.
    let relationships: [String]

    /// What both sides are called by their renaming identifiers, in the same order; none where no model that is known names it.
    let identifiers: [String]

    /// The columns with the keys of both records, in the order of the sides.
    private(set) var keys: [String]

    /// The columns with the places in both relationships, in the same order; nil where there is no order.
    private(set) var places: [String?]

    /// Whether a model that is known names the relationship.
    var isNamed: Bool { !relationships.isEmpty }

    /// Its other columns, by their names in lower case.
    var others: [(key: String, name: String)] {
      let own = Set((keys + places.compactMap(\.self)).map { $0.lowercased() })
      return table.columns.map { ($0.name.lowercased(), $0.name) }.filter { !own.contains($0.0) }
    }

    /// It with its sides in the order of those of another store's table that holds the pairs of the same relationship; nil where
    /// that is of another one.
    ///
    /// - Parameter rule: what tells that they are the same.
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

  /// What tells that two join tables hold the pairs of one relationship, the surest first.
  enum MatchRule: CaseIterable {
    /// The renaming identifiers of both sides, by which a migration finds them too.
    case identifiers

    /// The names of both sides.
    case names

    /// The name of the table, where no model that is known names the relationship in one of both stores.
    case tables
  }

  /// The join tables by name.
  ///
  /// - Parameters:
  ///   - models: the models by which relationships are named; else it is the one that the store carries.
  ///   - taken: the names of the entities' tables, in lower case.
  func joinTables(
    _ database: Database, models: [ModelBundle], leavingOut taken: Set<String>
  ) throws -> [JoinTable] {
    let layout = try model(database, models)
    let named = layout.map { Dictionary($0.joinTables.map { ($0.name.lowercased(), $0) }) { $1 } }
    return tables.filter { Self.isJoinTable($0.key) && !taken.contains($0.key) }.ordered { $0.key < $1.key }.map {
      name, table in
      named?[name].flatMap { Self.joinTable(table, $0, layout?.model) }
        ?? JoinTable(
          table: table, relationships: [], identifiers: [], keys: table.columns.prefix(2).map { $0.name }, places: [])
    }
  }

  private static func joinTable(
    _ table: Table, _ layout: JoinTableLayout, _ model: ManagedObjectModel?
  ) -> JoinTable? {
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
    let rest = name.dropFirst(2)
    return name.hasPrefix("z_") && rest.first?.isNumber == true
  }

  /// The layout of the store's model: of the version that its metadata name, else of the one that it carries.
  private func model(_ database: Database, _ models: [ModelBundle]) throws -> StoreLayout? {
    guard let metadata else { return nil }
    // A cache that does not unpack to a model, or to one that can be laid out, names no relationship.
    let cached = try modelCache(database).flatMap { try? ManagedObjectModel(modelCache: $0) }
    let known = models.lazy.compactMap { bundle in
      bundle.version(matching: metadata.versionHashes, identifiers: metadata.versionIdentifiers, cached: cached)?.model
    }.first
    return (known ?? cached).flatMap { try? StoreLayout($0) }
  }
}
