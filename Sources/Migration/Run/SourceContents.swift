internal import GRDB
internal import PersistentStore
internal import Platform

/// A step's view of its source.
struct SourceContents {
  let schema: SQLSchema

  /// Nil for SQLite's automatic indexes.
  let indexStatements: [String: String]

  /// By table and entity number.
  private(set) var rows: [String: [Int: Int]] = [:]

  /// The row counts of requested tables, if records were not counted.
  private var rowCounts: [String: Int] = [:]

  /// A description of a column the model lacks or declares differently, if any.
  ///
  /// Aborted Core Data migrations leave such columns.
  private(set) var unexpectedColumn: String?

  private(set) var looseTable: String?

  /// SQLite's name of the text encoding, equal in both files of a step.
  private(set) var encoding = "UTF-8"

  /// Takes a known schema.
  ///
  /// - Throws: `migration-data-violation` for a missing table or column.
  init(schema: SQLSchema, _ database: Database, _ layout: StepLayout) throws {
    self.schema = schema
    indexStatements = try Self.indexStatements(database)
    encoding = try Self.encoding(of: database)
    try checkSchema(layout)
    looseTable = RecordRules(layout.source).looseKeys(in: schema).first?.table
  }

  /// Reads the schema and counts records.
  ///
  /// - Throws: `migration-data-violation` for a missing table or column, or records of an unknown entity.
  init(_ database: Database, _ layout: StepLayout) throws {
    try self.init(schema: SQLSchema(database), database, layout)
    for table in layout.source.tables { try countRows(of: table, database, layout) }
  }

  private static func encoding(of database: Database) throws -> String {
    let name = try String.fetchOne(database, sql: "PRAGMA encoding") ?? ""
    return ["UTF-16le", "UTF-16be"].contains(name) ? name : "UTF-8"
  }

  /// The values in columns outside the model, which a rebuild drops.
  func unexpectedColumnLosses(_ database: Database, _ layout: StepLayout) throws -> [MigrationPlan.Finding] {
    try layout.sourceSchema().differences(to: schema).compactMap { difference in
      guard case .unexpectedColumn(let table, let column) = difference else { return nil }
      let (name, key) = (table.quotedName, column.quotedName)
      let rows = try Int.fetchOne(database, sql: "SELECT count(\(key)) FROM \(name)") ?? 0
      guard rows > 0 else { return nil }
      let entity = layout.source.table(named: table)?.rootEntityName ?? table
      return MigrationPlan.Finding(
        kind: "column-of-the-app", entity: entity, property: column, rows: rows,
        text: "\(printable(entity)): column \(printable(column)) is none of the model's: its values are left behind")
    }
  }

  mutating func countRows(of table: String, _ database: Database) throws {
    rowCounts[table] = try database.count(from: table.sqlName)
  }

  /// A table's row count; 0 if not counted.
  func rowCount(of table: String) -> Int { rowCounts[table] ?? rows[table]?.values.reduce(0, +) ?? 0 }

  private static func indexStatements(_ database: Database) throws -> [String: String] {
    var statements: [String: String] = [:]
    let cursor = try Row.fetchCursor(
      database, sql: "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    while let row = try cursor.next() {
      if let name = String.fromDatabaseValue(row[0]) { statements[name] = String.fromDatabaseValue(row[1]) }
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
    // R-trees are rebuilt, and model caches are optional (format section 3.4).
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
    let name = table.name.sqlName
    guard let row = try Row.fetchOne(database, sql: "SELECT count(*), \(sums) FROM \(name)") else { return }
    var counted: [Int: Int] = [:]
    for (index, number) in numbers.enumerated() { counted[number] = Int.fromDatabaseValue(row[index + 1]) ?? 0 }
    let unknown = (Int.fromDatabaseValue(row[0]) ?? 0) - counted.values.reduce(0, +)
    if unknown > 0 { throw try Self.unknownRecords(in: table, numbers, database) }
    rows[table.name] = counted
  }

  static func unknownRecords(in table: TableLayout, _ numbers: [Int], _ database: Database) throws -> MigrationError {
    let place = "\(table.name.sqlName) WHERE Z_ENT IS NULL OR Z_ENT NOT IN \(numbers.sqlList)"
    let unknown = try database.count(from: place)
    let keys = try database.examples(from: place, key: "Z_PK")
    return MigrationError(
      .dataViolation,
      detail:
        "\(counted(unknown, "row")) of table \(printable(table.name)) \(unknown == 1 ? "is" : "are") of no entity of the "
        + "model; primary keys: \(keys.sqlList)",
      hint: "Salvage the store, or delete these rows; the store is as it was.", entityName: table.rootEntityName)
  }

  func hasSameTypes(_ name: String, _ table: TableLayout) -> Bool {
    schema.tables[name]?.columns.map { $0.declaredType.uppercased() } == table.columns.map(\.type.rawValue)
  }
}

extension SQLSchema {
  /// Whether the table exists, ignoring case as SQLite does.
  func hasTable(_ name: String) -> Bool { tables.keys.contains { $0.uppercased() == name.uppercased() } }
}
