import Foundation
import GRDB
import ManagedObjectModel
import PersistentStore
import SystemPackage

/// Fills a new store, `main`, with some records of a backup, `backup`, by statements on whole tables.
struct EntityExtraction {
  let database: Database
  let layout: StoreLayout
  let source: ComparedStore
  let selection: EntitySelection
  private(set) var entities: [ExtractionReport.Entity] = []
  private(set) var cut: [ExtractionReport.Cut] = []
  private(set) var missing: [Int64] = []

  mutating func run(metadata: StoreMetadata) throws {
    try layout.makeTables(on: database)
    try database.execute(sql: "CREATE TEMP TABLE wanted (k INTEGER PRIMARY KEY)")
    for key in selection.primaryKeys ?? [] {
      try database.execute(sql: "INSERT OR IGNORE INTO temp.wanted VALUES (?)", arguments: [key])
    }
    for table in layout.tables { try fill(table) }
    for table in layout.joinTables { try fill(table) }
    for index in layout.indexes { try database.execute(sql: index.statement) }
    for table in layout.tables { try cutReferences(of: table) }
    try layout.makeSpatialIndexes(on: database)
    try fillBookkeeping(metadata)
    try layout.makeTriggers(on: database)
    try count()
  }

  // MARK: Records

  private func numbers(in table: TableLayout) -> [Int] {
    let chosen = selection.entities.compactMap { layout.entity(named: $0) }.filter { $0.tableName == table.name }
    return Set(chosen.flatMap { Array($0.numbers) }).sorted()
  }

  private func fill(_ table: TableLayout) throws {
    let numbers = numbers(in: table)
    guard !numbers.isEmpty, let old = source.tables[table.name.lowercased()] else { return }
    let names = Set(old.columns.map { $0.name.lowercased() })
    let columns = table.columns.filter { names.contains($0.name.lowercased()) }.map(\.sqlName).joined(separator: ", ")
    var condition = "Z_ENT IN (\(numbers.map(String.init).joined(separator: ", ")))"
    if selection.primaryKeys != nil { condition += " AND Z_PK IN (SELECT k FROM temp.wanted)" }
    try database.execute(
      sql: "INSERT INTO main.\(SQLText.identifier(table.name)) (\(columns)) "
        + "SELECT \(columns) FROM \(source.sql(old)) WHERE \(condition) ORDER BY Z_PK")
  }

  /// Returns an SQL condition: the new store has a record of the entity or a sub-entity.
  private func exists(_ target: EntityLayout, key: String) -> String {
    let numbers =
      target.isRoot ? "" : " AND q.Z_ENT BETWEEN \(target.numbers.lowerBound) AND \(target.numbers.upperBound)"
    return "EXISTS (SELECT 1 FROM main.\(SQLText.identifier(target.tableName)) AS q WHERE q.Z_PK = \(key)\(numbers))"
  }

  private mutating func fill(_ table: JoinTableLayout) throws {
    guard let old = source.tables[table.name.lowercased()],
      let own = layout.entity(named: table.relationship.entityName),
      let other = layout.entity(named: table.inverse.entityName),
      // Without records there are no pairs.
      [own, other].contains(where: { entity in
        layout.table(named: entity.tableName).map { !numbers(in: $0).isEmpty } ?? false
      })
    else { return }
    let list = table.columns.map(SQLText.identifier).joined(separator: ", ")
    let hasOwn = exists(own, key: "r.\(SQLText.identifier(table.sourceColumn))")
    let hasOther = exists(other, key: "r.\(SQLText.identifier(table.destinationColumn))")
    let first = SQLText.identifier(table.sourceColumn)
    let second = SQLText.identifier(table.destinationColumn)
    try database.execute(
      sql: "INSERT INTO main.\(SQLText.identifier(table.name)) (\(list)) SELECT \(list) FROM \(source.sql(old)) AS r "
        + "WHERE \(hasOwn) AND \(hasOther) ORDER BY \(first), \(second)")
    let halves = try Int64.fetchOne(
      database, sql: "SELECT count(*) FROM \(source.sql(old)) AS r WHERE (\(hasOwn)) <> (\(hasOther))")
    note(table.relationship, halves ?? 0)
  }

  private mutating func cutReferences(of table: TableLayout) throws {
    guard !numbers(in: table).isEmpty else { return }
    let name = "main.\(SQLText.identifier(table.name))"
    for column in table.columns {
      let (key, target): (PropertyKey, EntityLayout?)
      var others: [String?] = []
      switch column.role {
      case .toOne(let property):
        let relationship = layout.model.entities[property.entityName]?.properties[property.name]?.relationship
        (key, target) = (property, relationship.flatMap { layout.entity(named: $0.destinationEntityName) })
        if case .toOne(_, let entityColumn, let orderColumn) = layout.storage(of: property) {
          others = [entityColumn, orderColumn]
        }
      case .owner(let property):
        (key, target) = (property, layout.entity(named: property.entityName))
        others = [table.columns.first { $0.role == .ownerOrder(property) }?.name]
      case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder:
        continue
      }
      guard let target else { continue }
      let isGone = "\(column.sqlName) IS NOT NULL AND NOT \(exists(target, key: "o.\(column.sqlName)"))"
      let columns = [column.sqlName] + others.compactMap(\.self).map(SQLText.identifier)
      try database.execute(
        sql: "UPDATE \(name) AS o SET \(columns.map { "\($0) = NULL" }.joined(separator: ", ")) WHERE \(isGone)")
      note(key, Int64(database.changesCount))
    }
  }

  private mutating func note(_ key: PropertyKey, _ count: Int64) {
    guard count > 0 else { return }
    cut.append(.init(entity: key.entityName, relationship: key.name, count: count))
  }

  private mutating func count() throws {
    for entity in layout.entities {
      let records = try Int64.fetchOne(
        database,
        sql: "SELECT count(*) FROM main.\(SQLText.identifier(entity.tableName)) WHERE Z_ENT = \(entity.number)")
      if let records, records > 0 { entities.append(.init(name: entity.name, records: records)) }
    }
    entities.sort { $0.name < $1.name }
    cut.sort { ($0.entity, $0.relationship) < ($1.entity, $1.relationship) }
    let tables = Set(selection.entities.compactMap { layout.entity(named: $0)?.tableName })
    let found = tables.sorted().map { "SELECT Z_PK FROM main.\(SQLText.identifier($0))" }.joined(separator: " UNION ")
    guard !found.isEmpty else { return }
    missing = try Int64.fetchAll(
      database, sql: "SELECT k FROM temp.wanted WHERE k NOT IN (\(found)) ORDER BY k LIMIT 1000")
  }

  // MARK: Bookkeeping

  private func fillBookkeeping(_ metadata: StoreMetadata) throws {
    for entity in layout.entities {
      // Keeping the highest keys prevents new records from reusing omitted ones.
      let highest =
        entity.isRoot
        ? try Int64.fetchOne(
          database,
          sql: "SELECT max(Z_MAX) FROM backup.Z_PRIMARYKEY WHERE Z_ENT = ? AND typeof(Z_MAX) = 'integer'",
          arguments: [entity.number]) : 0
      try StoreLayout.notePrimaryKey(highest ?? 0, of: entity, on: database)
    }
    try layout.noteMetadata(metadata, on: database)
  }
}
