package import ManagedObjectModel
import Platform

/// What a store lacks of the model that its own metadata names, or has other than that model wants it.
///
/// Every difference can be made good without touching a value, unless it says otherwise; remarks cannot, and are told.
public struct StoreDrift: Sendable, Hashable, Encodable {
  /// What has to be made good, in the order in which that can be done: tables, columns, indexes, triggers, bookkeeping.
  public var differences: [Difference] = []

  /// What is told beside it and changed by no repair.
  public var remarks: [Remark] = []

  /// Whether the store has everything that its model wants.
  public var isEmpty: Bool { differences.isEmpty }

  /// Whether a table or column is missing, so that records of the model would not fit in.
  public var concernsRecords: Bool {
    differences.contains { difference in
      switch difference {
      case .missingTable, .missingJoinTable, .missingBookkeepingTable, .missingColumn, .missingJoinColumn,
        .missingBookkeepingColumn:
        true
      case .otherBookkeepingTable, .missingIndex, .missingSpatialIndex, .missingTrigger, .missingKeyRow,
        .otherEntityNumber, .otherParentNumber, .otherEntityName, .lowKeyMaximum, .otherNumbersInRows,
        .missingNumbersInRows, .otherModelCached:
        false
      }
    }
  }
}

extension StoreDrift {
  /// One thing that a store lacks or has wrong.
  public enum Difference: Sendable, Hashable {
    /// The table of a hierarchy of entities is not there.
    case missingTable(TableLayout)

    /// A join table is not there.
    case missingJoinTable(JoinTableLayout)

    /// One of the tables every Core Data store has is not there; the statement creates it.
    case missingBookkeepingTable(name: String, statement: String)

    /// A column of one of those tables, other than its primary key, is not there.
    case missingBookkeepingColumn(table: String, column: String, type: String)

    /// One of those tables has not its primary key, or a type that changes integers; the statement creates it.
    case otherBookkeepingTable(name: String, statement: String)

    /// A column of an entity's table is not there.
    case missingColumn(table: String, column: ColumnLayout)

    /// A column of a join table is not there; all of them are integers.
    case missingJoinColumn(table: String, column: String, isKey: Bool)

    /// No index does what this one would do.
    case missingIndex(IndexLayout)

    /// An R-tree index is not there.
    case missingSpatialIndex(SpatialIndexLayout)

    /// A trigger is not there.
    case missingTrigger(TriggerLayout)

    /// `Z_PRIMARYKEY` has no row of an entity; the highest key is that of its table, 0 for sub-entities.
    case missingKeyRow(EntityLayout, highestKey: Int64)

    /// The row of an entity in `Z_PRIMARYKEY` has another number than the model gives it.
    case otherEntityNumber(EntityLayout, found: Int64)

    /// The row of an entity in `Z_PRIMARYKEY` names another parent than the model.
    case otherParentNumber(EntityLayout, found: Int64?)

    /// The row of an entity's number in `Z_PRIMARYKEY` has a name that no entity of the model has; nil where it has none.
    case otherEntityName(EntityLayout, found: String?)

    /// `Z_MAX` is below the highest primary key of the hierarchy's table, so that the next insert would collide.
    case lowKeyMaximum(EntityLayout, noted: Int64?, highestKey: Int64)

    /// Rows of a hierarchy's table have numbers of entities that are not of that hierarchy in the model, ascending.
    case otherNumbersInRows(table: String, numbers: [Int64])

    /// Rows of a hierarchy's table have no number of an entity: NULL, or something that is no integer.
    case missingNumbersInRows(table: String)

    /// The model in `Z_MODELCACHE` is not the one that the metadata names.
    case otherModelCached
  }

  /// Something noteworthy that no repair changes.
  public enum Remark: Sendable, Hashable {
    /// A column that the model has not refuses NULL and has no default, so that the framework cannot insert a row.
    case mandatoryColumn(table: String, column: String)

    /// A column is declared with another type than the model's.
    case otherType(table: String, column: String, expected: String, found: String)

    /// A table of an entity or of pairs has not the primary key of the model, so that two rows may have one key.
    case otherPrimaryKey(table: String, expected: String)

    /// Under the name of an expected object there is one that does something else.
    case otherObject(name: String, kind: String)
  }
}

extension StoreDrift.Difference {
  /// A stable word for programs; part of the command line's contract.
  public var code: String {
    switch self {
    case .missingTable, .missingBookkeepingTable: "missing-table"
    case .missingJoinTable: "missing-join-table"
    case .missingColumn, .missingJoinColumn, .missingBookkeepingColumn: "missing-column"
    case .otherBookkeepingTable: "other-table"
    case .missingIndex(let index): index.isUnique ? "missing-unique-index" : "missing-index"
    case .missingSpatialIndex: "missing-spatial-index"
    case .missingTrigger: "missing-trigger"
    case .missingKeyRow: "missing-key-row"
    case .otherParentNumber, .otherEntityName: "wrong-key-row"
    case .otherEntityNumber, .otherNumbersInRows, .missingNumbersInRows: "other-entity-number"
    case .lowKeyMaximum: "low-key-maximum"
    case .otherModelCached: "other-model-cached"
    }
  }

  /// The table, join table or index that is concerned; nil where the bookkeeping alone is.
  public var objectName: String? {
    switch self {
    case .missingTable(let table): table.name
    case .missingJoinTable(let table): table.name
    case .missingBookkeepingTable(let name, _), .otherBookkeepingTable(let name, _): name
    case .missingBookkeepingColumn(let table, let column, _): "\(table).\(column)"
    case .missingColumn(let table, let column): "\(table).\(column.name)"
    case .missingJoinColumn(let table, let column, _): "\(table).\(column)"
    case .missingIndex(let index): index.name
    case .missingSpatialIndex(let index): index.name
    case .missingTrigger(let trigger): trigger.name
    case .otherNumbersInRows(let table, _), .missingNumbersInRows(let table): table
    case .missingKeyRow, .otherEntityNumber, .otherParentNumber, .otherEntityName, .lowKeyMaximum, .otherModelCached:
      nil
    }
  }

  /// The entity that is concerned, where there is one.
  public var entityName: String? {
    switch self {
    case .missingTable(let table): table.rootEntityName
    case .missingJoinTable(let table): table.relationship.entityName
    case .missingColumn(_, let column): column.role.property?.entityName
    case .missingSpatialIndex(let index): index.entityName
    case .missingTrigger(let trigger): trigger.derivedAttribute?.entityName
    case .missingKeyRow(let entity, _), .otherEntityNumber(let entity, _), .otherParentNumber(let entity, _),
      .otherEntityName(let entity, _), .lowKeyMaximum(let entity, _, _):
      entity.name
    case .missingIndex(let index): index.purpose.entityName
    case .missingBookkeepingTable, .missingBookkeepingColumn, .otherBookkeepingTable, .missingJoinColumn,
      .otherNumbersInRows, .missingNumbersInRows,
      .otherModelCached:
      nil
    }
  }

  /// The statement that makes it good, where one statement does and no row is concerned.
  ///
  /// A column that is added has NULL in every row, as one that a migration adds without a default.
  public var statement: String? {
    switch self {
    case .missingTable(let table): table.statement
    case .missingJoinTable(let table): table.statement
    case .missingBookkeepingTable(_, let statement): statement
    case .missingBookkeepingColumn(let table, let column, let type):
      "ALTER TABLE \(table) ADD COLUMN \(column) \(type)"
    case .missingColumn(let table, let column):
      column.role == .primaryKey
        ? nil : "ALTER TABLE \(SQLText.identifier(table)) ADD COLUMN \(column.sqlName) \(column.type.rawValue)"
    case .missingJoinColumn(let table, let column, let isKey):
      isKey ? nil : "ALTER TABLE \(SQLText.identifier(table)) ADD COLUMN \(SQLText.identifier(column)) INTEGER"
    case .missingIndex(let index): index.statement
    case .missingSpatialIndex(let index): index.statement
    case .missingTrigger(let trigger): trigger.statement
    case .missingKeyRow, .otherEntityNumber, .otherParentNumber, .otherEntityName, .lowKeyMaximum,
      .otherNumbersInRows, .missingNumbersInRows, .otherModelCached, .otherBookkeepingTable:
      nil
    }
  }
}

extension IndexLayout.Purpose {
  /// The entity whose declaration asks for the index; nil for those that follow from the layout.
  fileprivate var entityName: String? {
    switch self {
    case .toOne(let key): key.entityName
    case .entityNumber, .joinTable: nil
    case .fetch(let entityName, _), .uniqueness(let entityName, _): entityName
    }
  }
}

extension StoreDrift.Difference: Encodable {
  /// Writes the difference in a stable word and in a sentence, with what is concerned.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "code": code, "words": words, "object": objectName, "entity": entityName, "statement": statement,
    ])
  }
}

extension StoreDrift.Remark: Encodable {
  /// Writes the remark in a stable word and in a sentence.
  public func encode(to encoder: any Encoder) throws { try encoder.encode(["code": code, "words": words]) }
}

extension StoreDrift {
  /// What a store lacks of a layout, and what its bookkeeping has other than it.
  ///
  /// - Parameters:
  ///   - outline: what the store has.
  ///   - layout: that of the model which the store's metadata names.
  ///   - hashes: the version hashes of that model.
  package init(of outline: StoreOutline, to layout: StoreLayout, hashes: [String: VersionHash]) {
    self.init()
    var comparison = DriftComparison(outline, layout)
    comparison.compareTables()
    comparison.compareIndexes()
    comparison.compareTriggers()
    comparison.compareKeyRows()
    comparison.compareRows()
    if case .model(let cached) = outline.cachedModel, cached != hashes {
      comparison.drift.differences.append(.otherModelCached)
    }
    self = comparison.drift
  }
}

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
