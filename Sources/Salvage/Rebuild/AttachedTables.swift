internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The tables of a raw salvage, attached as `raw`; names are case-insensitive.
struct RawTables {
  struct Table {
    var name: String

    var columns: [(name: String, type: String)]

    var hasRowids: Bool

    var schema = "raw"

    /// A name for the rowid; nil without one.
    var rowid: String? {
      guard hasRowids else { return nil }
      return ["rowid", "_rowid_", "oid"].first { column($0) == nil }
    }

    /// Returns a column's name in the table's spelling.
    func column(_ name: String) -> String? { columns.first { $0.name.lowercased() == name.lowercased() }?.name }
  }

  private let tables: [String: Table]

  init(_ database: GRDB.Database) throws {
    var tables: [String: Table] = [:]
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT l.name, l.wr, c.name, c.type FROM pragma_table_list AS l, pragma_table_xinfo(l.name, 'raw') AS c
        WHERE l.schema = 'raw' AND l.type = 'table' ORDER BY l.name, c.cid
        """)
    while let row = try rows.next() {
      let (name, isWithoutRowid, column, type): (String, Bool, String, String) = (row[0], row[1], row[2], row[3])
      guard !name.hasPrefix("sqlite_") else { continue }
      tables[name.lowercased(), default: Table(name: name, columns: [], hasRowids: !isWithoutRowid)]
        .columns.append((column, type))
    }
    self.tables = tables
  }

  subscript(name: String) -> Table? { tables[name.lowercased()] }

  var all: [Table] { tables.values.ordered { $0.name < $1.name } }
}

extension RawTables.Table {
  var sql: String { "\(schema).\(SQLText.quotedIdentifier(name))" }
}

extension GRDB.Database {
  /// Counts the rows of a table, which conditions may follow.
  func count(_ source: String, _ arguments: StatementArguments = []) throws -> Int64 {
    try Int64.fetchOne(self, sql: "SELECT count(*) FROM \(source)", arguments: arguments) ?? 0
  }

  /// Whether a table has rows; conditions may follow it.
  func hasRows(_ source: String, _ arguments: StatementArguments = []) throws -> Bool {
    try Bool.fetchOne(self, sql: "SELECT EXISTS (SELECT 1 FROM \(source))", arguments: arguments) == true
  }

  /// Whether the new store has a table.
  func hasTable(_ name: String) throws -> Bool {
    try hasRows("main.sqlite_master WHERE type = 'table' AND lower(name) = ?", [name.lowercased()])
  }
}

extension TableLayout {
  var made: RawTables.Table {
    RawTables.Table(name: name, columns: columns.map { ($0.name, $0.type.rawValue) }, hasRowids: true, schema: "main")
  }
}

extension JoinTableLayout {
  var made: RawTables.Table {
    RawTables.Table(name: name, columns: columns.map { ($0, "INTEGER") }, hasRowids: true, schema: "main")
  }
}

/// The doubtful live rows of the raw salvage, in a temporary table.
///
/// `temp.doubt` has their keys by table with the first noted reason; notes of whole pages come first.
struct DoubtfulRows {
  /// Lowercase names.
  let tables: Set<String>

  /// - Parameter made: the lowercase names of tables that already have rows.
  init(_ database: GRDB.Database, _ raw: RawTables, made: Set<String>) throws {
    try database.execute(
      sql: "CREATE TEMP TABLE doubt (tbl TEXT, k INTEGER, why TEXT, PRIMARY KEY (tbl, k)) WITHOUT ROWID")
    // A connection with an untrusted schema cannot use the views that unpack the notes.
    try database.execute(
      sql: """
        CREATE TEMP TABLE page AS SELECT lower("table") AS tbl, first_key, last_key, doubt AS why
        FROM (\(EvidenceNotes.pages(in: "raw."))) WHERE certainty = 'doubtful'
        """)
    for name in try String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.page") {
      guard let table = raw[name], let rowid = table.rowid else { continue }
      let places = made.contains(name) ? [table.sql, "main.\(SQLText.quotedIdentifier(table.name))"] : [table.sql]
      for place in places {
        try database.execute(
          sql: """
            INSERT OR IGNORE INTO temp.doubt SELECT p.tbl, t.\(rowid), p.why FROM temp.page AS p, \(place) AS t
            WHERE p.tbl = ? AND t.\(rowid) BETWEEN p.first_key AND p.last_key
            """, arguments: [name])
      }
    }
    try database.execute(
      sql: """
        INSERT OR IGNORE INTO temp.doubt SELECT lower("table"), "row", doubt FROM (\(EvidenceNotes.rows(in: "raw.")))
        WHERE certainty = 'doubtful' AND "row" IS NOT NULL AND "table" NOT LIKE 'lazaret@_%' ESCAPE '@'
        """)
    tables = try Set(String.fetchAll(database, sql: "SELECT DISTINCT tbl FROM temp.doubt"))
  }

  /// Returns an SQL condition for doubtful rows.
  func condition(_ table: String, key: String) -> String {
    guard tables.contains(table.lowercased()) else { return "0" }
    return "\(key) IN (SELECT k FROM temp.doubt WHERE tbl = \(SQLText.literal(table.lowercased())))"
  }

  /// Counts the doubtful rows of a table by group and reason.
  ///
  /// - Parameters:
  ///   - found: the table's name in the notes.
  ///   - group: an SQL expression, such as the entity number.
  func counts(
    _ database: GRDB.Database, _ found: String, in name: String, key: String, by group: String
  ) throws -> [Int64: [DoubtReason: Int64]] {
    guard tables.contains(found.lowercased()) else { return [:] }
    var counts: [Int64: [DoubtReason: Int64]] = [:]
    let rows = try Row.fetchCursor(
      database,
      sql: """
        SELECT \(group), d.why, count(*) FROM \(name) AS t JOIN temp.doubt AS d ON d.tbl = ? AND d.k = t.\(key)
        GROUP BY 1, 2
        """, arguments: [found.lowercased()])
    while let row = try rows.next() {
      let (number, why, count): (Int64?, String?, Int64) = (row[0], row[1], row[2])
      guard let number else { continue }
      counts[number, default: [:]][why.flatMap(DoubtReason.init) ?? .notNoted, default: 0] += count
    }
    return counts
  }
}

/// The rows that do not fit the rebuilt store, in a database of their own, attached as `aside`.
///
/// `lazaret_set_aside_T` has rows of `T` as found, with reasons; `lazaret_references_cut` has dangling references;
/// `lazaret_converted_T` has the originals of converted values; the raw salvage's set-aside tables are copied with
/// their evidence.
final class SetAsideRows {
  let database: GRDB.Database
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
  func keep(_ table: RawTables.Table, _ reason: SalvageReport.Rebuild.SetAsideReason, where condition: String) throws {
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
  func keepColumns(_ columns: [String], of table: RawTables.Table) throws -> Bool {
    let list = columns.map(SQLText.quotedIdentifier)
    let isAny = SQLText.any(list.map { "\($0) IS NOT NULL" })
    guard try database.hasRows("\(table.sql) WHERE \(isAny)") else { return false }
    try make(
      "lazaret_columns_\(table.name)",
      "SELECT \(table.rowid ?? "NULL") AS lazaret_key, \(Self.unconverted(columns, of: "r")) "
        + "FROM \(table.sql) AS r WHERE \(isAny)")
    return true
  }

  private func make(_ name: String, _ selection: String) throws {
    isUsed = true
    try database.execute(sql: "CREATE TABLE aside.\(SQLText.quotedIdentifier(name)) AS \(selection)")
  }

  /// - Parameter source: selects primary keys of rows with the missing keys.
  func noteReferences(_ table: String, _ column: String, _ source: String) throws {
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
  func takeOver(_ raw: RawTables, isDoubtful: Bool) throws {
    for table in raw.all {
      let isApart = ["lazaret_lost_and_found", OutputRole.other.name(""), OutputRole.deleted.name("")]
        .contains(where: table.name.hasPrefix)
      guard isApart, try database.hasRows(table.sql) else { continue }
      try make(table.name, "SELECT \(Self.unconverted(table.columns.map(\.name), of: "r")) FROM \(table.sql) AS r")
    }
    guard isUsed || isDoubtful, raw["lazaret_evidence"] != nil else { return }
    try make("lazaret_evidence", "SELECT * FROM raw.lazaret_evidence")
    for view in ["lazaret_pages", "lazaret_provenance"] {
      let statement = try String.fetchOne(
        database, sql: "SELECT sql FROM raw.sqlite_master WHERE type = 'view' AND name = ?", arguments: [view])
      guard let statement, statement.hasPrefix("CREATE VIEW \(view) ") else { continue }
      try database.execute(sql: "CREATE VIEW aside.\(view) " + statement.dropFirst("CREATE VIEW \(view) ".count))
    }
  }
}

extension SetAsideRows {
  /// Sets aside the values that SQLite converts on insertion because their column declares another storage class.
  ///
  /// They exist only where the declaration was changed without SQLite, whose check reports them as damage. The new store
  /// gets the converted values.
  ///
  /// - Parameter targets: the columns with their types in the new store.
  /// - Returns: a remark, nil without any.
  func keepConverted(of source: RawTables.Table, into targets: [(source: String, type: String)]) throws -> String? {
    let columns = targets.compactMap { target -> (name: String, condition: String)? in
      let affinity = Affinity(declaredType: target.type)
      guard let column = source.columns.first(where: { $0.name == target.source }),
        Affinity(declaredType: column.type) == affinity
      else { return nil }
      let value = "r.\(SQLText.quotedIdentifier(column.name))"
      switch affinity {
      case .text: return (column.name, "typeof(\(value)) IN ('integer', 'real')")
      case .integer, .real, .numeric:
        // SQLite converts only text that is entirely a number.
        return (column.name, "(typeof(\(value)) = 'text' AND +\(value) = CAST(\(value) AS NUMERIC))")
      case .blob: return nil
      }
    }
    guard !columns.isEmpty else { return nil }
    let counts = columns.map { "total(\($0.condition))" }.joined(separator: ", ")
    guard let row = try Row.fetchOne(database, sql: "SELECT \(counts) FROM \(source.sql) AS r") else { return nil }
    var found: [(name: String, condition: String)] = []
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
    try make(
      "lazaret_converted_\(source.name)",
      "SELECT \(key) AS lazaret_key, \(values.joined(separator: ", ")) FROM \(source.sql) AS r "
        + "WHERE \(SQLText.any(found.map(\.condition)))")
    let names = found.prefix(6).map { printable($0.name) }.joined(separator: ", ") + (found.count > 6 ? ", …" : "")
    return
      "\(printable(source.name)) has values of another kind than its columns are declared for (\(names)); SQLite converted "
      + "\(total) of them, and they were set aside as they stood"
  }
}
