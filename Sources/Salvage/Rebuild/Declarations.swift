internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

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

    /// Whether it may search values for others, which takes as many steps as both have bytes, multiplied, within a single
    /// call of a function.
    var searchesValues: Bool {
      // Without a second argument, `trim` looks for spaces alone.
      let text = sql.uppercased().replacing(/TRIM\s*\(\s*["`\[]?\w+["`\]]?\s*\)/, with: "")
      let words = text.split { !($0.isLetter || $0.isNumber || $0 == "_") }
      return words.contains { ["INSTR", "REPLACE", "TRIM", "LTRIM", "RTRIM"].contains($0) }
    }

    /// The most values that its expressions may hold at a time: what is in parentheses, or joined from two.
    ///
    /// SQLite keeps what the calls of functions with constants gave, all of them, and nothing ends a statement between
    /// two of them. The length of a type is no value.
    var valueCount: Int64 {
      let lengths = sql.matches(of: /([A-Za-z]+) ?\(\d+(?:, ?\d+)?\)/).count {
        !["ZEROBLOB", "RANDOMBLOB"].contains($0.output.1.uppercased())
      }
      let operators = sql.matches(of: /\|\||->/).count
      return Int64(sql.utf8.count { $0 == UInt8(ascii: "(") } - lengths + operators)
    }
  }

  let database: GRDB.Database

  /// The bytes of the rows that are put in; no value of theirs is longer.
  private let contentLength: Int64

  /// The time that is left for evaluating expressions of the schema, those of all statements together.
  private let budget: Budget

  /// The collations of the app's own that are stood in for.
  private let collations: Collations

  private final class Collations {
    var names: [String] = []
  }

  private final class Budget {
    var left: Duration
    init(_ left: Duration) { self.left = left }
  }

  init(_ database: GRDB.Database) throws {
    self.database = database
    contentLength = try ["main", "raw"].reduce(0) { sum, schema in
      let size = try Row.fetchOne(
        database, sql: "SELECT page_count * page_size FROM pragma_page_count(?), pragma_page_size(?)",
        arguments: [schema, schema])
      return sum + (size?[0] as Int64? ?? 0)
    }
    collations = Collations()
    budget = Budget(.milliseconds(Self.leastMilliseconds + min(contentLength, 1 << 50) / Self.bytesPerMillisecond))
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
    while true {
      do {
        // Of several statements in one text, this is an error.
        prepared = try database.makeStatement(sql: statement.sql)
        break
      } catch let error as DatabaseError where !ResultCodeCause(error.extendedResultCode).isEnvironmental {
        guard case .collation(let name) = StandIns.Missing(error.message), collations.names.count < StandIns.limit
        else {
          return error.message.map { printable($0) } ?? "SQLite reported code \(error.resultCode.rawValue)"
        }
        StandIns.add(.collation(name), to: database)
        collations.names.append(name)
      }
    }
    return try attempt(
      rows: statement.hasExpressions && statement.kind != "table" ? rows : nil, of: [statement]
    ) {
      try prepared.execute()
    }
  }

  /// Does work that evaluates expressions of the schema; returns what is to be said against it, nil where it is done.
  ///
  /// Values of rows may have caused an error, so that SQLite's own words are not repeated. Values are short at first: a
  /// function that searches one in another takes as long as both are together long, and nothing can end it before. Where
  /// rows hold longer ones, the work is done once more, but not with such a function. The more values the expressions may
  /// hold at a time, the shorter each may be.
  ///
  /// - Parameters:
  ///   - rows: how many rows expressions are evaluated for; nil where there are none, and no limit is needed.
  ///   - statements: those whose expressions are evaluated.
  func attempt(rows: Int64?, of statements: [Statement] = [], _ work: () throws -> Void) throws -> String? {
    guard let rows else { return try refusal(work) }
    let count = max(1, statements.reduce(0) { $0 + $1.valueCount })
    let longest = max(Self.leastMemory, Self.memoryFactor * min(contentLength, 1 << 50)) / count
    let short = min(Self.shortLength, longest)
    let first = try limited(rows, short, work)
    guard first == Self.tooLong else { return first }
    guard !statements.contains(where: \.searchesValues) else { return "it takes too long for values as long as these" }
    guard longest > short else { return Self.tooManyValues }
    return try limited(rows, min(longest, max(Self.leastLength, 2 * contentLength)), work)
  }

  private func limited(_ rows: Int64, _ length: Int64, _ work: () throws -> Void) throws -> String? {
    var reason = try limitedOnce(rows, length, work)
    // The memory may have been that of other connections of the app.
    for _ in 1..<Self.mostTries where reason == Self.tooMuchMemory { reason = try limitedOnce(rows, length, work) }
    return reason
  }

  private func limitedOnce(_ rows: Int64, _ length: Int64, _ work: () throws -> Void) throws -> String? {
    guard budget.left > .zero else { return Self.tooSlow }
    let start = ContinuousClock.now
    defer { budget.left -= start.duration(to: .now) }
    // An end by the limit takes the transaction back; what was done before stays.
    try database.execute(sql: "COMMIT; BEGIN")
    // What is left is for others too.
    let limit = StatementLimit(
      time: budget.left / 2, steps: Self.leastSteps + Self.stepsPerRow * max(0, min(rows, Self.mostRows)),
      valueLength: length)
    do {
      let reason = try limit.apply(to: database) { try refusal(work) }
      // A value that is too long leaves the rows before it.
      if reason != nil { try database.execute(sql: "ROLLBACK; BEGIN") }
      return reason
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT && limit.isExceeded {
      if !database.isInsideTransaction { try database.execute(sql: "BEGIN") }
      return limit.excess == .memory ? Self.tooMuchMemory : Self.tooSlow
    }
  }

  /// The collations of the app's own by which indexes were sorted as bytes are.
  var standInCollations: [String] { collations.names }

  /// Lets the module of a virtual table look at what it finds, which may be columns and views of the schema.
  func answer(_ sql: String) throws -> VirtualTables.Answer {
    var answer = VirtualTables.Answer.done(nil)
    let refusal = try limited(contentLength / Self.shortestRow, max(Self.leastLength, 2 * contentLength)) {
      do {
        let row = try Row.fetchOne(database, sql: sql)
        answer = .done(
          row.flatMap { String.fromDatabaseValue($0[0]) ?? Int64.fromDatabaseValue($0[0]).map { "\($0)" } })
        // What a module has kept back is written now, so that what it says of that is said of its table.
        try database.execute(sql: "COMMIT; BEGIN")
      } catch let error as DatabaseError where error.resultCode != .SQLITE_TOOBIG {
        // Its module may take damaged bytes for a size and ask for more memory than there is.
        guard [.content, .outOfMemory].contains(ResultCodeCause(error.extendedResultCode)) else { throw error }
        answer = .refused(error.message.map { printable($0) } ?? "SQLite reported code \(error.resultCode.rawValue)")
        // Nothing of it may come back with the next transaction.
        try database.execute(sql: database.isInsideTransaction ? "ROLLBACK; BEGIN" : "BEGIN")
      }
    }
    return refusal.map { .refused($0) } ?? answer
  }

  private func refusal(_ work: () throws -> Void) throws -> String? {
    do {
      try work()
      return nil
    } catch let error as DatabaseError where ResultCodeCause(error.extendedResultCode) == .content {
      return error.resultCode == .SQLITE_TOOBIG
        ? Self.tooLong : "SQLite reported code \(error.extendedResultCode.rawValue)"
    }
  }

  /// The steps that every piece of work may take, about a second of them.
  private static let leastSteps: Int64 = 50_000_000

  /// The steps that each row may take besides; an insertion takes about thirty, and one for each column.
  private static let stepsPerRow: Int64 = 20_000

  private static let mostRows: Int64 = 1 << 40

  /// The bytes that a row of an index of words takes at the least.
  private static let shortestRow: Int64 = 64

  /// The time that all statements together may take besides what their rows need.
  private static let leastMilliseconds: Int64 = 6_000

  /// How many bytes of rows are read, evaluated and written in a millisecond at the least: 1 MB a second.
  private static let bytesPerMillisecond: Int64 = 1_000

  /// The bytes of a value that is searched for, and in, without delay.
  private static let shortLength: Int64 = 64 << 10

  private static let leastLength: Int64 = 1 << 20

  /// What the values of a statement's expressions may take together at the least, in bytes.
  private static let leastMemory: Int64 = 256 << 20

  /// How many times the bytes of the rows they may take together, where that is more.
  private static let memoryFactor: Int64 = 8

  private static let tooManyValues = "its expressions hold too many values"
  private static let tooLong = "a value of it is too long"
  private static let tooSlow = "it takes too long"
  private static let tooMuchMemory = "it takes too much memory"

  /// How often work is tried that others' memory may have ended.
  private static let mostTries = 3
}
