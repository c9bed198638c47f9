internal import GRDB
internal import PersistentStore
internal import Platform

/// What a step finds in its source before it begins.
struct SourceContents {
  /// The tables as they really are, and everything that the app added.
  let schema: SQLSchema

  /// The statements of indexes by name; nil for those that SQLite makes by itself.
  let indexStatements: [String: String]

  /// The records of each entity, by table and number.
  private(set) var rows: [String: [Int: Int]] = [:]

  /// How many rows tables have; only of those that were asked for, and where nothing else has been counted.
  private var rowCounts: [String: Int] = [:]

  /// In words, a column of the model's tables that the model does not have, or that is declared otherwise; nil for none.
  ///
  /// Migrations of Core Data's that were broken off leave such columns behind.
  private(set) var unexpectedColumn: String?

  /// The first table that has not the primary key of the model; nil for none.
  private(set) var looseTable: String?

  /// The text encoding as SQLite names it; both files of a step have the same.
  private(set) var encoding = "UTF-8"

  /// Reads the schema, which costs next to nothing.
  ///
  /// - Throws: `migration-data-violation` where the store lacks a table or a column of its model.
  init(outlineOf database: Database, _ layout: StepLayout) throws {
    try self.init(schema: SQLSchema(database), database, layout)
  }

  /// Begins with a schema that has been read already.
  ///
  /// - Throws: `migration-data-violation` where the store lacks a table or a column of its model.
  init(schema: SQLSchema, _ database: Database, _ layout: StepLayout) throws {
    self.schema = schema
    indexStatements = try Self.indexStatements(database)
    encoding = try Self.encoding(of: database)
    try checkSchema(layout)
    looseTable = RecordRules(layout.source).looseKeys(in: schema).first?.table
  }

  /// Reads the schema and counts the records.
  ///
  /// - Throws: `migration-data-violation` where the store lacks a table or a column of its model, or holds records of
  ///   an entity that the model does not have.
  init(_ database: Database, _ layout: StepLayout) throws {
    try self.init(outlineOf: database, layout)
    try countRows(database, layout)
  }

  private static func encoding(of database: Database) throws -> String {
    let name = try String.fetchOne(database, sql: "PRAGMA encoding") ?? ""
    return ["UTF-16le", "UTF-16be"].contains(name) ? name : "UTF-8"
  }

  /// The values in columns that are none of the model's, which a rebuild has no place for.
  func unexpectedColumnLosses(_ database: Database, _ layout: StepLayout) throws -> [MigrationPlan.Finding] {
    try layout.sourceSchema().differences(to: schema).compactMap { difference in
      guard case .unexpectedColumn(let table, let column) = difference else { return nil }
      let (name, key) = (SQLText.quotedIdentifier(table), SQLText.quotedIdentifier(column))
      let rows = try Int.fetchOne(database, sql: "SELECT count(\(key)) FROM \(name)") ?? 0
      guard rows > 0 else { return nil }
      let entity = layout.source.table(named: table)?.rootEntityName ?? table
      return MigrationPlan.Finding(
        kind: "column-of-the-app", entity: entity, property: column, rows: rows, examples: [],
        text: "\(printable(entity)): column \(printable(column)) is none of the model's: its values are left behind")
    }
  }

  /// Counts the records of each entity.
  ///
  /// - Throws: `migration-data-violation` where there are records of an entity that the model does not have.
  mutating func countRows(_ database: Database, _ layout: StepLayout) throws {
    for table in layout.source.tables { try countRows(of: table, database, layout) }
  }

  /// Counts the rows of a table, whatever they are of.
  mutating func countRows(of table: String, _ database: Database) throws {
    rowCounts[table] = try Int.fetchOne(database, sql: "SELECT count(*) FROM \(SQLText.identifier(table))") ?? 0
  }

  /// How many rows a table has; 0 where they have not been counted.
  func rowCount(of table: String) -> Int { rowCounts[table] ?? rows[table]?.values.reduce(0, +) ?? 0 }

  private static func indexStatements(_ database: Database) throws -> [String: String] {
    var statements: [String: String] = [:]
    let cursor = try Row.fetchCursor(
      database, sql: "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    while let row = try cursor.next() {
      let name: DatabaseValue = row[0]
      let sql: DatabaseValue = row[1]
      if let name = String.fromDatabaseValue(name), let sql = String.fromDatabaseValue(sql) { statements[name] = sql }
    }
    return statements
  }

  private mutating func checkSchema(_ layout: StepLayout) throws {
    let differences = try layout.sourceSchema().differences(to: schema)
    unexpectedColumn =
      differences.lazy.compactMap { difference -> String? in
        switch difference {
        case .unexpectedColumn(let table, let column): "column \(column) of table \(table) is not the model's"
        case .otherType(let table, let column, _, _): "column \(column) of table \(table) is declared otherwise"
        case .missingTable, .unexpectedTable, .missingColumn, .missingIndex, .unexpectedIndex: nil
        }
      }.first
    // Tables of R-tree indexes are made anew, and a model cache may be lacking (format section 3.4).
    let dispensable = Set(layout.source.spatialIndexes.map(\.name)).union(["Z_MODELCACHE"])
    let missing = differences.lazy.compactMap { difference -> String? in
      switch difference {
      case .missingTable(let table): dispensable.contains(table) ? nil : "table \(printable(table))"
      case .missingColumn(let table, let column): "column \(printable(table)).\(printable(column))"
      case .unexpectedTable, .unexpectedColumn, .otherType, .missingIndex, .unexpectedIndex: nil
      }
    }
    guard let first = missing.first else { return }
    throw MigrationError(
      .dataViolation, detail: "the store lacks \(first), which its model has",
      hint: "Salvage the store; what is left of it can be put into a new one.")
  }

  private mutating func countRows(of table: TableLayout, _ database: Database, _ layout: StepLayout) throws {
    let numbers = layout.source.entities.filter { $0.tableName == table.name }.map(\.number)
    let sums = numbers.map { "sum(Z_ENT = \($0))" }.joined(separator: ", ")
    let name = SQLText.identifier(table.name)
    guard let row = try Row.fetchOne(database, sql: "SELECT count(*), \(sums) FROM \(name)") else { return }
    var counted: [Int: Int] = [:]
    for (index, number) in numbers.enumerated() {
      let value: DatabaseValue = row[index + 1]
      counted[number] = Int.fromDatabaseValue(value) ?? 0
    }
    let total: DatabaseValue = row[0]
    let unknown = (Int.fromDatabaseValue(total) ?? 0) - counted.values.reduce(0, +)
    if unknown > 0 { throw try Self.unknownRecords(in: table, numbers, database) }
    rows[table.name] = counted
  }

  /// The error that names the records of no entity.
  static func unknownRecords(in table: TableLayout, _ numbers: [Int], _ database: Database) throws -> MigrationError {
    let place = "FROM \(SQLText.identifier(table.name)) WHERE Z_ENT IS NULL OR Z_ENT NOT IN \(numbers.sqlList)"
    let unknown = try Int.fetchOne(database, sql: "SELECT count(*) \(place)") ?? 0
    let keys = try Int64.fetchAll(database, sql: "SELECT Z_PK \(place) ORDER BY Z_PK LIMIT 10")
    return MigrationError(
      .dataViolation,
      detail:
        "\(counted(unknown, "row")) of table \(printable(table.name)) \(unknown == 1 ? "is" : "are") of no entity of the "
        + "model; primary keys: \(keys.sqlList)",
      hint: "Salvage the store, or delete these rows; the store is as it was.", entityName: table.rootEntityName)
  }

  /// Whether the columns of a table of the store are declared as those of a new table.
  func hasSameTypes(_ name: String, _ table: TableLayout) -> Bool {
    schema.tables[name]?.columns.map { $0.declaredType.uppercased() } == table.columns.map(\.type.rawValue)
  }
}

extension SQLSchema {
  /// Whether there is a table of that name, without regard to case, as SQLite compares names.
  func hasTable(_ name: String) -> Bool { tables.keys.contains { $0.uppercased() == name.uppercased() } }
}
