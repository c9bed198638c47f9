internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Recreates the tables outside the model by the statements of the store's schema or the caller's.
///
/// A declaration that SQLite refuses, or that exceeds the limits of ``Declarations``, is replaced by the raw salvage's
/// plain table, so that no row is lost over it.
struct PlainTables {
  typealias Statement = Declarations.Statement

  let database: GRDB.Database
  let raw: RawTables
  let doubtful: DoubtfulRows?

  let store: NewStore?
  let aside: SetAsideRows

  /// The raw names of tables that could not keep their own.
  let otherNames: [String: String]

  private let emptyIndexes: Set<String>
  private let declarations: Declarations

  /// Declarations that only the app can execute, written into the schema last.
  private var carried: [(statement: Statement, reason: String)] = []

  /// Remarks on missing parts of the store.
  private(set) var remarks: [String] = []

  /// Remarks on converted values, which lack no part of the store.
  private(set) var conversions: [String] = []

  private(set) var recounts: [SalvageReport.Recount] = []

  /// The refused rows by table.
  private(set) var setAside: [SalvageReport.Rebuild.Repair] = []

  init(
    _ database: GRDB.Database, _ raw: RawTables, _ doubtful: DoubtfulRows?, _ store: NewStore?, _ found: RawSalvage,
    _ aside: SetAsideRows
  ) throws {
    self.database = database
    self.raw = raw
    self.doubtful = doubtful
    self.store = store
    self.aside = aside
    otherNames = Dictionary(found.otherNames.map { ($0.key.lowercased(), $0.value) }) { first, _ in first }
    emptyIndexes = found.emptyIndexes
    declarations = try Declarations(database)
  }

  /// Makes and fills tables.
  ///
  /// Unique indexes come before the rows, others afterwards; the caller makes virtual tables, views and triggers last.
  ///
  /// - Parameter tell: receives the tables done and the total.
  mutating func make(
    _ names: [String], by statements: [Statement], tell: (Int64, Int64) throws -> Void = { _, _ in }
  ) throws {
    let tables = Dictionary(
      statements.filter { $0.kind == "table" }.map { ($0.name.lowercased(), $0) },
      uniquingKeysWith: { first, _ in first })
    let indexes = Dictionary(grouping: statements.filter { $0.kind == "index" }) { $0.table.lowercased() }
    for (index, name) in names.enumerated() {
      let statement = tables[name.lowercased()]
      if statement?.isVirtual != true { try make(name, by: statement, indexes[name.lowercased()] ?? []) }
      try tell(Int64(index + 1), Int64(names.count))
    }
  }

  private mutating func make(_ name: String, by statement: Statement?, _ indexes: [Statement]) throws {
    let source = raw[otherNames[name.lowercased()] ?? name]
    let unique = indexes.filter { $0.sql.uppercased().hasPrefix("CREATE UNIQUE") }
    let others = indexes.filter { !$0.sql.uppercased().hasPrefix("CREATE UNIQUE") }
    var reason: String?
    var columns = try columns(of: name)
    if columns.isEmpty, let statement {
      reason = try makeTable(statement)
      columns = try self.columns(of: name)
    }
    if reason == nil, !columns.isEmpty {
      try makeIndexes(unique)
      guard let source else { return try makeIndexes(others) }
      try keepUnknownColumns(of: source, in: name, columns)
      let rows = try database.count(source.sql)
      guard rows > 0 else {
        try keepRefused(of: source, in: name)
        return try makeIndexes(others)
      }
      let isCarried = carried.contains { $0.statement.kind == "table" && $0.statement.name == statement?.name }
      let evaluated = ([isCarried ? nil : statement].compactMap(\.self) + unique).filter(\.hasExpressions)
      reason = try declarations.attempt(rows: evaluated.isEmpty ? nil : rows, of: evaluated) {
        try copy(source, into: name, columns)
      }
      if reason == nil { reason = try declarations.attempt(rows: nil) { try keepRefused(of: source, in: name) } }
      if reason == nil {
        try keepConverted(of: source, in: columns, by: statement)
        return try makeIndexes(others)
      }
    }
    if let reason {
      remarks.append(
        "the table \(printable(name)) could not be made as it is declared (\(reason)); "
          + (source.map { "its rows are in \(printable($0.name)), with plain columns" } ?? "it is left out"))
    }
    guard let source else { return }
    try makePlain(source, insteadOf: name)
    try makeIndexes(others)
  }

  /// Makes a table, with the same b-trees only where its declaration needs the app.
  private mutating func makeTable(_ statement: Statement) throws -> String? {
    guard let reason = try declarations.make(statement) else { return nil }
    guard case .function = StandIns.Missing(reason), let definition = TableDefinition(sql: statement.sql) else {
      return reason
    }
    var standIn = statement
    standIn.sql = definition.standIn
    guard try declarations.make(standIn) == nil else { return reason }
    carried.append((statement, reason))
    return nil
  }

  private mutating func keepUnknownColumns(of source: RawTables.Table, in name: String, _ columns: [Column]) throws {
    let own = Set(columns.map { $0.name.lowercased() })
    let unknown = source.columns.map(\.name).filter { !own.contains($0.lowercased()) }
    guard !unknown.isEmpty, try aside.keepColumns(unknown, of: source) else { return }
    remarks.append(
      "\(printable(name)) has columns that its declaration does not know (\(unknown.prefix(6).map { printable($0) }.joined(separator: ", "))); their values were set aside"
    )
  }

  /// Writes the app's declarations into the schema verbatim.
  private mutating func carry() throws {
    for (statement, lack) in carried {
      let reason = try declarations.attempt(rows: nil) {
        try database.execute(sql: "PRAGMA writable_schema = 1")
        try database.execute(
          sql: "UPDATE main.sqlite_master SET sql = ? WHERE type = ? AND lower(name) = ?",
          arguments: [statement.sql, statement.kind, statement.name.lowercased()])
        try database.execute(sql: "PRAGMA writable_schema = RESET")
      }
      remarks.append(
        "the declaration of \(printable(statement.name)) needs what only the app has (\(lack)); "
          + (reason.map { "it is not in the store (\($0))" } ?? "it stands in the store as it was, unchecked"))
    }
    let collations = declarations.standInCollations
    guard !collations.isEmpty else { return }
    let names = collations.map { printable($0) }.joined(separator: ", ")
    remarks.append(
      "what is sorted by a collation that only the app has (\(names)) is sorted by its bytes; the app has to run REINDEX"
    )
  }

  /// Reports triggers that make every change of their table fail.
  private mutating func checkTriggers(_ statements: [Statement]) throws {
    // The columns of a view without its table are an error.
    let sql = "SELECT tbl_name FROM main.sqlite_master WHERE type = 'trigger'"
    let made = Set(try String.fetchAll(database, sql: sql).map(foldedName))
    let tables = Set(statements.filter { $0.kind == "trigger" }.map(\.table)).sorted()
    for table in tables where made.contains(foldedName(table)) {
      let name = SQLText.quotedIdentifier(table)
      for (verb, sql) in [
        ("INSERT", "INSERT INTO main.\(name) DEFAULT VALUES"), ("DELETE", "DELETE FROM main.\(name)"),
      ] {
        guard case .refused(let message) = try declarations.answer("EXPLAIN \(sql)"),
          message.hasPrefix("no such table") || message.hasPrefix("no such column")
        else { continue }
        remarks.append("a trigger makes every \(verb) of \(printable(table)) fail (\(message))")
        break
      }
    }
  }

  /// Raises the highest `AUTOINCREMENT` keys to the store's.
  private func raise(_ sequences: [String: Int64]) throws {
    guard !sequences.isEmpty, try isMade("sqlite_sequence") else { return }
    for entry in try String.fetchAll(database, sql: "SELECT name FROM main.sqlite_master WHERE type = 'table'") {
      guard let highest = sequences[entry],
        let sql = try String.fetchOne(
          database, sql: "SELECT sql FROM main.sqlite_master WHERE type = 'table' AND name = ?", arguments: [entry]),
        sql.uppercased().contains("AUTOINCREMENT")
      else { continue }
      let now = try Int64.fetchOne(
        database, sql: "SELECT max(seq) FROM main.sqlite_sequence WHERE name = ?", arguments: [entry])
      try database.execute(sql: "DELETE FROM main.sqlite_sequence WHERE name = ?", arguments: [entry])
      try database.execute(
        sql: "INSERT INTO main.sqlite_sequence (name, seq) VALUES (?, ?)",
        arguments: [entry, max(now ?? highest, highest)])
    }
  }

  private struct Column {
    let name: String
    let type: String

    /// False for hidden and generated columns.
    let isStored: Bool
  }

  /// The columns of a table or view of the new store; none if it is not made.
  private func columns(of name: String) throws -> [Column] {
    try Row.fetchAll(
      database, sql: "SELECT name, type, hidden = 0 FROM pragma_table_xinfo(?, 'main')", arguments: [name]
    ).map { Column(name: $0[0], type: $0[1], isStored: $0[2]) }
  }

  /// Asks for columns, since the list of tables may be long.
  private func isMade(_ name: String) throws -> Bool { try !columns(of: name).isEmpty }

  mutating func makeIndexes(_ statements: [Statement]) throws {
    for index in statements {
      let table = SQLText.quotedIdentifier(index.table)
      var rows: Int64 = 0
      if index.hasExpressions, try isMade(index.table) { rows = try database.count("main.\(table)") }
      if var reason = try declarations.make(index, rows: rows) {
        if case .function = StandIns.Missing(reason), emptyIndexes.contains(index.name.lowercased()),
          let column = try String.fetchOne(
            database, sql: "SELECT name FROM pragma_table_xinfo(?, 'main') WHERE hidden <> 2", arguments: [index.table])
        {
          // The condition matches no row: the index stays empty.
          var standIn = index
          standIn.sql =
            "CREATE INDEX \(SQLText.quotedIdentifier(index.name)) ON \(table) (\(SQLText.quotedIdentifier(column))) WHERE 0"
          guard let refusal = try declarations.make(standIn) else {
            carried.append((index, reason))
            continue
          }
          reason = refusal
        }
        remarks.append("the index \(printable(index.name)) could not be made again (\(reason))")
      }
    }
  }

  /// Makes virtual tables, then views and triggers.
  ///
  /// - Parameter sequences: the highest assigned keys by table.
  mutating func makeRest(_ statements: [Statement], virtual entries: [SchemaEntry], sequences: [String: Int64]) throws {
    var virtual = VirtualTables(in: entries, content: "raw", ask: declarations.answer)
    try virtual.make()
    remarks += virtual.remarks
    recounts = virtual.recounts
    for statement in statements where statement.kind == "view" || statement.kind == "trigger" {
      if let reason = try declarations.make(statement) {
        remarks.append("the \(statement.kind) \(printable(statement.name)) could not be made again (\(reason))")
      }
    }
    try checkTriggers(statements)
    try raise(sequences)
    try carry()
  }

  /// Copies the rows of a refused table into a plain one, else sets them aside.
  private mutating func makePlain(_ source: RawTables.Table, insteadOf name: String) throws {
    // A table written page by page has no constraints.
    if try isMade(name), store?.tables[name.lowercased()] == nil {
      try database.execute(sql: "DROP TABLE main.\(SQLText.quotedIdentifier(name))")
    }
    let sql = try String.fetchOne(
      database, sql: "SELECT sql FROM raw.sqlite_master WHERE type = 'table' AND name = ?", arguments: [source.name])
    let statement = sql.map { Statement(kind: "table", name: source.name, table: source.name, sql: $0) }
    if try !isMade(source.name), let statement, let reason = try declarations.make(statement) {
      remarks.append("the table \(printable(source.name)) could not be made (\(reason)); its rows were set aside")
      let count = try database.count(source.sql)
      guard count > 0 else { return }
      try aside.keep(source, .refused, where: "1")
      return StoreAssembly.note(&setAside, source.name, nil, reason: .refused, count: count, keys: [])
    }
    let columns = try columns(of: source.name)
    if let reason = try declarations.attempt(rows: nil, { try copy(source, into: source.name, columns) }) {
      remarks.append("rows of \(printable(source.name)) could not be written (\(reason)); they were set aside")
    }
    try keepRefused(of: source, in: source.name)
  }

  private mutating func keepConverted(of source: RawTables.Table, in columns: [Column], by statement: Statement?) throws
  {
    // A STRICT table has no values to convert. SQLite rebuilds its list of tables at each query, so it is not asked.
    if let statement, TableDefinition(sql: statement.sql)?.isStrict == true { return }
    let types = columns.filter(\.isStored).compactMap { column in
      source.column(column.name).map { (source: $0, type: column.type) }
    }
    if let words = try aside.keepConverted(of: source, into: types) { conversions.append(words) }
  }

  /// The names of the stored columns that both have.
  private func shared(_ columns: [Column], with source: RawTables.Table) -> [String] {
    columns.filter { $0.isStored && source.column($0.name) != nil }.map(\.name)
  }

  private func copy(_ source: RawTables.Table, into name: String, _ columns: [Column]) throws {
    let columns = shared(columns, with: source)
    guard !columns.isEmpty else { return }
    var list = columns.map(SQLText.quotedIdentifier)
    var values = columns.map { "r.\(SQLText.quotedIdentifier(source.column($0) ?? $0))" }
    if let rowid = source.rowid {
      list.insert(rowid, at: 0)
      values.insert("r.\(rowid)", at: 0)
    }
    let insertion =
      "INSERT OR IGNORE INTO main.\(SQLText.quotedIdentifier(name)) (\(list.joined(separator: ", "))) "
      + "SELECT \(values.joined(separator: ", ")) FROM \(source.sql) AS r"
    if let doubtful, doubtful.tables.contains(source.name.lowercased()), let rowid = source.rowid {
      try database.execute(sql: "\(insertion) WHERE NOT \(doubtful.condition(source.name, key: "r.\(rowid)"))")
    }
    try database.execute(sql: insertion)
  }

  private mutating func keepRefused(of source: RawTables.Table, in name: String) throws {
    let target = "main.\(SQLText.quotedIdentifier(name))"
    let before = try database.count(source.sql) + (store?.tables[name.lowercased()]?.rows.count ?? 0)
    let after = try database.count(target)
    guard after < before else { return }
    let columns = try shared(columns(of: name), with: source)
    // Without shared columns, SQLite parsed the declaration differently.
    var condition = "1"
    var keys: [Int64] = []
    if let rowid = source.rowid, !columns.isEmpty {
      condition = "NOT EXISTS (SELECT 1 FROM \(target) AS m WHERE m.\(rowid) = r.\(rowid))"
      let limit = StoreAssembly.exampleKeys
      keys = try Int64.fetchAll(
        database, sql: "SELECT r.\(rowid) FROM \(source.sql) AS r WHERE \(condition) ORDER BY 1 LIMIT \(limit)")
    } else if !columns.isEmpty {
      let same = columns.map { name in
        "m.\(SQLText.quotedIdentifier(name)) IS r.\(SQLText.quotedIdentifier(source.column(name) ?? name))"
      }
      condition = "NOT EXISTS (SELECT 1 FROM \(target) AS m WHERE \(SQLText.all(same)))"
    }
    try aside.keep(source, .refused, where: condition)
    StoreAssembly.note(&setAside, name, nil, reason: .refused, count: before - after, keys: keys)
  }
}
