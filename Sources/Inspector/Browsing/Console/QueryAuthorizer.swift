internal import GRDB
internal import GRDBSQLite

/// Restricts a typed statement to reading stored data.
///
/// SQLite asks about each action while compiling (https://sqlite.org/c3ref/set_authorizer.html). Only listed actions
/// are allowed: no writes, `ATTACH`, `PRAGMA`, transactions, unlisted functions, views, virtual tables, or columns
/// computed by the store's expressions.
@safe final class QueryAuthorizer {
  struct Rules: Sendable {
    /// The ordinary tables and stored columns, case-folded.
    fileprivate var tables: [String: Set<String>]

    fileprivate var haveComputedColumns = false

    /// The store's views and virtual tables, and SQLite's modules.
    fileprivate var others: Set<String>

    fileprivate var functions: Set<String>

    /// - Parameter functions: the callable functions in lower case.
    init(_ database: Database, functions: Set<String>) throws {
      self.functions = functions
      let schema: Set = ["type", "name", "tbl_name", "rootpage", "sql"]
      tables = ["sqlite_master": schema, "sqlite_schema": schema]
      others = try Set(Self.names(database, "SELECT name, '' FROM pragma_module_list").map(\.0.caseFolded))
      let list = try Self.names(database, "SELECT name, type FROM pragma_table_list WHERE schema = 'main'")
      for (name, type) in list where tables[name.caseFolded] == nil {
        if type == "table" || type == "shadow" {
          tables[name.caseFolded] = []
        } else {
          others.insert(name.caseFolded)
        }
      }
      let columns = """
        FROM pragma_table_list AS l, pragma_table_xinfo(l.name) AS c
        WHERE l.schema = 'main' AND l.type IN ('table', 'shadow') AND c.hidden
        """
      for (table, column) in try Self.names(database, "SELECT l.name, c.name \(columns) <> 2") {
        tables[table.caseFolded]?.insert(column.caseFolded)
      }
      haveComputedColumns = try !Self.names(database, "SELECT l.name, c.name \(columns) = 2 LIMIT 1").isEmpty
    }

    /// Returns a query's pairs of names, whatever the schema holds.
    private static func names(_ database: Database, _ sql: String) throws -> [(String, String)] {
      try Row.fetchAll(database, sql: sql).map { row in
        let (first, second): (DatabaseValue, DatabaseValue) = (row[0], row[1])
        return (String.fromDatabaseValue(first) ?? "", String.fromDatabaseValue(second) ?? "")
      }
    }

    private static let rowNames: Set<String> = ["", "rowid", "oid", "_rowid_"]

    fileprivate func allows(_ column: String, of table: String) -> Bool {
      let (table, column) = (table.caseFolded, column.caseFolded)
      // These names mean the rowid unless a column has them; a table without read columns comes with an empty one.
      if let stored = tables[table] { return stored.contains(column) || Self.rowNames.contains(column) }
      // SQLite also passes an empty column for common table expressions and the like.
      return column.isEmpty && !others.contains(table) && !table.hasPrefix("pragma_") && !table.hasPrefix("sqlite_")
    }
  }

  private let rules: Rules
  private let views: Set<String>

  /// Whether it might join by computed columns: SQLite doesn't ask about columns of NATURAL and USING, nor about
  /// otherwise unread tables.
  private let mayCompareComputed: Bool

  private(set) var refusal: String?

  /// - Parameters:
  ///   - views: the connection's temporary views, case-folded.
  init(_ rules: Rules, views: Set<String> = [], statement: String) {
    self.rules = rules
    self.views = views
    let text = statement.caseFolded
    mayCompareComputed = rules.haveComputedColumns && (text.contains("natural") || text.contains("using"))
  }

  /// Runs the work under this authorizer, including recompiled statements.
  ///
  /// Afterwards the connection has no authorizer, not even GRDB's, and must be closed.
  ///
  /// - Throws: the work's errors; `SQLITE_AUTH` for refused actions.
  func apply<Value>(to database: Database, _ work: () throws -> Value) throws -> Value {
    guard let connection = unsafe database.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_MISUSE) }
    unsafe sqlite3_set_authorizer(
      connection,
      { context, action, first, second, third, _ in
        guard let context = unsafe context else { return SQLITE_DENY }
        func text(_ pointer: UnsafePointer<CChar>?) -> String {
          unsafe pointer.map { unsafe String(cString: $0) } ?? ""
        }
        let authorizer = unsafe Unmanaged<QueryAuthorizer>.fromOpaque(context).takeUnretainedValue()
        let isAllowed = unsafe authorizer.allows(action, text(first), text(second), database: text(third))
        return isAllowed ? SQLITE_OK : SQLITE_DENY
      }, Unmanaged.passUnretained(self).toOpaque())
    defer { unsafe sqlite3_set_authorizer(connection, nil, nil) }
    return try work()
  }

  private func allows(_ action: Int32, _ first: String, _ second: String, database: String) -> Bool {
    switch action {
    case SQLITE_SELECT, SQLITE_RECURSIVE:
      if mayCompareComputed, refusal == nil { refusal = "NATURAL or USING where a table has computed columns" }
      return !mayCompareComputed
    case SQLITE_READ:
      let isAllowed =
        database == "temp"
        ? views.contains(first.caseFolded) : rules.allows(second, of: first)
      if !isAllowed, refusal == nil { refusal = "reading \(first)\(second.isEmpty ? "" : ".\(second)")" }
      return isAllowed
    case SQLITE_FUNCTION:
      let isAllowed = rules.functions.contains(second.caseFolded)
      if !isAllowed, refusal == nil { refusal = "the function \(second)" }
      return isAllowed
    default:
      if refusal == nil { refusal = Self.words(action) }
      return false
    }
  }

  private static func words(_ action: Int32) -> String {
    switch action {
    case SQLITE_ATTACH: "ATTACH"
    case SQLITE_DETACH: "DETACH"
    case SQLITE_PRAGMA: "PRAGMA"
    case SQLITE_INSERT: "INSERT"
    case SQLITE_UPDATE: "UPDATE"
    case SQLITE_DELETE: "DELETE"
    case SQLITE_TRANSACTION, SQLITE_SAVEPOINT: "a transaction"
    case SQLITE_ANALYZE: "ANALYZE"
    case SQLITE_REINDEX: "REINDEX"
    case SQLITE_ALTER_TABLE: "ALTER"
    default: "a change of the schema"
    }
  }
}

extension String {
  /// The text as SQLite compares names: ignoring the case of A to Z only.
  ///
  /// https://sqlite.org/c3ref/stricmp.html
  var caseFolded: String {
    String(decoding: utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
  }
}
