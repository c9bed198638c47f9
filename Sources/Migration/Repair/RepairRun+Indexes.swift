internal import GRDB
internal import PersistentStore
internal import StoreFiles

extension RepairRun {
  /// Adds the indexes that tables lack; a unique one whose rows collide is left out and told.
  mutating func addIndexes() throws {
    for difference in drift.differences {
      switch difference {
      case .missingIndex(let index): try add(index)
      case .missingSpatialIndex(let index):
        try database.execute(sql: index.statement)
        try database.execute(sql: layout.fillingStatement(of: index))
        note(
          .spatialIndex, in: index.tableName, index.name,
          "R-tree index \(printable(index.name)) of table \(printable(index.tableName)) is added and filled")
      default: continue
      }
    }
  }

  private mutating func add(_ index: IndexLayout) throws {
    let kind: RepairAccount.Kind = index.isUnique ? .uniqueIndex : .index
    let place =
      "\(index.isUnique ? "unique index" : "index") \(printable(index.name)) of table \(printable(index.tableName))"
    let isTaken =
      try Bool.fetchOne(
        database, sql: "SELECT count(*) > 0 FROM sqlite_master WHERE upper(name) = upper(?) AND type <> 'trigger'",
        arguments: [index.name]) ?? false
    guard !isTaken else {
      leaveOut(kind, in: index.tableName, index.name, "\(place) is left out: something else has its name")
      return
    }
    do {
      try database.execute(sql: index.statement)
      note(kind, in: index.tableName, index.name, "\(place) is added")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      let (rows, examples) = try collisions(index)
      leaveOut(
        kind, in: index.tableName, index.name, rows: rows, examples: examples,
        "\(place) is left out: \(counted(Int64(rows), "record")) have values that others have too")
    }
  }

  /// The records that are not unique in the columns of an index, and the keys of the first ten.
  func collisions(_ index: IndexLayout) throws -> (rows: Int, examples: [Int64]) {
    let columns = index.columns.map { SQLText.identifier($0.name) }
    let list = columns.joined(separator: ", ")
    let table = SQLText.identifier(index.tableName)
    let conditions = columns.map { "\($0) IS NOT NULL" } + [index.condition.map { "(\($0))" }].compactMap(\.self)
    let condition = conditions.joined(separator: " AND ")
    let groups = "SELECT \(list) FROM \(table) WHERE \(condition) GROUP BY \(list) HAVING count(*) > 1"
    let place = "FROM \(table) WHERE \(condition) AND (\(list)) IN (\(groups))"
    let key = layout.table(named: index.tableName) == nil ? "rowid" : "Z_PK"
    return (
      try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0,
      try Int64.fetchAll(database, sql: "SELECT \(key) \(place) ORDER BY \(key) LIMIT 10")
    )
  }
}
