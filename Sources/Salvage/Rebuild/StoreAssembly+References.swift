internal import GRDB
internal import ManagedObjectModel
internal import PersistentStore

extension StoreAssembly {
  /// Cuts the references of a table that lead to no record, and puts the entity numbers beside the others right.
  mutating func repairReferences(of table: TableLayout) throws {
    guard raw[table.name] != nil else { return }
    for column in table.columns {
      switch column.role {
      case .toOne(let key):
        guard
          let name = layout.model.entities[key.entityName]?.properties[key.name]?.relationship?.destinationEntityName,
          let target = layout.entity(named: name),
          case .toOne(_, let entityColumn, let orderColumn) = layout.storage(of: key)
        else { continue }
        try cut(column, of: table, key, to: target, entityColumn: entityColumn, orderColumn: orderColumn)
      case .owner(let key):
        guard let target = layout.entity(named: key.entityName) else { continue }
        let order = table.columns.first { $0.role == .ownerOrder(key) }?.name
        try cut(column, of: table, key, to: target, entityColumn: nil, orderColumn: order)
      default: continue
      }
    }
  }

  /// A condition that is true where a record of an entity, or of one that inherits from it, has a key.
  private func exists(_ target: EntityLayout, key: String) -> String {
    let isWhole = target.isRoot
    let numbers = isWhole ? "" : " AND q.Z_ENT BETWEEN \(target.numbers.lowerBound) AND \(target.numbers.upperBound)"
    return "EXISTS (SELECT 1 FROM main.\(SQLText.identifier(target.tableName)) AS q WHERE q.Z_PK = \(key)\(numbers))"
  }

  private mutating func cut(
    _ column: ColumnLayout, of table: TableLayout, _ key: PropertyKey, to target: EntityLayout, entityColumn: String?,
    orderColumn: String?
  ) throws {
    let name = "main.\(SQLText.identifier(table.name))"
    // Each key is looked up once, in order, from the index of the column.
    try database.execute(
      sql: "CREATE TEMP TABLE IF NOT EXISTS gone (k PRIMARY KEY) WITHOUT ROWID; DELETE FROM temp.gone")
    try database.execute(
      sql: "INSERT INTO temp.gone SELECT k FROM (SELECT DISTINCT \(column.sqlName) AS k FROM \(name) "
        + "WHERE \(column.sqlName) IS NOT NULL) AS o WHERE NOT \(exists(target, key: "o.k"))")
    let isAny = try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM temp.gone)") == true
    if isAny {
      let condition = "\(column.sqlName) IN (SELECT k FROM temp.gone)"
      let keys = try keys(of: SQLText.identifier(table.name), where: condition)
      try aside.noteReferences(
        table.name, column.name, "SELECT Z_PK, \(column.sqlName) FROM \(name) WHERE \(condition)")
      let columns = [column.name, entityColumn, orderColumn].compactMap(\.self).map(SQLText.identifier)
      try database.execute(
        sql: "UPDATE \(name) SET \(columns.map { "\($0) = NULL" }.joined(separator: ", ")) WHERE \(condition)")
      Self.note(&account.referencesCut, key.entityName, key.name, count: Int64(database.changesCount), keys: keys)
    }
    guard let entityColumn else { return }
    let entity = SQLText.identifier(entityColumn)
    let right =
      "(SELECT q.Z_ENT FROM main.\(SQLText.identifier(target.tableName)) AS q WHERE q.Z_PK = o.\(column.sqlName))"
    let isWrong = "o.\(column.sqlName) IS NOT NULL AND o.\(entity) IS NOT \(right)"
    let keys = try Int64.fetchAll(
      database, sql: "SELECT o.Z_PK FROM \(name) AS o WHERE \(isWrong) ORDER BY o.Z_PK LIMIT 10")
    guard !keys.isEmpty else { return }
    try database.execute(sql: "UPDATE \(name) AS o SET \(entity) = \(right) WHERE \(isWrong)")
    Self.note(&account.corrected, key.entityName, key.name, count: Int64(database.changesCount), keys: keys)
  }

  /// Fills a join table with the pairs of which both records are there.
  mutating func fill(_ table: JoinTableLayout) throws {
    guard let source = raw[table.name], let own = layout.entity(named: table.relationship.entityName),
      let other = layout.entity(named: table.inverse.entityName),
      let first = source.column(table.sourceColumn), let second = source.column(table.destinationColumn)
    else { return }
    let target = "main.\(SQLText.identifier(table.name))"
    let columns = table.columns.filter { source.column($0) != nil }
    let list = columns.map(SQLText.identifier).joined(separator: ", ")
    let values = columns.map { "r.\(SQLText.quotedIdentifier(source.column($0) ?? $0))" }.joined(separator: ", ")
    let isWhole =
      "\(exists(own, key: "r.\(SQLText.quotedIdentifier(first))")) AND "
      + exists(other, key: "r.\(SQLText.quotedIdentifier(second))")
    try database.execute(
      sql: "INSERT OR IGNORE INTO \(target) (\(list)) SELECT \(values) FROM \(source.sql) AS r WHERE \(isWhole) "
        + "ORDER BY r.\(SQLText.quotedIdentifier(first)), r.\(SQLText.quotedIdentifier(second))")
    let before = try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(source.sql)") ?? 0
    let after = try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(target)") ?? 0
    guard after < before else { return }
    // The rest are half pairs, and pairs that are there twice, which are no loss.
    let halves =
      try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(source.sql) AS r WHERE NOT (\(isWhole))") ?? 0
    guard halves > 0 else { return }
    try aside.keep(source, .halfPair, where: "NOT (\(isWhole))")
    Self.note(
      &account.referencesCut, table.relationship.entityName, table.relationship.name, reason: .halfPair, count: halves,
      keys: [])
  }
}
