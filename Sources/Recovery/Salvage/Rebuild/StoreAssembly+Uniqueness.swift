internal import GRDB
internal import PersistentStore

extension StoreAssembly {
  /// Makes a unique index; where rows contradict each other, a certain one wins over a doubtful one, else the lowest key.
  mutating func createUnique(_ index: IndexLayout) throws {
    do {
      try database.execute(sql: index.statement)
      return
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      try settle(index)
    }
    try database.execute(sql: index.statement)
  }

  private mutating func settle(_ index: IndexLayout) throws {
    guard let table = layout.table(named: index.tableName), let source = raw[index.tableName] else { return }
    let name = SQLText.identifier(index.tableName)
    let columns = index.columns.map { SQLText.identifier($0.name) }
    let list = columns.joined(separator: ", ")
    // NULL differs from NULL in a unique index.
    let filled =
      (columns.map { "\($0) IS NOT NULL" } + (index.condition.map { ["(\($0))"] } ?? [])).joined(separator: " AND ")
    let isDoubtful = try doubt()?.condition(source.name, key: "Z_PK") ?? "0"
    try database.execute(sql: "CREATE TEMP TABLE IF NOT EXISTS loser (k INTEGER PRIMARY KEY); DELETE FROM temp.loser")
    try database.execute(
      sql: """
        INSERT INTO temp.loser SELECT k FROM (
          SELECT Z_PK AS k, row_number() OVER (PARTITION BY \(list) ORDER BY \(isDoubtful), Z_PK) AS place
          FROM main.\(name) WHERE \(filled))
        WHERE place > 1
        """)
    var entity = table.rootEntityName
    var properties: String?
    if case .uniqueness(let entityName, let names) = index.purpose {
      entity = entityName
      properties = names.joined(separator: ",")
    }
    let before = account.setAside.count
    try setAside(
      table, .conflict, entity: entity, property: properties, where: "Z_PK IN (SELECT k FROM temp.loser)")
    account.conflicts += account.setAside[before...].map { repair in
      var repair = repair
      repair.reason = nil
      return repair
    }
  }
}
