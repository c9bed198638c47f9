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
        try layout.make(index, on: database)
        note(
          .spatialIndex, in: index.tableName, index.name,
          "R-tree index \(printable(index.name)) of table \(printable(index.tableName)) is added and filled")
      case .missingTable, .missingJoinTable, .missingBookkeepingTable, .missingBookkeepingColumn,
        .otherBookkeepingTable, .missingColumn, .missingJoinColumn, .missingTrigger, .missingKeyRow, .otherEntityNumber,
        .otherParentNumber, .otherEntityName, .lowKeyMaximum, .otherNumbersInRows, .missingNumbersInRows,
        .otherModelCached:
        continue
      }
    }
  }

  private mutating func add(_ index: IndexLayout) throws {
    guard try !isTaken(index) else { return leaveOutTaken(index) }
    do {
      try database.execute(sql: index.statement)
      note(kind(of: index), in: index.tableName, index.name, "\(place(of: index)) is added")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      let (rows, examples) = try collisions(index)
      leaveOutColliding(index, rows, examples)
    }
  }

  /// Whether nothing can be added: nothing is missing, or only indexes that have to be left out.
  ///
  /// What stays as it is is told in either case; nothing is changed.
  mutating func hasNothingToAdd() throws -> Bool {
    for difference in drift.differences {
      guard case .missingIndex(let index) = difference else { return false }
      if try isTaken(index) {
        leaveOutTaken(index)
        continue
      }
      guard index.isUnique else { return false }
      let (rows, examples) = try collisions(index)
      guard rows > 0 else { return false }
      leaveOutColliding(index, rows, examples)
    }
    tellRemarks()
    guard try !hasRecordsToRepair() else { return false }
    try tellMissingValues()
    return true
  }

  private func kind(of index: IndexLayout) -> RepairAccount.Kind { index.isUnique ? .uniqueIndex : .index }

  private func place(of index: IndexLayout) -> String {
    "\(index.isUnique ? "unique index" : "index") \(printable(index.name)) of table \(printable(index.tableName))"
  }

  private mutating func leaveOutTaken(_ index: IndexLayout) {
    leaveOut(
      kind(of: index), in: index.tableName, index.name,
      "\(place(of: index)) is left out: something else has its name")
  }

  private mutating func leaveOutColliding(_ index: IndexLayout, _ rows: Int, _ examples: [Int64]) {
    leaveOut(
      kind(of: index), in: index.tableName, index.name, rows: rows, examples: examples,
      "\(place(of: index)) is left out: \(counted(rows, "record")) have values that others have too")
  }

  private func isTaken(_ index: IndexLayout) throws -> Bool {
    try Bool.fetchOne(
      database, sql: "SELECT count(*) > 0 FROM sqlite_master WHERE upper(name) = upper(?) AND type <> 'trigger'",
      arguments: [index.name]) ?? false
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
