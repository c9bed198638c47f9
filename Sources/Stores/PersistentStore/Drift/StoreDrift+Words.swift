internal import StoreFiles

extension StoreDrift.Difference {
  /// What is missing or wrong, in one sentence without a full stop.
  public var words: String {
    switch self {
    case .missingTable(let table):
      "table \(printable(table.name)) of entity \(printable(table.rootEntityName)) is missing"
    case .missingJoinTable(let table):
      "join table \(printable(table.name)) of relationship \(printable(table.relationship.description)) is missing"
    case .missingBookkeepingTable(let name, _): "table \(printable(name)) is missing"
    case .missingBookkeepingColumn(let table, let column, _): "column \(column) of table \(table) is missing"
    case .otherBookkeepingTable(let name, _): "table \(name) is not declared as the framework does it"
    case .missingColumn(let table, let column):
      "column \(printable(column.name)) of table \(printable(table)) is missing"
    case .missingJoinColumn(let table, let column, _):
      "column \(printable(column)) of join table \(printable(table)) is missing"
    case .missingIndex(let index):
      """
      \(index.isUnique ? "unique " : "")index \(printable(index.name)) of table \(printable(index.tableName)) over \
      \(index.columns.map { printable($0.name) }.joined(separator: ", ")) is missing
      """
    case .missingSpatialIndex(let index): "R-tree index \(printable(index.name)) is missing"
    case .missingTrigger(let trigger):
      "trigger \(printable(trigger.name)) of table \(printable(trigger.tableName)) is missing"
    case .missingKeyRow, .otherEntityNumber, .otherParentNumber, .otherEntityName, .lowKeyMaximum,
      .otherNumbersInRows, .missingNumbersInRows, .otherModelCached:
      bookkeepingWords
    }
  }

  private var bookkeepingWords: String {
    switch self {
    case .missingKeyRow(let entity, _): "Z_PRIMARYKEY has no row of entity \(printable(entity.name))"
    case .otherEntityNumber(let entity, let found):
      "Z_PRIMARYKEY gives entity \(printable(entity.name)) number \(found), the model \(entity.number)"
    case .otherParentNumber(let entity, let found):
      """
      Z_PRIMARYKEY gives entity \(printable(entity.name)) parent \(found.map { "\($0)" } ?? "NULL"), the model \
      \(entity.parentNumber)
      """
    case .otherEntityName(let entity, let found):
      """
      the row \(entity.number) of Z_PRIMARYKEY is of \(found.map { "\"\(printable($0))\"" } ?? "no entity"), in the \
      model it is of \(printable(entity.name))
      """
    case .lowKeyMaximum(let entity, let noted, let highest):
      """
      the highest primary key noted of entity \(printable(entity.name)) is \(noted.map { "\($0)" } ?? "NULL"), but its \
      table has \(highest)
      """
    case .otherNumbersInRows(let table, let numbers):
      """
      rows of table \(printable(table)) have entity numbers that are not of its hierarchy: \
      \(numbers.prefix(5).map { "\($0)" }.joined(separator: ", "))\(numbers.count > 5 ? " and more" : "")
      """
    case .missingNumbersInRows(let table): "rows of table \(printable(table)) have no entity number"
    case .missingTable, .missingJoinTable, .missingBookkeepingTable, .missingBookkeepingColumn, .otherBookkeepingTable,
      .missingColumn, .missingJoinColumn, .missingIndex, .missingSpatialIndex, .missingTrigger, .otherModelCached:
      "the model in Z_MODELCACHE is not the one that the metadata names"
    }
  }
}

extension StoreDrift.Remark {
  /// A stable word for programs; part of the command line's contract.
  public var code: String {
    switch self {
    case .mandatoryColumn: "mandatory-column"
    case .otherType: "other-type"
    case .otherObject: "other-object"
    case .otherPrimaryKey: "other-primary-key"
    }
  }

  /// What is noteworthy, in one sentence without a full stop.
  public var words: String {
    switch self {
    case .mandatoryColumn(let table, let column):
      """
      column \(printable(column)) of table \(printable(table)) is not the model's, refuses NULL and has no default, so \
      that no record can be inserted
      """
    case .otherType(let table, let column, let expected, let found):
      """
      column \(printable(column)) of table \(printable(table)) is declared as \(printable(found)), not as \
      \(printable(expected))
      """
    case .otherPrimaryKey(let table, let expected):
      "table \(printable(table)) has not \(expected) as its primary key, so that two rows may have one key"
    case .otherObject(let name, let kind): "\(kind) \(printable(name)) is another than the model's"
    }
  }
}
