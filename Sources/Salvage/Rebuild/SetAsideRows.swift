internal import GRDB
internal import PersistentStore

/// The rows that cannot be part of the rebuilt store, kept in a database of their own, attached as `aside`.
///
/// `lazaret_set_aside_T` has rows of `T` as they were found, each with the reason; `lazaret_references_cut` has the
/// references that led nowhere; `lazaret_converted_T` has the values that SQLite converted, as they stood; and the tables of rows that the raw salvage set aside are taken over with their evidence.
struct SetAsideRows {
  private let database: Database
  private var made: Set<String> = []

  /// From which database the rows of each table came first; those of another have other columns.
  private var schemas: [String: String] = [:]

  /// Whether anything is in it.
  private(set) var isUsed = false

  init(_ database: Database) { self.database = database }

  /// The columns of a row in a selection that gives a new table no types for them, so that SQLite converts no value.
  private static func unconverted(_ columns: [String], of row: String) -> String {
    columns.map { column in
      let name = SQLText.quotedIdentifier(column)
      return "+\(row).\(name) AS \(name)"
    }.joined(separator: ", ")
  }

  /// Copies rows of a raw table.
  ///
  /// - Parameter condition: which ones, as SQL over the row `r`.
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

  /// Keeps the values of columns for which the new store has no place; returns whether there are any.
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

  /// Keeps values of a table as they stood where the new store has what SQLite made of them.
  ///
  /// - Parameter selection: the key of each row, as `lazaret_key`, and the values.
  mutating func keepValues(of table: RawTables.Table, _ selection: String) throws {
    let name = "aside.\(SQLText.quotedIdentifier("lazaret_converted_\(table.name)"))"
    try database.execute(sql: "CREATE TABLE \(name) AS \(selection)")
    isUsed = true
  }

  /// Notes references that led nowhere.
  ///
  /// - Parameter source: a selection of the primary keys of the rows and what they led to.
  mutating func noteReferences(_ table: String, _ column: String, _ source: String) throws {
    if made.insert("").inserted {
      try database.execute(
        sql: "CREATE TABLE aside.lazaret_references_cut (\"table\" TEXT, \"column\" TEXT, \"row\" INTEGER, led_to)")
    }
    isUsed = true
    try database.execute(
      sql: "INSERT INTO aside.lazaret_references_cut SELECT ?, ?, * FROM (\(source))", arguments: [table, column])
  }

  /// Takes over what the raw salvage set aside, and the evidence where there is anything at all.
  ///
  /// - Parameter isDoubtful: whether any live row is doubtful, so that the evidence is kept in any case.
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
