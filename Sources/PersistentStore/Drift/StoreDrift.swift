package import ManagedObjectModel
import Platform

/// A store's deviations from its metadata's model.
///
/// Differences are repairable without changing values unless noted; remarks are only reported.
public struct StoreDrift: Sendable, Hashable, Encodable {
  /// The repairable deviations in repair order: tables, columns, indexes, triggers, bookkeeping.
  public var differences: [Difference] = []

  /// Deviations that are reported but never repaired.
  public var remarks: [Remark] = []

  /// Whether the store has everything its model wants.
  public var isEmpty: Bool { differences.isEmpty }

  /// Whether a table or column is missing, so that the model's records would not fit.
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
  /// A repairable deviation.
  public enum Difference: Sendable, Hashable {
    case missingTable(TableLayout)

    case missingJoinTable(JoinTableLayout)

    /// A bookkeeping table is missing; the statement creates it.
    case missingBookkeepingTable(name: String, statement: String)

    /// A column of a bookkeeping table, other than its primary key, is missing.
    case missingBookkeepingColumn(table: String, column: String, type: String)

    /// A bookkeeping table lacks its primary key or changes integers; the statement creates it.
    case otherBookkeepingTable(name: String, statement: String)

    case missingColumn(table: String, column: ColumnLayout)

    /// All join table columns are integers.
    case missingJoinColumn(table: String, column: String, isKey: Bool)

    /// No index serves this purpose.
    case missingIndex(IndexLayout)

    case missingSpatialIndex(SpatialIndexLayout)

    case missingTrigger(TriggerLayout)

    /// `Z_PRIMARYKEY` lacks an entity; the highest key is its table's, 0 for sub-entities.
    case missingKeyRow(EntityLayout, highestKey: Int64)

    /// `Z_PRIMARYKEY` and the model number the entity differently.
    case otherEntityNumber(EntityLayout, found: Int64)

    case otherParentNumber(EntityLayout, found: Int64?)

    /// `Z_PRIMARYKEY` has an unknown or no name for an entity's number.
    case otherEntityName(EntityLayout, found: String?)

    /// `Z_MAX` is below the table's highest key, so that the next insert would collide.
    case lowKeyMaximum(EntityLayout, noted: Int64?, highestKey: Int64)

    /// Rows have numbers outside the hierarchy, in ascending order.
    case otherNumbersInRows(table: String, numbers: [Int64])

    /// Rows have a NULL or non-integer entity number.
    case missingNumbersInRows(table: String)

    /// `Z_MODELCACHE` holds another model than the metadata names.
    case otherModelCached
  }

  /// A deviation that no repair changes.
  public enum Remark: Sendable, Hashable {
    /// An extra column refuses NULL without a default, so that Core Data cannot insert rows.
    case mandatoryColumn(table: String, column: String)

    case otherType(table: String, column: String, expected: String, found: String)

    /// The model's primary key is missing, so that two rows may share a key.
    case otherPrimaryKey(table: String, expected: String)

    /// An object with an expected name does something else.
    case otherObject(name: String, kind: String)
  }
}

extension StoreDrift.Difference {
  /// The stable code, part of the command line's contract.
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

  /// The affected table, join table or index; nil for bookkeeping alone.
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

  /// The affected entity, if any.
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
      .otherNumbersInRows, .missingNumbersInRows, .otherModelCached:
      nil
    }
  }

  /// The repairing statement, if one suffices without touching rows.
  ///
  /// An added column is NULL, as in a migration without a default.
  public var statement: String? {
    switch self {
    case .missingTable(let table): table.statement
    case .missingJoinTable(let table): table.statement
    case .missingBookkeepingTable(_, let statement): statement
    case .missingBookkeepingColumn(let table, let column, let type): "ALTER TABLE \(table) ADD COLUMN \(column) \(type)"
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
  /// The declaring entity; nil for implied indexes.
  fileprivate var entityName: String? {
    switch self {
    case .toOne(let key): key.entityName
    case .entityNumber, .joinTable: nil
    case .fetch(let entityName, _), .uniqueness(let entityName, _): entityName
    }
  }
}

extension StoreDrift.Difference: Encodable {
  /// Writes code, sentence and affected objects.
  public func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "code": code, "words": words, "object": objectName, "entity": entityName, "statement": statement,
    ])
  }
}

extension StoreDrift.Remark: Encodable {
  /// Writes code and sentence.
  public func encode(to encoder: any Encoder) throws { try encoder.encode(["code": code, "words": words]) }
}

extension StoreDrift {
  /// Compares a store with the layout and version hashes of its metadata's model.
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
  /// The deviation in one sentence without a period.
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
    case .otherModelCached: "the model in Z_MODELCACHE is not the one that the metadata names"
    }
  }
}

extension StoreDrift.Remark {
  /// The stable code, part of the command line's contract.
  public var code: String {
    switch self {
    case .mandatoryColumn: "mandatory-column"
    case .otherType: "other-type"
    case .otherObject: "other-object"
    case .otherPrimaryKey: "other-primary-key"
    }
  }

  /// The remark in one sentence without a period.
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
