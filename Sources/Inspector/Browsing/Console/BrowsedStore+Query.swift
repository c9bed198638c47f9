internal import Dispatch
internal import Foundation
internal import GRDB
internal import GRDBSQLite
package import PersistentStore
internal import Platform
internal import SystemPackage

extension BrowsedStore {
  private static let queryTextLimit = 200

  /// The most values on a page, since a result may have 2,000 columns.
  private static let mostValues = 50_000

  private static let operation = "run the query"

  /// The memory for compiling a query with parts that could multiply.
  ///
  /// Other queries of 4,000 characters need about 0.01 MB. The process's other use of SQLite counts too.
  private static let compilingMemory: Int64 = 64 << 20

  /// The memory for running a query; sorting uses files with their own limit.
  private static let runningMemory: Int64 = 64 << 20

  /// The tries of a query that other work's memory use may have ended.
  private static let mostTries = 5

  /// The pause before the second try, doubled for each further one.
  private static let firstPause: Duration = .milliseconds(50)

  private enum Excess: Error {
    case time, memory
    /// Temporary files for sorting and gathering rows.
    case files

    /// - Parameter excess: the exceeded limit; nil for temporary files.
    init(_ excess: StatementLimit.Excess?) {
      self =
        switch excess {
        case .time, .steps: .time
        case .memory: .memory
        case nil: .files
        }
    }

    var words: String {
      switch self {
      case .time: "the query took longer than it may"
      case .memory: "SQLite took more memory, while the query ran, than a query may"
      case .files: "the query took more room to sort and gather rows than it may"
      }
    }

    var hint: String {
      let less = "Ask for less: add conditions, or a LIMIT inside."
      return self == .memory ? "\(less) Other work may have taken the memory; try again when it has ended." : less
    }
  }

  /// - Throws: `store-unreadable`, `time-limit`.
  package func querySources() throws(PersistentStoreError) -> [QuerySource] { try catalog().sources }

  func catalog() throws(PersistentStoreError) -> QueryCatalog {
    if let known = queryCatalog.withLock({ $0 }) { return known }
    let made = try read(limits.opening) { database in try QueryCatalog(database, collections) }
    queryCatalog.withLock { $0 = made }
    return made
  }

  /// Runs a typed query on its own read-only connection.
  ///
  /// It has limits of time and memory, and yields to all other work.
  ///
  /// - Throws: `sql-error` in SQLite's own words, `time-limit`, `bad-query`, `value-too-large`, `store-unreadable`.
  package func run(_ query: StoreQuery) throws(PersistentStoreError) -> QueryResult {
    let catalog = try catalog()
    return try quietly { [self] in
      try tried(limits.query) { left in
        try perform(query.sql, catalog, limit: left) { statement in try Self.page(of: statement, query) }
      }
    }
  }

  /// Runs work on a quiet thread, with errors about the query.
  private func quietly<Value: Sendable>(
    _ work: @escaping @Sendable () throws -> Value
  ) throws(PersistentStoreError) -> Value {
    try QuietThread.run { [path] () throws(PersistentStoreError) in
      do { return try work() } catch { throw Self.queryError(error, path) }
    }
  }

  /// Retries in time if SQLite ran out of memory, which others in the process may have used.
  private func tried<Value>(_ limit: Duration, _ work: (_ left: Duration) throws -> Value) throws -> Value {
    let start = ContinuousClock.now
    var pause = Self.firstPause
    for _ in 1..<Self.mostTries {
      let left = limit - (.now - start)
      guard left > .zero else { break }
      do {
        return try work(left)
      } catch Excess.memory {
        Thread.sleep(forTimeInterval: min(pause, left) / .seconds(1))
        pause *= 2
      }
    }
    return try work(max(.zero, limit - (.now - start)))
  }

  private static func page(of statement: Statement, _ query: StoreQuery) throws -> QueryResult {
    let columns = statement.columnNames
    let size = max(1, min(query.size, mostValues / max(1, columns.count)))
    var result = QueryResult(columns: columns, rows: [], offset: query.offset, hasMore: false, time: .zero)
    let start = ContinuousClock.now
    let cursor = try Row.fetchCursor(statement)
    var passed = 0
    while let row = try cursor.next() {
      if passed < query.offset {
        passed += 1
        continue
      }
      guard result.rows.count < size else {
        result.hasMore = true
        break
      }
      result.rows.append(columns.indices.map { PresentedValue.plain(row.whole($0), limit: queryTextLimit) })
    }
    result.time = .now - start
    return result
  }

  /// Starts reading all rows of a query, with unique column names.
  ///
  /// Compiling comes first, so errors appear before any row is sent.
  ///
  /// - Throws: as ``run(_:)``, and `busy` if too many streams run. A stream beyond ``Limits`` ends with
  ///   `value-too-large`.
  package func stream(_ query: StoreQuery) throws(PersistentStoreError) -> RowStream {
    let catalog = try catalog()
    try checkStreams()
    let names = try quietly { [self] in try perform(query.sql, catalog, limit: limits.query) { $0.columnNames } }
    let columns = QueryResult.unique(names).map { RecordColumn(name: $0, kind: .stored(declaredType: ""), sql: "") }
    return RowStream(columns) { [self] stream throws(PersistentStoreError) in
      try begin(stream) { [self] in
        try quietly { [self] in try perform(query.sql, catalog, limit: limits.queryExport) { try fill(stream, $0) } }
      }
    }
  }

  private func fill(_ stream: RowStream, _ statement: Statement) throws {
    let cursor = try Row.fetchCursor(statement)
    var batch: [RecordPage.Row] = []
    var (count, bytes, all) = (0, 0, 0)
    while let row = try cursor.next() {
      count += 1
      let values = stream.columns.indices.map { PresentedValue.plain(row.whole($0), limit: Self.streamLimit) }
      let size = values.reduce(0) { $0 + $1.text.utf8.count + 1 }
      bytes += size
      all += size
      guard count <= limits.queryExportRows, all <= limits.queryExportBytes else {
        throw PersistentStoreError(
          .valueTooLarge, path: path,
          detail: "the query gives more than \(limits.queryExportRows) rows or \(limits.queryExportBytes) bytes",
          hint: "Add a condition, and export it in parts.")
      }
      batch.append(RecordPage.Row(key: RecordKey(Int64(count)), entity: "", values: values))
      guard batch.count >= RowStream.size || bytes >= Self.batchBytes else { continue }
      bytes = 0
      guard stream.put(batch) else { return }
      batch.removeAll(keepingCapacity: true)
    }
    if !batch.isEmpty { _ = stream.put(batch) }
  }

  // MARK: The connection

  private func perform<Value>(
    _ sql: String, _ catalog: QueryCatalog, limit: Duration, _ body: (Statement) throws -> Value
  ) throws -> Value {
    let text = sql.caseFolded
    // Quoted names contain doubled quotation marks.
    let views = catalog.views.filter { text.contains($0.key) || text.contains($0.key.replacing("\"", with: "\"\"")) }
    let queue = try EvidenceConnection.open(
      path, .unchanging, label: "Lazaret.Query", temporaryBytes: limits.queryFiles
    ) { database in
      for function in QueryFunctions.own { database.add(function: function) }
    }
    // The connection wrote no data, so a failed close is harmless.
    defer { try? queue.close() }
    return try queue.inDatabase { database in
      for view in views.values {
        // SQLite may reserve the name; the table keeps its own.
        do { try database.execute(sql: view) } catch { continue }
      }
      let authorizer = QueryAuthorizer(catalog.rules, views: Set(views.keys), statement: sql)
      do {
        return try authorizer.apply(to: database) {
          let start = ContinuousClock.now
          let statement = try StatementLimit(time: limit).apply(to: database) { try Self.compiled(sql, database) }
          let calls = try statement.calls(database)
          let running = StatementLimit(
            time: limit - (.now - start), valueLength: QueryFunctions.longestValue(calls), memory: Self.runningMemory)
          do {
            return try running.apply(to: database) { try body(statement) }
          } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            throw Excess(running.excess)
          }
        }
      } catch let error as DatabaseError where error.resultCode == .SQLITE_AUTH {
        throw Self.refused(error, authorizer.refusal)
      }
    }
  }

  /// Compiles a query within a memory limit.
  ///
  /// The text bounds a single `SELECT`, since the store's views are off; a nested one can be substituted many times.
  private static func compiled(_ sql: String, _ database: Database) throws -> Statement {
    guard sql.lowercased().split(separator: "select", omittingEmptySubsequences: false).count > 2 else {
      return try statement(sql, database)
    }
    do {
      return try HeapLimit.apply(bytes: compilingMemory) { try statement(sql, database) }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_NOMEM {
      throw PersistentStoreError(
        .badQuery, operation: operation, detail: "SQLite would need too much memory to compile the query",
        hint: "Nest fewer parts of it in each other.")
    }
  }

  private static func statement(_ sql: String, _ database: Database) throws -> Statement {
    let all = try database.allStatements(sql: sql)
    guard let statement = try all.next() else {
      throw PersistentStoreError(
        .queryRejected, operation: operation, detail: "there is no statement in it",
        hint: "Type one, such as SELECT 1.")
    }
    guard try all.next() == nil else {
      throw PersistentStoreError(
        .queryRejected, operation: operation, detail: "there is more than one statement in it",
        hint: "Run one after the other.")
    }
    guard statement.isReadonly, statement.columnCount > 0 else {
      throw PersistentStoreError(
        .queryRejected, operation: operation, detail: "the statement gives no rows", hint: "Type a SELECT.")
    }
    try statement.validateArguments(StatementArguments())
    return statement
  }

  private static func refused(_ error: DatabaseError, _ refusal: String?) -> PersistentStoreError {
    let what = refusal.map { " (\($0))" } ?? ""
    return PersistentStoreError(
      .queryRejected, operation: operation, detail: "\(words(error))\(what)",
      hint: "A query only reads: tables of the file, and functions that the page lists.")
  }

  /// The failure, in SQLite's own words if the query is at fault.
  private static func queryError(_ error: any Error, _ path: FilePath) -> PersistentStoreError {
    if let excess = error as? Excess {
      return PersistentStoreError(.timeLimit, operation: operation, path: path, detail: excess.words, hint: excess.hint)
    }
    guard let error = error as? DatabaseError else { return self.error(error, path) }
    switch error.resultCode {
    case .SQLITE_INTERRUPT: return queryError(Excess.time, path)
    case .SQLITE_ERROR, .SQLITE_MISMATCH, .SQLITE_RANGE, .SQLITE_MISUSE, .SQLITE_TOOBIG, .SQLITE_CONSTRAINT:
      return PersistentStoreError(.queryRejected, operation: operation, path: path, detail: words(error))
    default: return self.error(error, path)
    }
  }

  private static func words(_ error: DatabaseError) -> String {
    error.message.map { "SQLite says “\($0)”" } ?? "SQLite reported \(error.resultCode)"
  }
}

/// A limit on SQLite's memory for a short piece of work.
///
/// SQLite calls no handler while compiling, and a short statement can double with each common table expression or
/// nested selection until it takes hours. That takes memory, so a limit ends it with `SQLITE_NOMEM`. SQLite's limit
/// covers the whole process, hence it is set only briefly.
enum HeapLimit {
  /// Serializes the work, so each restores the limit it found.
  private static let turn = DispatchSemaphore(value: 1)

  /// Runs the work; exceeding SQLite's present use by more bytes fails with `SQLITE_NOMEM`.
  static func apply<Value>(bytes: Int64, _ work: () throws -> Value) rethrows -> Value {
    turn.wait()
    let before = sqlite3_hard_heap_limit64(-1)
    let limit = sqlite3_memory_used() + bytes
    _ = sqlite3_hard_heap_limit64(before > 0 ? min(before, limit) : limit)
    defer {
      _ = sqlite3_hard_heap_limit64(before)
      turn.signal()
    }
    return try work()
  }
}
