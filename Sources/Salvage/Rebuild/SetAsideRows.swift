internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The rows that do not fit the rebuilt store, in a database of their own, attached as `aside`.
///
/// `lazaret_set_aside_T` has rows of `T` as found, with reasons; `lazaret_references_cut` has dangling references;
/// `lazaret_converted_T` has the originals of converted values; the raw salvage's set-aside tables are copied with
/// their evidence.
struct SetAsideRows {
  private let database: GRDB.Database
  private var made: Set<String> = []

  /// The database of each table's first rows; those of another have other columns.
  private var schemas: [String: String] = [:]

  private(set) var isUsed = false

  init(_ database: GRDB.Database) { self.database = database }

  /// Selects columns without types, so that SQLite converts no value.
  private static func unconverted(_ columns: [String], of row: String) -> String {
    columns.map { column in
      let name = SQLText.quotedIdentifier(column)
      return "+\(row).\(name) AS \(name)"
    }.joined(separator: ", ")
  }

  /// - Parameter condition: SQL on the row `r`.
  mutating func keep(
    _ table: RawTables.Table, _ reason: SalvageReport.Rebuild.SetAsideReason, where condition: String
  ) throws {
    let first = schemas[table.name.lowercased(), default: table.schema]
    schemas[table.name.lowercased()] = first
    let suffix = first == table.schema ? "" : "_as_found"
    let name = "aside.\(SQLText.quotedIdentifier("lazaret_set_aside_\(table.name)\(suffix)"))"
    let columns = Self.unconverted(table.columns.map(\.name), of: "r")
    let key = table.rowid.map { "r.\($0)" } ?? "NULL"
    let selection =
      "SELECT '\(reason.rawValue)' AS lazaret_reason, \(key) AS lazaret_key, \(columns) FROM \(table.sql) AS r"
    if !made.contains(name) {
      try database.execute(sql: "CREATE TABLE \(name) AS \(selection) WHERE 0")
      made.insert(name)
    }
    isUsed = true
    try database.execute(sql: "INSERT INTO \(name) \(selection) WHERE \(condition)")
  }

  /// Copies values without a column in the new store; returns whether there were any.
  mutating func keepColumns(_ columns: [String], of table: RawTables.Table) throws -> Bool {
    let list = columns.map(SQLText.quotedIdentifier)
    let isAny = SQLText.any(list.map { "\($0) IS NOT NULL" })
    guard
      try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(table.sql) WHERE \(isAny))") == true
    else { return false }
    let name = "aside.\(SQLText.quotedIdentifier("lazaret_columns_\(table.name)"))"
    let key = table.rowid ?? "NULL"
    try database.execute(
      sql: "CREATE TABLE \(name) AS SELECT \(key) AS lazaret_key, \(Self.unconverted(columns, of: "r")) "
        + "FROM \(table.sql) AS r WHERE \(isAny)")
    isUsed = true
    return true
  }

  /// Copies the originals of converted values.
  ///
  /// - Parameter selection: the row's key as `lazaret_key`, and the values.
  mutating func keepValues(of table: RawTables.Table, _ selection: String) throws {
    let name = "aside.\(SQLText.quotedIdentifier("lazaret_converted_\(table.name)"))"
    try database.execute(sql: "CREATE TABLE \(name) AS \(selection)")
    isUsed = true
  }

  /// - Parameter source: selects primary keys of rows with the missing keys.
  mutating func noteReferences(_ table: String, _ column: String, _ source: String) throws {
    if made.insert("").inserted {
      try database.execute(
        sql: "CREATE TABLE aside.lazaret_references_cut (\"table\" TEXT, \"column\" TEXT, \"row\" INTEGER, led_to)")
    }
    isUsed = true
    try database.execute(
      sql: "INSERT INTO aside.lazaret_references_cut SELECT ?, ?, * FROM (\(source))", arguments: [table, column])
  }

  /// Copies the raw salvage's set-aside rows, with the evidence if any rows are set aside.
  ///
  /// - Parameter isDoubtful: whether live rows are doubtful, which keeps the evidence in any case.
  mutating func takeOver(_ raw: RawTables, isDoubtful: Bool) throws {
    for table in raw.all {
      let isApart = ["lazaret_lost_and_found", OutputRole.other.name(""), OutputRole.deleted.name("")]
        .contains(where: table.name.hasPrefix)
      guard isApart,
        try Bool.fetchOne(database, sql: "SELECT EXISTS (SELECT 1 FROM \(table.sql))") == true
      else { continue }
      isUsed = true
      try database.execute(
        sql: "CREATE TABLE aside.\(SQLText.quotedIdentifier(table.name)) AS "
          + "SELECT \(Self.unconverted(table.columns.map(\.name), of: "r")) FROM \(table.sql) AS r")
    }
    guard isUsed || isDoubtful, raw["lazaret_evidence"] != nil else { return }
    isUsed = true
    try database.execute(sql: "CREATE TABLE aside.lazaret_evidence AS SELECT * FROM raw.lazaret_evidence")
    for view in ["lazaret_pages", "lazaret_provenance"] {
      let statement = try String.fetchOne(
        database, sql: "SELECT sql FROM raw.sqlite_master WHERE type = 'view' AND name = ?", arguments: [view])
      guard let statement, statement.hasPrefix("CREATE VIEW \(view) ") else { continue }
      try database.execute(sql: "CREATE VIEW aside.\(view) " + statement.dropFirst("CREATE VIEW \(view) ".count))
    }
  }
}

/// The values that SQLite converts on insertion because their column declares another storage class.
///
/// They exist only where the declaration was changed without SQLite, whose check reports them as damage. The new store
/// gets the converted values; the originals are set aside.
struct ConvertedValues {
  private struct Column {
    var name: String
    var condition: String
  }

  private let source: RawTables.Table
  private var columns: [Column] = []

  /// Selects the columns with the same affinity in the new store.
  init(of source: RawTables.Table, into targets: [(source: String, type: String)]) {
    self.source = source
    for target in targets {
      guard let column = source.columns.first(where: { $0.name == target.source }) else { continue }
      let affinity = Affinity(declaredType: target.type)
      guard Affinity(declaredType: column.type) == affinity else { continue }
      let value = "r.\(SQLText.quotedIdentifier(column.name))"
      switch affinity {
      case .text: columns.append(Column(name: column.name, condition: "typeof(\(value)) IN ('integer', 'real')"))
      case .integer, .real, .numeric:
        // SQLite converts only text that is entirely a number.
        columns.append(
          Column(name: column.name, condition: "(typeof(\(value)) = 'text' AND +\(value) = CAST(\(value) AS NUMERIC))"))
      case .blob: break
      }
    }
  }

  /// Sets the original values aside; returns a remark, nil without any.
  func keep(in aside: inout SetAsideRows, _ database: GRDB.Database) throws -> String? {
    guard !columns.isEmpty else { return nil }
    let counts = columns.map { "total(\($0.condition))" }.joined(separator: ", ")
    guard let row = try Row.fetchOne(database, sql: "SELECT \(counts) FROM \(source.sql) AS r") else { return nil }
    var found: [Column] = []
    var total: Int64 = 0
    for (index, column) in columns.enumerated() {
      let count: Double = row[index]
      guard count > 0 else { continue }
      found.append(column)
      total += Int64(count)
    }
    guard total > 0 else { return nil }
    let key = source.rowid.map { "r.\($0)" } ?? "NULL"
    let values = found.map { column in
      let name = SQLText.quotedIdentifier(column.name)
      return "CASE WHEN \(column.condition) THEN r.\(name) END AS \(name)"
    }
    try aside.keepValues(
      of: source,
      "SELECT \(key) AS lazaret_key, \(values.joined(separator: ", ")) FROM \(source.sql) AS r "
        + "WHERE \(SQLText.any(found.map(\.condition)))")
    let names = found.prefix(6).map { printable($0.name) }.joined(separator: ", ") + (found.count > 6 ? ", …" : "")
    return
      "\(printable(source.name)) has values of another kind than its columns are declared for (\(names)); SQLite converted "
      + "\(total) of them, and they were set aside as they stood"
  }
}
