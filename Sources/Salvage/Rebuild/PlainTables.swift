internal import GRDB
internal import PageRecovery
internal import PersistentStore
internal import StoreFiles

/// The tables that no model knows: made again by the statements that the store's schema, or the caller's, has for them.
///
/// A statement that SQLite refuses is replaced by the plain table that the raw salvage made; nothing but a single
/// `CREATE TABLE`, `CREATE INDEX`, `CREATE VIEW` or `CREATE TRIGGER` is ever run.
struct PlainTables {
  /// A statement of a schema.
  struct Statement {
    /// `table`, `index`, `view` or `trigger`.
    var kind: String

    /// The name of what it makes.
    var name: String

    /// The table it belongs to.
    var table: String

    /// The statement.
    var sql: String
  }

  let database: Database
  let raw: RawTables
  let doubtful: DoubtfulRows?

  /// The new store, some of whose tables have rows already.
  let store: NewStore?

  /// What could not be made again, in words.
  private(set) var remarks: [String] = []

  init(_ database: Database, _ raw: RawTables, _ doubtful: DoubtfulRows?, _ store: NewStore?) {
    self.database = database
    self.raw = raw
    self.doubtful = doubtful
    self.store = store
  }

  /// Makes tables and fills them; returns the rows that a table refused, by table.
  ///
  /// Unique indexes are made before the rows come, others after them; views and triggers are the caller's to make last.
  mutating func make(
    _ names: [String], by statements: [Statement], _ aside: inout SetAsideRows
  ) throws -> [SalvageReport.Rebuild.Repair] {
    var repairs: [SalvageReport.Rebuild.Repair] = []
    for name in names {
      let statement = statements.first { $0.kind == "table" && $0.name.lowercased() == name.lowercased() }
      let source = raw[name]
      if let sql = statement?.sql.uppercased(), sql.hasPrefix("CREATE VIRTUAL") {
        remarks.append("the virtual table \(printable(name)) was not made again; the tables behind it were")
        continue
      }
      let isMade = try Bool.fetchOne(
        database, sql: "SELECT EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND lower(name) = ?)",
        arguments: [name.lowercased()])
      if isMade != true, !(try statement.map { try run($0, expected: "TABLE") } ?? false) {
        guard let source, try makePlain(source) else { continue }
      }
      let indexes = statements.filter { $0.kind == "index" && $0.table.lowercased() == name.lowercased() }
      let unique = indexes.filter { $0.sql.uppercased().hasPrefix("CREATE UNIQUE") }
      try makeIndexes(unique)
      if let source { repairs += try fill(source, &aside) }
      try makeIndexes(indexes.filter { !$0.sql.uppercased().hasPrefix("CREATE UNIQUE") })
    }
    return repairs
  }

  /// Makes indexes.
  mutating func makeIndexes(_ statements: [Statement]) throws {
    for index in statements {
      if !(try run(index, expected: "INDEX")) {
        remarks.append("the index \(printable(index.name)) could not be made again")
      }
    }
  }

  /// Makes views and triggers.
  mutating func makeRest(_ statements: [Statement]) throws {
    for statement in statements where statement.kind == "view" || statement.kind == "trigger" {
      if !(try run(statement, expected: statement.kind.uppercased())) {
        remarks.append("the \(statement.kind) \(printable(statement.name)) could not be made again")
      }
    }
  }

  /// Runs a statement of a schema; false where it is not one that makes what it should, or SQLite refuses it.
  private func run(_ statement: Statement, expected: String) throws -> Bool {
    let words = statement.sql.prefix(200).uppercased().split(whereSeparator: { $0.isWhitespace || $0 == "(" }).prefix(3)
    guard words.first == "CREATE",
      words.dropFirst().first == expected[...] || words.first != nil && Array(words).last == expected[...]
    else { return false }
    do {
      // Of several statements in one text, this is an error.
      try database.makeStatement(sql: statement.sql).execute()
      return true
    } catch let error as DatabaseError
      where [.SQLITE_ERROR, .SQLITE_CONSTRAINT, .SQLITE_MISUSE].contains(error.resultCode)
    {
      return false
    }
  }

  private func makePlain(_ source: RawTables.Table) throws -> Bool {
    let sql = try String.fetchOne(
      database, sql: "SELECT sql FROM raw.sqlite_master WHERE type = 'table' AND name = ?", arguments: [source.name])
    guard let sql else { return false }
    return try run(Statement(kind: "table", name: source.name, table: source.name, sql: sql), expected: "TABLE")
  }

  /// Copies the rows, certain ones first; those that the table refuses are set aside.
  private func fill(
    _ source: RawTables.Table, _ aside: inout SetAsideRows
  ) throws -> [SalvageReport.Rebuild.Repair] {
    guard try !source.isEmpty(database) else { return [] }
    let taken = store?.tables[source.name.lowercased()]?.count ?? 0
    let target = "main.\(SQLText.quotedIdentifier(source.name))"
    let own = try String.fetchAll(
      database, sql: "SELECT name FROM pragma_table_xinfo(?) WHERE hidden = 0", arguments: [source.name])
    let columns = own.filter { source.column($0) != nil }
    var list = columns.map(SQLText.quotedIdentifier)
    var values = columns.map { "r.\(SQLText.quotedIdentifier(source.column($0) ?? $0))" }
    if let rowid = source.rowid {
      list.insert(rowid, at: 0)
      values.insert("r.\(rowid)", at: 0)
    }
    guard !columns.isEmpty else { return [] }
    let insertion =
      "INSERT OR IGNORE INTO \(target) (\(list.joined(separator: ", "))) "
      + "SELECT \(values.joined(separator: ", ")) FROM \(source.sql) AS r"
    if let doubtful, doubtful.tables.contains(source.name.lowercased()), let rowid = source.rowid {
      try database.execute(sql: "\(insertion) WHERE NOT \(doubtful.condition(source.name, key: "r.\(rowid)"))")
    }
    try database.execute(sql: insertion)
    let before = try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(source.sql)") ?? 0
    let after = try Int64.fetchOne(database, sql: "SELECT count(*) FROM \(target)") ?? 0
    guard after < before + taken else { return [] }
    var keys: [Int64] = []
    if let rowid = source.rowid {
      let condition = "NOT EXISTS (SELECT 1 FROM \(target) AS m WHERE m.\(rowid) = r.\(rowid))"
      keys = try Int64.fetchAll(
        database, sql: "SELECT r.\(rowid) FROM \(source.sql) AS r WHERE \(condition) ORDER BY 1 LIMIT 10")
      try aside.keep(source, .refused, where: condition)
    } else {
      let same = columns.map { name in
        "m.\(SQLText.quotedIdentifier(name)) IS r.\(SQLText.quotedIdentifier(source.column(name) ?? name))"
      }
      try aside.keep(
        source, .refused, where: "NOT EXISTS (SELECT 1 FROM \(target) AS m WHERE \(same.joined(separator: " AND ")))")
    }
    return [
      SalvageReport.Rebuild.Repair(
        entity: source.name, property: nil, reason: .refused, count: before + taken - after, primaryKeys: keys)
    ]
  }
}
