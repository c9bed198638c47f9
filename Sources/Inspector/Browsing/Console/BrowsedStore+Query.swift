internal import Dispatch
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import PersistentStore
internal import Platform
internal import SystemPackage

extension BrowsedStore {
  /// The most characters of a value on a page.
  private static let queryTextLimit = 200

  /// The most values on a page, whatever its size: a result may have two thousand columns.
  private static let mostValues = 50_000

  private static let operation = "run the query"

  /// How much memory SQLite may take to compile a query that could double itself.
  ///
  /// One of 4,000 characters that does not needs a hundredth of a megabyte. What else this process does with SQLite in that
  /// moment counts too.
  private static let compilingMemory: Int64 = 64 << 20

  /// How much more it may have while a query runs; what it sorts and gathers is in files, which have a limit of their own.
  private static let runningMemory: Int64 = 64 << 20

  /// How often a query is tried that others' memory may have ended.
  private static let mostTries = 5

  /// How long it waits before the second time; twice as long before each other one.
  private static let firstPause: Duration = .milliseconds(50)

  private enum Excess: Error {
    case time, memory
    /// The files in which it sorts and gathers rows.
    case files

    /// - Parameter excess: what its limit ended it for; nil where it was ended for the sake of its files.
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

  /// What a query can select from: the entities by the names of the model, then the tables of the file.
  ///
  /// - Throws: `store-unreadable`, `time-limit`.
  package func querySources() throws(RecordBrowsingError) -> [QuerySource] { try catalog().sources }

  func catalog() throws(RecordBrowsingError) -> QueryCatalog {
    if let known = queryCatalog.withLock({ $0 }) { return known }
    let made = try read(limits.opening) { database in try QueryCatalog(database, collections) }
    queryCatalog.withLock { $0 = made }
    return made
  }

  /// Does a query that a person typed, on a connection of its own that can do nothing but read.
  ///
  /// It has a limit of time and of memory, and gives way to all other work.
  ///
  /// - Throws: `sql-error` in SQLite's own words, `time-limit`, `bad-query`, `value-too-large`, `store-unreadable`.
  package func run(_ query: StoreQuery) throws(RecordBrowsingError) -> QueryResult {
    let catalog = try catalog()
    return try QuietThread.run { [self] () throws(RecordBrowsingError) in
      do {
        return try tried(limits.query) { left in
          try perform(query.sql, catalog, limit: left) { statement in try Self.page(of: statement, query) }
        }
      } catch {
        throw Self.queryError(error, path)
      }
    }
  }

  /// Does the work once more, as long as there is time, where SQLite had taken too much memory, which others in the process
  /// may have taken.
  private func tried<Value>(_ limit: Duration, _ work: (_ left: Duration) throws -> Value) throws -> Value {
    let start = ContinuousClock.now
    var pause = Self.firstPause
    for _ in 1..<Self.mostTries {
      let left = limit - (.now - start)
      guard left > .zero else { break }
      do {
        return try work(left)
      } catch Excess.memory {
        // What others do may be over then.
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

  /// Begins to read all rows of a query; their columns have names that are all different.
  ///
  /// The query is compiled at once, so that what is wrong with it is told before anything is sent.
  ///
  /// - Throws: as ``run(_:)``, and `busy` where too many are being read already. A stream ends with `value-too-large` where it has
  ///   more rows or bytes than ``Limits`` say.
  package func stream(_ query: StoreQuery) throws(RecordBrowsingError) -> RowStream {
    let catalog = try catalog()
    try checkStreams()
    let names = try QuietThread.run { [self] () throws(RecordBrowsingError) in
      do {
        return try perform(query.sql, catalog, limit: limits.query) { $0.columnNames }
      } catch {
        throw Self.queryError(error, path)
      }
    }
    let columns = QueryResult.unique(names).map { RecordColumn(name: $0, kind: .stored(declaredType: ""), sql: "") }
    return RowStream(columns) { [self] stream throws(RecordBrowsingError) in
      try begin(stream) { [self] in
        try QuietThread.run { [self] () throws(RecordBrowsingError) in
          do {
            try perform(query.sql, catalog, limit: limits.queryExport) { try fill(stream, $0) }
          } catch {
            throw Self.queryError(error, path)
          }
        }
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
        throw RecordBrowsingError(
          .tooLarge, path: path,
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

  /// Compiles a query and works with it, on a connection that is made for it and closed afterwards.
  private func perform<Value>(
    _ sql: String, _ catalog: QueryCatalog, limit: Duration, _ body: (Statement) throws -> Value
  ) throws -> Value {
    let text = sql.caseFolded
    // A name in quotation marks has its own ones twice.
    let views = catalog.views.filter { text.contains($0.key) || text.contains($0.key.replacing("\"", with: "\"\"")) }
    let queue = try EvidenceConnection.open(
      path, .unchanging, label: "Lazaret.Query", temporaryBytes: limits.queryFiles
    ) { database in
      for function in QueryFunctions.own { database.add(function: function) }
    }
    // Nothing was written through it.
    defer { try? queue.close() }
    return try queue.inDatabase { database in
      for view in views.values {
        // A name that SQLite takes for none, such as one that it keeps for itself, has its table all the same.
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

  /// The statement of a query, compiled within a limit of memory.
  ///
  /// Of one `SELECT` alone the text bounds what is compiled, since views of the store are off. With another one inside, a part can be
  /// named many times, or put in place of its name many times.
  private static func compiled(_ sql: String, _ database: Database) throws -> Statement {
    guard sql.lowercased().split(separator: "select", omittingEmptySubsequences: false).count > 2 else {
      return try statement(sql, database)
    }
    do {
      return try HeapLimit.apply(bytes: compilingMemory) { try statement(sql, database) }
    } catch let error as DatabaseError where error.resultCode == .SQLITE_NOMEM {
      throw RecordBrowsingError(
        .badQuery, operation: operation, detail: "SQLite would need too much memory to compile the query",
        hint: "Nest fewer parts of it in each other.")
    }
  }

  private static func statement(_ sql: String, _ database: Database) throws -> Statement {
    let all = try database.allStatements(sql: sql)
    guard let statement = try all.next() else {
      throw RecordBrowsingError(
        .sql, operation: operation, detail: "there is no statement in it", hint: "Type one, such as SELECT 1.")
    }
    guard try all.next() == nil else {
      throw RecordBrowsingError(
        .sql, operation: operation, detail: "there is more than one statement in it", hint: "Run one after the other.")
    }
    guard statement.isReadonly, statement.columnCount > 0 else {
      throw RecordBrowsingError(
        .sql, operation: operation, detail: "the statement gives no rows", hint: "Type a SELECT.")
    }
    // Nothing is bound to parameters.
    try statement.validateArguments(StatementArguments())
    return statement
  }

  private static func refused(_ error: DatabaseError, _ refusal: String?) -> RecordBrowsingError {
    let what = refusal.map { " (\($0))" } ?? ""
    return RecordBrowsingError(
      .sql, operation: operation, detail: "\(words(error))\(what)",
      hint: "A query only reads: tables of the file, and functions that the page lists.")
  }

  /// What went wrong with a query; SQLite's own words where the query is at fault.
  private static func queryError(_ error: any Error, _ path: FilePath) -> RecordBrowsingError {
    if let excess = error as? Excess {
      return RecordBrowsingError(.timeLimit, operation: operation, path: path, detail: excess.words, hint: excess.hint)
    }
    guard let error = error as? DatabaseError else { return self.error(error, path) }
    switch error.resultCode {
    case .SQLITE_INTERRUPT: return queryError(Excess.time, path)
    case .SQLITE_ERROR, .SQLITE_MISMATCH, .SQLITE_RANGE, .SQLITE_MISUSE, .SQLITE_TOOBIG, .SQLITE_CONSTRAINT:
      return RecordBrowsingError(
        .sql, operation: operation, path: path, detail: words(error))
    default: return self.error(error, path)
    }
  }

  private static func words(_ error: DatabaseError) -> String {
    error.message.map { "SQLite says “\($0)”" } ?? "SQLite reported \(error.resultCode)"
  }
}

/// A bound on the memory that SQLite may take for a short piece of work, such as compiling a statement that a person typed.
///
/// SQLite asks no handler for leave while it compiles, and a statement of some hundred characters can double itself with each
/// of its parts (common table expressions, nested selections) until it takes hours. All of that takes memory, and without it
/// ends at once with `SQLITE_NOMEM`. SQLite has no such limit for one connection: it holds for the process, and so it is set
/// for the compiling alone.
package enum HeapLimit {
  /// One piece of work at a time, so that each puts back the limit that it found.
  private static let turn = DispatchSemaphore(value: 1)

  /// Does the work; what takes more bytes than SQLite had in use before, and these, fails with `SQLITE_NOMEM`.
  package static func apply<Value>(bytes: Int64, _ work: () throws -> Value) rethrows -> Value {
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
