internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

extension RepairRun {
  /// Adds missing columns with a new store's types.
  mutating func addColumns() throws {
    for difference in drift.differences {
      if case .missingColumn(let name, let column) = difference, let table = layout.table(named: name) {
        try add(column, to: table)
      } else if case .missingJoinColumn(let name, let column, _) = difference,
        let table = layout.joinTables.first(where: { $0.name.uppercased() == name.uppercased() })
      {
        try add(column, to: table)
      }
    }
  }

  private mutating func add(_ column: ColumnLayout, to table: TableLayout) throws {
    let place = "column \(printable(column.name)) of table \(printable(table.name))"
    let hasRows = try rows(of: table.name) > 0
    switch column.role {
    case .primaryKey: throw Self.refused("\(place), the primary key, is missing")
    case .entityNumber where hasRows && layout.soleNumber(ofRoot: table.rootEntityName) == nil:
      throw Self.refused("\(place) is missing, so that the entity of each record cannot be told")
    case .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOne, .toOneEntity, .toOneOrder, .owner, .ownerOrder:
      break
    }
    try database.execute(
      sql: "ALTER TABLE \(table.name.sqlName) ADD COLUMN \(column.sqlName) \(column.type.rawValue)")
    let own = try hasRows ? values(of: column, in: table) : []
    fillings += own
    noteMade(column, own)
    let given = try own.reduce(0) { sum, filling in
      let condition = filling.numbers.map { " WHERE Z_ENT IN \($0.sqlList)" } ?? ""
      return sum + (try database.count(from: "\(table.name.sqlName)\(condition)"))
    }
    note(
      .column, in: table.name, column.name, rows: given > 0 ? given : nil,
      "\(place) is added" + (given > 0 ? ", with a value in \(counted(given, "record"))" : ""))
    if hasRows { try tellMissingValues(column, table) }
  }

  private mutating func add(_ column: String, to table: JoinTableLayout) throws {
    let place = "column \(printable(column)) of join table \(printable(table.name))"
    let isOrder = column == table.sourceOrderColumn || column == table.destinationOrderColumn
    if try !isOrder && remakeEmpty(table) { return }
    guard try isOrder || rows(of: table.name) == 0 else {
      throw Self.refused("\(place) is missing, so that its pairs cannot be told")
    }
    try database.execute(
      sql: "ALTER TABLE \(table.name.sqlName) ADD COLUMN \(column.sqlName) INTEGER")
    note(.column, in: table.name, column, "\(place) is added")
    // A new order starts as primary key order.
    let other = column == table.sourceOrderColumn ? table.sourceColumn : table.destinationColumn
    if isOrder {
      fillings.append(
        Filling(table: table.name, column: column, expression: other.sqlName, numbers: nil))
    }
  }

  // MARK: Values

  /// The values of a lightweight migration for a new property (format section 5.3); empty for NULL.
  private func values(of column: ColumnLayout, in table: TableLayout) throws -> [Filling] {
    func filling(_ expression: String, _ numbers: [Int]? = nil) -> Filling {
      Filling(table: table.name, column: column.name, expression: expression, numbers: numbers)
    }
    switch column.role {
    case .entityNumber:
      return layout.soleNumber(ofRoot: table.rootEntityName).map { [filling("\($0)")] } ?? []
    case .saveCount: return [filling("1")]
    case .attribute(let key, _):
      if try isSharedDefault(column, table) { return [] }
      return defaults(of: PropertyPath(key.name), key, column, table)
    case .compositeLeaf(let key, let path, _):
      return defaults(of: PropertyPath(key.name, leaf: path), key, column, table)
    case .primaryKey, .toOne, .owner: return []
    case .toOneEntity(let key):
      guard case .toOne(let reference, _, _)? = layout.storage(of: key),
        let target = layout.destination(of: key)?.tableName
      else { return [] }
      let place = "\(table.name.sqlName).\(reference.sqlName)"
      return [filling("(SELECT q.Z_ENT FROM \(target.sqlName) AS q WHERE q.Z_PK = \(place))")]
    case .toOneOrder(let key):
      guard case .toOne(let reference, _, _)? = layout.storage(of: key) else { return [] }
      return [filling("CASE WHEN \(reference.sqlName) IS NOT NULL THEN Z_PK END")]
    case .ownerOrder(let key):
      guard case .toManyByColumn(_, let reference, _)? = layout.storage(of: key) else { return [] }
      return [filling("CASE WHEN \(reference.sqlName) IS NOT NULL THEN Z_PK END")]
    }
  }

  private func isSharedDefault(_ column: ColumnLayout, _ table: TableLayout) throws -> Bool {
    try mustBeUnique(column.name, in: table.name) && rows(of: table.name) > 1
  }

  private func defaults(
    of path: PropertyPath, _ key: PropertyKey, _ column: ColumnLayout, _ table: TableLayout
  ) -> [Filling] {
    var numbers: [String: [Int]] = [:]
    for (entity, property) in holders(of: path, key) where property.attribute?.isDerived != true {
      guard let literal = property.attribute?.defaultValue?.literal(isMarked: property.isMarked), literal != "NULL"
      else { continue }
      numbers[literal, default: []].append(entity.number)
    }
    return numbers.ordered { $0.key < $1.key }.map { literal, numbers in
      Filling(table: table.name, column: column.name, expression: literal, numbers: numbers)
    }
  }

  func holders(of path: PropertyPath, _ key: PropertyKey) -> [(EntityLayout, StoredProperty)] {
    guard let numbers = layout.entity(named: key.entityName)?.numbers else { return [] }
    return numbers.compactMap { layout.entity(numbered: $0) }.compactMap { entity in
      side.property(path, of: entity.name).map { (entity, $0) }
    }
  }

  func path(of column: ColumnLayout) -> (path: PropertyPath, key: PropertyKey)? {
    if case .toOne(let key) = column.role { return (PropertyPath(key.name), key) }
    guard let path = column.path, let key = column.role.property else { return nil }
    return (path, key)
  }

  private mutating func noteMade(_ column: ColumnLayout, _ fillings: [Filling]) {
    guard !fillings.isEmpty, let (path, key) = path(of: column) else { return }
    for (entity, _) in holders(of: path, key) { made.add(entity.name, path) }
  }

  /// Reports mandatory properties left empty for lack of a default.
  private mutating func tellMissingValues(_ column: ColumnLayout, _ table: TableLayout) throws {
    guard let (path, key) = path(of: column) else { return }
    let isShared = try isSharedDefault(column, table)
    let numbers = holders(of: path, key).filter { _, property in
      !property.isOptional && property.attribute?.isDerived != true
        && property.attribute.map { isShared || !$0.hasReadableDefault } ?? true
    }.map(\.0.number)
    guard !numbers.isEmpty else { return }
    let place = "\(table.name.sqlName) WHERE Z_ENT IN \(numbers.sqlList)"
    try leaveOut(.missingValue, in: table.name, column.name, rowsOf: place) { rows in
      "\(printable(key.description)) is mandatory and \(isShared ? Self.noSharedDefault : Self.noDefault): "
        + "\(counted(rows, "record")) have no value"
    }
  }

  /// Fills an entity's columns together, because each record is rewritten.
  mutating func fillColumns() throws {
    struct Group: Hashable {
      let table: String
      let numbers: [Int]?
    }
    let groups = Dictionary(grouping: fillings) { Group(table: $0.table, numbers: $0.numbers) }
    let order = fillings.map { Group(table: $0.table, numbers: $0.numbers) }
    var done: Set<Group> = []
    for group in order where done.insert(group).inserted {
      let values = (groups[group] ?? []).map { "\($0.column.sqlName) = \($0.expression)" }.joined(separator: ", ")
      let condition = group.numbers.map { " WHERE Z_ENT IN \($0.sqlList)" } ?? ""
      try database.execute(sql: "UPDATE \(group.table.sqlName) SET \(values)\(condition)")
    }
  }

  // MARK: Derived attributes

  func computeDerivedValues() throws {
    for case .missingColumn(let table, let column) in drift.differences {
      guard let (value, numbers) = derivation(of: column) else { continue }
      try database.execute(
        sql: "UPDATE main.\(table.sqlName) AS o SET \(column.sqlName) = \(value) WHERE o.Z_ENT IN \(numbers.sqlList)")
    }
  }

  /// A derived attribute's SQL over the record `o`, and the entities that have it.
  func derivation(of column: ColumnLayout, isTimeWanted: Bool = true) -> (value: String, numbers: ClosedRange<Int>)? {
    guard case .attribute(let key, _) = column.role, let entity = layout.entity(named: key.entityName),
      let attribute = layout.property(key)?.attribute, attribute.isDerived
    else { return nil }
    return layout.derivedValue(of: attribute, entity, isTimeWanted: isTimeWanted).map { ($0, entity.numbers) }
  }
}

extension RepairRun {
  /// Completes the standard Core Data tables.
  ///
  /// - Throws: `repair-refused` if content is unknown or would be lost.
  mutating func completeBookkeeping() throws {
    for difference in drift.differences {
      if case .missingBookkeepingColumn(let table, let column, _) = difference, let statement = difference.statement {
        try database.execute(sql: statement)
        note(.column, in: table, column, "column \(column) of table \(table) is added")
      } else if case .otherBookkeepingTable(let table, let statement) = difference {
        try remake(table, statement)
      }
    }
    let columns = drift.differences.compactMap { difference in
      if case .missingBookkeepingColumn("Z_PRIMARYKEY", let column, _) = difference { column } else { nil }
    }
    let isRemade = drift.differences.contains { difference in
      if case .otherBookkeepingTable("Z_PRIMARYKEY", _) = difference { true } else { false }
    }
    if isRemade || !columns.isEmpty { try completeFrameworkRows(lacking: Set(columns)) }
  }

  /// The most rows of a recreated bookkeeping table, far above any model's entities.
  private static let rowLimit = 65536

  private mutating func remake(_ name: String, _ statement: String) throws {
    try requireNothingElse(in: name)
    guard try rows(of: name) <= Self.rowLimit else {
      throw Self.refused("table \(name) has more rows than a model can have entities")
    }
    let columns = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_info(?) ORDER BY cid", arguments: [name])
    let list = columns.map(\.sqlName).joined(separator: ", ")
    let values = try Row.fetchAll(database, sql: "SELECT \(list) FROM \(name)").map { Array($0.databaseValues) }
    let records = values.map { Dictionary(zip(columns.map { $0.uppercased() }, $0), uniquingKeysWith: { $1 }) }
    try database.execute(sql: "DROP TABLE \(name)")
    try database.execute(sql: statement)
    if name == "Z_PRIMARYKEY" {
      try insertKeyRows(records)
    } else if let first = records.first {
      guard records.count == 1 else {
        throw Self.refused("table \(name) has \(records.count) rows in the place of one")
      }
      try database.execute(
        sql: "INSERT INTO Z_METADATA (Z_VERSION, Z_UUID, Z_PLIST) VALUES (?, ?, ?)",
        arguments: [Int64.fromDatabaseValue(first["Z_VERSION"] ?? .null) ?? 1, first["Z_UUID"], first["Z_PLIST"]])
    }
    note(.remadeTable, in: name, name, "table \(name) is made anew as the framework declares it, with its rows")
  }

  /// Recreates an empty join table that lacks a key column, with its indexes; false if it stays.
  ///
  /// An added column would be outside the primary key, on which the framework relies for unique pairs.
  mutating func remakeEmpty(_ table: JoinTableLayout) throws -> Bool {
    if account.changes.contains(where: { $0.kind == .remadeTable && $0.table == table.name }) { return true }
    let expected = Set(table.columns.map { $0.uppercased() })
    guard let found = foundTable(table.name), try rows(of: table.name) == 0,
      found.columns.allSatisfy({ expected.contains($0.name.uppercased()) })
    else { return false }
    let indexes = try String.fetchAll(
      database, sql: "SELECT sql FROM sqlite_master WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL",
      arguments: [found.name])
    try database.execute(sql: "DROP TABLE \(found.name.quotedName)")
    try database.execute(sql: table.statement)
    // Run one statement only: a file may contain several.
    for index in indexes { try database.makeStatement(sql: index).execute() }
    note(
      .remadeTable, in: table.name, table.name,
      "join table \(printable(table.name)), which is empty, is made anew as the model has it")
    return true
  }

  /// Rejects a table with app columns or indexes, which would be lost.
  private func requireNothingElse(in name: String) throws {
    let own = Set(["Z_ENT", "Z_NAME", "Z_SUPER", "Z_MAX", "Z_VERSION", "Z_UUID", "Z_PLIST"])
    let all = try String.fetchAll(database, sql: "SELECT name FROM pragma_table_xinfo(?)", arguments: [name])
    let others = all.filter { !own.contains($0.uppercased()) }
    let indexes = try Int.fetchOne(
      database,
      sql: "SELECT count(*) FROM sqlite_master WHERE type = 'index' AND upper(tbl_name) = ? AND sql IS NOT NULL",
      arguments: [name])
    guard others.isEmpty, indexes == 0 else {
      throw Self.refused(
        "table \(name) is not declared as the framework does it, and has columns or indexes of the app's",
        hint: "Drop what is the app's in a copy of the store, then repair that; this store is as it was.")
    }
  }

  // MARK: Z_PRIMARYKEY

  /// Restores the rows of `Z_PRIMARYKEY` by number, or else by name.
  private func insertKeyRows(_ records: [[String: DatabaseValue]]) throws {
    var found: [Int64: KeyRow] = [:]
    for record in records {
      let name = String.fromDatabaseValue(record["Z_NAME"] ?? .null)
      guard let number = integer(record["Z_ENT"]) ?? self.number(ofEntity: name) else {
        throw Self.refused("a row of Z_PRIMARYKEY has no entity number, and its name is none of the model's")
      }
      var row = KeyRow(name: name, parent: integer(record["Z_SUPER"]), highest: integer(record["Z_MAX"]) ?? 0)
      if let other = found[number] {
        guard other.name == row.name, other.parent == row.parent else {
          throw Self.refused("Z_PRIMARYKEY has two rows of entity number \(number), and they differ")
        }
        row.highest = max(row.highest, other.highest)
      }
      found[number] = row
    }
    for (number, row) in found.ordered(by: { $0.key < $1.key }) {
      try database.execute(
        sql: "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?, ?, ?, ?)",
        arguments: [number, row.name, row.parent, row.highest])
    }
  }

  private func integer(_ value: DatabaseValue?) -> Int64? {
    switch value?.storage {
    case .int64(let number): number
    case .double(let number): Int64(exactly: number)
    case .string(let text): Int64(text)
    case .blob, .null, nil: nil
    }
  }

  /// By number (format section 3.3).
  private static let historyNames = [16001: "CHANGE", 16002: "TRANSACTION", 16003: "TRANSACTIONSTRING"]

  private func number(ofEntity name: String?) -> Int64? {
    guard let name else { return nil }
    let number = layout.entity(named: name)?.number ?? Self.historyNames.first { $0.value == name }?.key
    return number.map(Int64.init)
  }

  /// Fills new columns of the framework's own entity rows; the model's follow later.
  private func completeFrameworkRows(lacking columns: Set<String>) throws {
    let reserved = "Z_ENT > \(StoreRebuild.firstReservedNumber)"
    let numbers = try Int64.fetchAll(database, sql: "SELECT Z_ENT FROM Z_PRIMARYKEY WHERE \(reserved) ORDER BY Z_ENT")
    for number in numbers {
      if columns.contains("Z_NAME") || columns.contains("Z_SUPER") {
        guard let name = Self.historyNames[Int(number)] else {
          throw Self.refused(
            "Z_PRIMARYKEY lacks \(columns.sorted().joined(separator: " and ")), and row \(number) of it is of an entity "
              + "of the framework's whose name or parent cannot be told")
        }
        try database.execute(
          sql: "UPDATE Z_PRIMARYKEY SET Z_NAME = ifnull(Z_NAME, ?), Z_SUPER = ifnull(Z_SUPER, 0) WHERE Z_ENT = ?",
          arguments: [name, number])
      }
      guard columns.contains("Z_MAX"),
        let name = try String.fetchOne(
          database, sql: "SELECT Z_NAME FROM Z_PRIMARYKEY WHERE Z_ENT = ?", arguments: [number]),
        let table = foundTable("A" + name), hadColumn("Z_PK", in: table.name)
      else { continue }
      try database.execute(
        sql:
          "UPDATE Z_PRIMARYKEY SET Z_MAX = (SELECT ifnull(max(Z_PK), 0) FROM \(table.name.quotedName)) "
          + "WHERE Z_ENT = ?", arguments: [number])
    }
    guard columns.contains("Z_MAX") else { return }
    try database.execute(sql: "UPDATE Z_PRIMARYKEY SET Z_MAX = 0 WHERE Z_MAX IS NULL")
  }
}

extension RepairRun {
  /// Adds missing indexes; a unique one with collisions is reported.
  mutating func addIndexes() throws {
    for difference in drift.differences {
      if case .missingIndex(let index) = difference {
        try add(index)
      } else if case .missingSpatialIndex(let index) = difference {
        try layout.make(index, on: database)
        note(
          .spatialIndex, in: index.tableName, index.name,
          "R-tree index \(printable(index.name)) of table \(printable(index.tableName)) is added and filled")
      }
    }
  }

  private mutating func add(_ index: IndexLayout) throws {
    guard try database.kind(ofObject: index.name) == nil else { return leaveOutTaken(index) }
    do {
      try database.execute(sql: index.statement)
      note(kind(of: index), in: index.tableName, index.name, "\(place(of: index)) is added")
    } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT {
      try leaveOutColliding(index)
    }
  }

  /// Whether nothing is missing, or only indexes that can't be added; reports them and changes nothing.
  mutating func hasNothingToAdd() throws -> Bool {
    for difference in drift.differences {
      guard case .missingIndex(let index) = difference else { return false }
      if try database.kind(ofObject: index.name) != nil {
        leaveOutTaken(index)
        continue
      }
      guard index.isUnique, try leaveOutColliding(index) > 0 else { return false }
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
      kind(of: index), in: index.tableName, index.name, "\(place(of: index)) is left out: something else has its name")
  }

  @discardableResult
  private mutating func leaveOutColliding(_ index: IndexLayout) throws -> Int {
    let place = place(of: index)
    let key = layout.table(named: index.tableName) == nil ? "rowid" : "Z_PK"
    return try leaveOut(kind(of: index), in: index.tableName, index.name, rowsOf: index.collisions, key: key) { rows in
      "\(place) is left out: \(counted(rows, "record")) have values that others have too"
    }
  }
}
