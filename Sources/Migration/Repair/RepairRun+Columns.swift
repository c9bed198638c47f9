internal import GRDB
import ManagedObjectModel
internal import PersistentStore
internal import Platform

extension RepairRun {
  /// Adds missing columns with a new store's types.
  mutating func addColumns() throws {
    for difference in drift.differences {
      switch difference {
      case .missingColumn(let name, let column):
        if let table = layout.table(named: name) { try add(column, to: table) }
      case .missingJoinColumn(let name, let column, _):
        if let table = layout.joinTables.first(where: { $0.name.uppercased() == name.uppercased() }) {
          try add(column, to: table)
        }
      case .missingTable, .missingJoinTable, .missingBookkeepingTable, .missingBookkeepingColumn,
        .otherBookkeepingTable, .missingIndex, .missingSpatialIndex, .missingTrigger, .missingKeyRow,
        .otherEntityNumber, .otherParentNumber, .otherEntityName, .lowKeyMaximum, .otherNumbersInRows,
        .missingNumbersInRows, .otherModelCached:
        continue
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
      sql: "ALTER TABLE \(SQLText.identifier(table.name)) ADD COLUMN \(column.sqlName) \(column.type.rawValue)")
    let own = try hasRows ? values(of: column, in: table) : []
    fillings += own
    noteMade(column, own)
    let given = try own.reduce(0) { sum, filling in
      let condition = filling.numbers.map { " WHERE Z_ENT IN \($0.sqlList)" } ?? ""
      return sum + (try database.count(from: "\(SQLText.identifier(table.name))\(condition)"))
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
      sql: "ALTER TABLE \(SQLText.identifier(table.name)) ADD COLUMN \(SQLText.identifier(column)) INTEGER")
    note(.column, in: table.name, column, "\(place) is added")
    // A new order starts as primary key order.
    let other = column == table.sourceOrderColumn ? table.sourceColumn : table.destinationColumn
    if isOrder {
      fillings.append(
        Filling(table: table.name, column: column, expression: SQLText.identifier(other), numbers: nil))
    }
  }

  // MARK: Values

  /// The values of a lightweight migration for a new property (format section 5.3); empty for NULL.
  private func values(of column: ColumnLayout, in table: TableLayout) throws -> [Filling] {
    func filling(_ expression: String, _ numbers: [Int]? = nil) -> Filling {
      Filling(table: table.name, column: column.name, expression: expression, numbers: numbers)
    }
    switch column.role {
    case .primaryKey: return []
    case .entityNumber:
      return layout.soleNumber(ofRoot: table.rootEntityName).map { [filling("\($0)")] } ?? []
    case .saveCount: return [filling("1")]
    case .attribute(let key, _):
      if try isSharedDefault(column, table) { return [] }
      return defaults(of: PropertyPath(key.name), key, column, table)
    case .compositeLeaf(let key, let path, _):
      return defaults(of: PropertyPath(key.name, leaf: path), key, column, table)
    case .toOne, .owner: return []
    case .toOneEntity(let key):
      guard case .toOne(let reference, _, _)? = layout.storage(of: key),
        let target = layout.destination(of: key)?.tableName
      else { return [] }
      let place = "\(SQLText.identifier(table.name)).\(SQLText.identifier(reference))"
      return [filling("(SELECT q.Z_ENT FROM \(SQLText.identifier(target)) AS q WHERE q.Z_PK = \(place))")]
    case .toOneOrder(let key):
      guard case .toOne(let reference, _, _)? = layout.storage(of: key) else { return [] }
      return [filling("CASE WHEN \(SQLText.identifier(reference)) IS NOT NULL THEN Z_PK END")]
    case .ownerOrder(let key):
      guard case .toManyByColumn(_, let reference, _)? = layout.storage(of: key) else { return [] }
      return [filling("CASE WHEN \(SQLText.identifier(reference)) IS NOT NULL THEN Z_PK END")]
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
    let place = "\(SQLText.identifier(table.name)) WHERE Z_ENT IN \(numbers.sqlList)"
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
      let values = (groups[group] ?? []).map { "\(SQLText.identifier($0.column)) = \($0.expression)" }
      let condition = group.numbers.map { " WHERE Z_ENT IN \($0.sqlList)" } ?? ""
      try database.execute(
        sql: "UPDATE \(SQLText.identifier(group.table)) SET \(values.joined(separator: ", "))\(condition)")
    }
  }

  // MARK: Derived attributes

  func computeDerivedValues() throws {
    for case .missingColumn(let table, let column) in drift.differences {
      guard case .attribute(let key, _) = column.role, let entity = layout.entity(named: key.entityName),
        let attribute = layout.property(key)?.attribute, attribute.isDerived,
        let value = layout.derivedValue(of: attribute, entity)
      else { continue }
      try database.execute(
        sql: "UPDATE main.\(SQLText.identifier(table)) AS o SET \(column.sqlName) = \(value) "
          + "WHERE o.Z_ENT IN \(Array(entity.numbers).sqlList)")
    }
  }
}
