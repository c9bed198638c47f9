internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// What a step finds in its source before it begins.
struct SourceContents {
  /// The tables as they really are, and everything that the app added.
  let schema: SQLSchema

  /// The statements of indexes by name; nil for those that SQLite makes by itself.
  let indexStatements: [String: String]

  /// The records of each entity, by table and number.
  private(set) var rows: [String: [Int: Int]] = [:]

  /// Reads the schema and counts the records.
  ///
  /// - Throws: `migration-data-violation` where the store lacks a table or a column of its model, or holds records of
  ///   an entity that the model does not have.
  init(_ database: Database, _ layout: StepLayout) throws {
    schema = try SQLSchema(database)
    var statements: [String: String] = [:]
    let cursor = try Row.fetchCursor(
      database, sql: "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    while let row = try cursor.next() {
      let name: DatabaseValue = row[0]
      let sql: DatabaseValue = row[1]
      if let name = String.fromDatabaseValue(name), let sql = String.fromDatabaseValue(sql) { statements[name] = sql }
    }
    indexStatements = statements
    try checkSchema(layout)
    for table in layout.source.tables { try countRows(of: table, database, layout) }
  }

  private func checkSchema(_ layout: StepLayout) throws {
    let missing = try SQLSchema(layout.source).differences(to: schema).compactMap { difference -> String? in
      switch difference {
      case .missingTable(let table): "table \(printable(table))"
      case .missingColumn(let table, let column): "column \(printable(table)).\(printable(column))"
      default: nil
      }
    }
    // Tables of R-tree indexes are made anew, and a model cache may be lacking (format section 3.4).
    let spatial = Set(layout.source.spatialIndexes.map { "table \(printable($0.name))" })
    let serious = missing.filter { $0 != "table Z_MODELCACHE" && !spatial.contains($0) }
    guard let first = serious.first else { return }
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
    if unknown > 0 {
      let keys = try Int64.fetchAll(
        database,
        sql: "SELECT Z_PK FROM \(name) WHERE Z_ENT IS NULL OR Z_ENT NOT IN \(numbers.sqlList) ORDER BY Z_PK LIMIT 10")
      throw MigrationError(
        .dataViolation,
        detail: "\(unknown) rows of table \(printable(table.name)) are of no entity of the model, for instance those "
          + "with the primary keys \(keys.sqlList)",
        hint: "Salvage the store, or delete these rows; the store is as it was.", entityName: table.rootEntityName)
    }
    rows[table.name] = counted
  }

  /// Whether the columns of a table of the store are declared as those of a new table.
  func hasSameTypes(_ name: String, _ table: TableLayout) -> Bool {
    schema.tables[name]?.columns.map { $0.declaredType.uppercased() } == table.columns.map(\.type.rawValue)
  }
}
