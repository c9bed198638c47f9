internal import GRDB
internal import PageRecovery
internal import PersistentStore
internal import SQLiteFormat
internal import StoreFiles

/// The statements of a store's schema on their way into a new database: each is carried out on its own, under limits, and
/// what SQLite says against it is kept.
struct Declarations {
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

    /// Whether it makes a virtual table.
    var isVirtual: Bool { kind == "table" && sql.uppercased().hasPrefix("CREATE VIRTUAL") }

    /// Whether SQLite evaluates expressions of it for each row: of checks, generated columns, or an index.
    var hasExpressions: Bool {
      guard kind == "table" else {
        guard kind == "index" else { return false }
        guard let index = IndexDefinition(sql: sql) else { return true }
        return index.isPartial || index.columns.contains { $0.name == nil }
      }
      let words = sql.uppercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }
      return words.contains { ["CHECK", "AS"].contains($0) }
        || sql.uppercased().filter { !$0.isWhitespace }.contains("DEFAULT(")
    }
  }

  let database: GRDB.Database

  /// The bytes of the rows that are put in; no value of theirs is longer.
  private let contentLength: Int64

  init(_ database: GRDB.Database) throws {
    self.database = database
    contentLength = try ["main", "raw"].reduce(0) { sum, schema in
      let size = try Row.fetchOne(
        database, sql: "SELECT page_count * page_size FROM pragma_page_count(?), pragma_page_size(?)",
        arguments: [schema, schema])
      return sum + (size?[0] as Int64? ?? 0)
    }
  }

  /// Carries out a statement that makes something; returns what SQLite says against it, nil where it is made.
  ///
  /// Nothing but a single `CREATE` of what is expected is ever run.
  ///
  /// - Parameter rows: how many rows its expressions are evaluated for.
  func make(_ statement: Statement, rows: Int64 = 0) throws -> String? {
    let words = statement.sql.prefix(200).uppercased().split(whereSeparator: { $0.isWhitespace || $0 == "(" }).prefix(3)
    let expected = statement.kind.uppercased()[...]
    guard words.first == "CREATE", words.dropFirst().first == expected || words.last == expected else {
      return "it is no statement that makes one"
    }
    let prepared: GRDB.Statement
    do {
      // Of several statements in one text, this is an error.
      prepared = try database.makeStatement(sql: statement.sql)
    } catch let error as DatabaseError where !ResultCodeCause(error.extendedResultCode).isEnvironmental {
      return error.message.map { printable($0) } ?? "SQLite reported code \(error.resultCode.rawValue)"
    }
    return try attempt(rows: statement.hasExpressions && statement.kind != "table" ? rows : nil) {
      try prepared.execute()
    }
  }

  /// Does work that evaluates expressions of the schema; returns what is to be said against it, nil where it is done.
  ///
  /// Values of rows may have caused an error, so that SQLite's own words are not repeated.
  ///
  /// - Parameter rows: how many rows expressions are evaluated for; nil where there are none, and no limit is needed.
  func attempt(rows: Int64?, _ work: () throws -> Void) throws -> String? {
    guard let rows else { return try refusal(work) }
    // An end by the limit takes the transaction back; what was done before stays.
    try database.execute(sql: "COMMIT; BEGIN")
    let limit = StatementLimit(
      steps: Self.leastSteps + Self.stepsPerRow * max(0, min(rows, Self.mostRows)),
      valueLength: max(Self.leastLength, 2 * contentLength))
    do {
      return try limit.apply(to: database) { try refusal(work) }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT && limit.isExceeded {
      if !database.isInsideTransaction { try database.execute(sql: "BEGIN") }
      return "it takes too long"
    }
  }

  private func refusal(_ work: () throws -> Void) throws -> String? {
    do {
      try work()
      return nil
    } catch let error as DatabaseError where ResultCodeCause(error.extendedResultCode) == .content {
      return error.resultCode == .SQLITE_TOOBIG
        ? "a value of it is too long" : "SQLite reported code \(error.extendedResultCode.rawValue)"
    }
  }

  /// The steps that every piece of work may take, about a second of them.
  private static let leastSteps: Int64 = 50_000_000

  /// The steps that each row may take besides; an insertion takes about thirty, and one for each column.
  private static let stepsPerRow: Int64 = 20_000

  private static let mostRows: Int64 = 1 << 40

  /// The bytes that every value may have.
  private static let leastLength: Int64 = 64 << 20
}
