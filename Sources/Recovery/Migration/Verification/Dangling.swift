package import GRDB
internal import ManagedObjectModel
package import PersistentStore

/// The references of a store that lead to no record: to-one columns, hidden columns and both sides of join tables.
package enum Dangling {
  /// A column with primary keys, and the table that they are keys of.
  private struct Reference {
    let table: String
    let column: String
    let target: String
  }

  /// Whether there are any; each key is looked up once, in order, so that this takes little more than reading the tables.
  package static func exist(_ database: Database, _ layout: StoreLayout) throws -> Bool {
    for reference in references(of: layout) {
      let column = SQLText.identifier(reference.column)
      let table = SQLText.identifier(reference.table)
      let found = try Bool.fetchOne(
        database,
        sql: "SELECT EXISTS (SELECT 1 FROM (SELECT DISTINCT \(column) AS k FROM \(table) WHERE \(column) IS NOT NULL) "
          + "AS o WHERE NOT EXISTS (SELECT 1 FROM \(SQLText.identifier(reference.target)) AS q WHERE q.Z_PK = o.k))")
      if found == true { return true }
    }
    return false
  }

  static func count(_ database: Database, _ layout: StoreLayout) throws -> Int {
    var total = 0
    for reference in references(of: layout) {
      let column = SQLText.identifier(reference.column)
      total &+=
        try Int.fetchOne(
          database,
          sql: "SELECT count(*) FROM \(SQLText.identifier(reference.table)) AS o WHERE o.\(column) IS NOT NULL "
            + "AND NOT EXISTS (SELECT 1 FROM \(SQLText.identifier(reference.target)) AS q WHERE q.Z_PK = o.\(column))")
        ?? 0
    }
    return total
  }

  private static func references(of layout: StoreLayout) -> [Reference] {
    var result: [Reference] = []
    for table in layout.tables {
      for column in table.columns {
        let name: String?
        switch column.role {
        case .toOne(let key):
          name = layout.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName
        case .owner(let key): name = key.entityName
        case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder:
          name = nil
        }
        guard let target = name.flatMap({ layout.entity(named: $0) }) else { continue }
        result.append(Reference(table: table.name, column: column.name, target: target.tableName))
      }
    }
    for join in layout.joinTables {
      guard let own = layout.entity(named: join.relationship.entityName),
        let other = layout.entity(named: join.inverse.entityName)
      else { continue }
      result.append(Reference(table: join.name, column: join.sourceColumn, target: own.tableName))
      result.append(Reference(table: join.name, column: join.destinationColumn, target: other.tableName))
    }
    return result
  }
}
