import Backup
package import GRDB
package import PersistentStore

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
