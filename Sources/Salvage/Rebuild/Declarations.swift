internal import GRDB
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Executes a store's schema statements in a new database, each on its own and under limits.
struct Declarations {
  struct Statement {
    /// `table`, `index`, `view` or `trigger`.
    var kind: String

    var name: String

    var table: String

    var sql: String

    var isVirtual: Bool { kind == "table" && sql.uppercased().hasPrefix("CREATE VIRTUAL") }

    /// Whether SQLite evaluates its expressions for each row: checks, generated columns, indexes.
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

    /// Whether it may search values in others, which takes the product of both lengths within one call.
    var searchesValues: Bool {
      let text = sql.uppercased().replacing(/TRIM\s*\(\s*["`\[]?\w+["`\]]?\s*\)/, with: "")
      let words = text.split { !($0.isLetter || $0.isNumber || $0 == "_") }
      return words.contains { ["INSTR", "REPLACE", "TRIM", "LTRIM", "RTRIM"].contains($0) }
    }

    /// The most values that its expressions may hold at a time.
    ///
    /// SQLite keeps all results of functions with constant arguments, and no limit ends a statement between two of
    /// them.
    var valueCount: Int64 {
      let lengths = sql.matches(of: /([A-Za-z]+) ?\(\d+(?:, ?\d+)?\)/).count {
        !["ZEROBLOB", "RANDOMBLOB"].contains($0.output.1.uppercased())
      }
      let operators = sql.matches(of: /\|\||->/).count
      return Int64(sql.utf8.count { $0 == UInt8(ascii: "(") } - lengths + operators)
    }
  }

  let database: GRDB.Database

  /// The bytes of the inserted rows, which bound each value.
  private let contentLength: Int64

  private let state: State

  private final class State {
    /// The time left for all expressions.
    var timeLeft: Duration

    /// The app's own collations, replaced by sorting bytes.
    var collations: [String] = []

    init(timeLeft: Duration) { self.timeLeft = timeLeft }
  }

  init(_ database: GRDB.Database) throws {
    self.database = database
    contentLength = try ["main", "raw"].reduce(0) { sum, schema in
      let size = try Row.fetchOne(
        database, sql: "SELECT page_count * page_size FROM pragma_page_count(?), pragma_page_size(?)",
        arguments: [schema, schema])
      return sum + (size?[0] as Int64? ?? 0)
    }
    state = State(
      timeLeft: .milliseconds(Self.leastMilliseconds + min(contentLength, 1 << 50) / Self.bytesPerMillisecond))
  }

  /// Executes a statement; returns SQLite's objection, nil on success.
  ///
  /// Runs only a single `CREATE` of the expected kind.
  ///
  /// - Parameter rows: the number of evaluations of its expressions.
  func make(_ statement: Statement, rows: Int64 = 0) throws -> String? {
    let words = statement.sql.prefix(200).uppercased().split(whereSeparator: { $0.isWhitespace || $0 == "(" }).prefix(3)
    let expected = statement.kind.uppercased()[...]
    guard words.first == "CREATE", words.dropFirst().first == expected || words.last == expected else {
      return "it is no statement that makes one"
    }
    let prepared: GRDB.Statement
    while true {
      do {
        prepared = try database.makeStatement(sql: statement.sql)
        break
      } catch let error as DatabaseError where !ResultCodeCause(error.extendedResultCode).isEnvironmental {
        guard case .collation(let name) = StandIns.Missing(error.message), state.collations.count < StandIns.limit
        else { return Self.words(error) }
        StandIns.add(.collation(name), to: database)
        state.collations.append(name)
      }
    }
    return try attempt(rows: statement.hasExpressions && statement.kind != "table" ? rows : nil, of: [statement]) {
      try prepared.execute()
    }
  }

  /// Runs work that evaluates expressions of the schema; returns the objection, nil on success.
  ///
  /// SQLite's message is withheld, since it may contain values of rows. The first attempt allows short values only: a
  /// search of one in another takes the product of their lengths, uninterruptibly. A second allows longer ones, except
  /// for such functions.
  ///
  /// - Parameter rows: the number of evaluations; nil runs without limits.
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
    // Other connections of the app may have used the memory.
    for _ in 1..<Self.mostTries where reason == Self.tooMuchMemory { reason = try limitedOnce(rows, length, work) }
    return reason
  }

  private func limitedOnce(_ rows: Int64, _ length: Int64, _ work: () throws -> Void) throws -> String? {
    guard state.timeLeft > .zero else { return Self.tooSlow }
    let start = ContinuousClock.now
    defer { state.timeLeft -= start.duration(to: .now) }
    // An interruption rolls the transaction back.
    try database.execute(sql: "COMMIT; BEGIN")
    let limit = StatementLimit(
      time: state.timeLeft / 2, steps: Self.leastSteps + Self.stepsPerRow * max(0, min(rows, Self.mostRows)),
      valueLength: length)
    do {
      let reason = try limit.apply(to: database) { try refusal(work) }
      // SQLite keeps the rows inserted before a value that is too long.
      if reason != nil { try database.execute(sql: "ROLLBACK; BEGIN") }
      return reason
    } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT && limit.isExceeded {
      if !database.isInsideTransaction { try database.execute(sql: "BEGIN") }
      return limit.excess == .memory ? Self.tooMuchMemory : Self.tooSlow
    }
  }

  var standInCollations: [String] { state.collations }

  private static func words(_ error: DatabaseError) -> String {
    error.message.map { printable($0) } ?? "SQLite reported code \(error.resultCode.rawValue)"
  }

  /// Lets a virtual table's module run a query, which may evaluate columns and views.
  func answer(_ sql: String) throws -> VirtualTables.Answer {
    var answer = VirtualTables.Answer.done(nil)
    let refusal = try limited(contentLength / Self.shortestRow, max(Self.leastLength, 2 * contentLength)) {
      do {
        let row = try Row.fetchOne(database, sql: sql)
        answer = .done(
          row.flatMap { String.fromDatabaseValue($0[0]) ?? Int64.fromDatabaseValue($0[0]).map { "\($0)" } })
        // Flushes the module's pending writes, so that their errors belong to this table.
        try database.execute(sql: "COMMIT; BEGIN")
      } catch let error as DatabaseError where error.resultCode != .SQLITE_TOOBIG {
        // The module may take damaged bytes for a size of memory.
        guard [.content, .outOfMemory].contains(ResultCodeCause(error.extendedResultCode)) else { throw error }
        answer = .refused(Self.words(error))
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

  /// About one second for any work.
  private static let leastSteps: Int64 = 50_000_000

  /// An insertion takes about thirty steps, plus one per column.
  private static let stepsPerRow: Int64 = 20_000

  private static let mostRows: Int64 = 1 << 40

  /// The minimum bytes of a full-text index row.
  private static let shortestRow: Int64 = 64

  private static let leastMilliseconds: Int64 = 6_000

  /// The assumed minimum throughput: 1 MB a second.
  private static let bytesPerMillisecond: Int64 = 1_000

  /// The bytes of values searched without noticeable delay.
  private static let shortLength: Int64 = 64 << 10

  private static let leastLength: Int64 = 1 << 20

  /// The minimum allowance for a statement's values, in bytes.
  private static let leastMemory: Int64 = 256 << 20

  /// The allowance as a multiple of the rows' bytes, if more.
  private static let memoryFactor: Int64 = 8

  private static let tooManyValues = "its expressions hold too many values"
  private static let tooLong = "a value of it is too long"
  private static let tooSlow = "it takes too long"
  private static let tooMuchMemory = "it takes too much memory"

  private static let mostTries = 3
}
