internal import Foundation
internal import GRDB
internal import GRDBSQLite

enum QueryFunctions {
  /// SQLite functions that reach only their arguments, in time linear in their length.
  private static let harmless: Set<String> = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "avg", "ceil", "ceiling", "char", "coalesce",
    "cos", "cosh", "count", "cume_dist", "current_date", "current_time", "current_timestamp", "date", "datetime",
    "degrees", "dense_rank", "exp", "first_value", "floor", "format", "group_concat", "hex", "ifnull", "iif",
    "julianday", "lag", "last_value", "lead", "length", "likelihood", "likely", "ln", "log", "log10", "log2", "lower",
    "ltrim", "max", "min", "mod", "nth_value", "ntile", "nullif", "octet_length", "percent_rank", "pi", "pow", "power",
    "printf", "quote", "radians", "random", "rank", "round", "row_number", "rtrim", "sign", "sin", "sinh",
    "sqlite_version", "sqrt", "strftime", "string_agg", "substr", "substring", "sum", "tan", "tanh", "time", "timediff",
    "total", "trim", "trunc", "typeof", "unhex", "unicode", "unixepoch", "unlikely", "upper",
  ]

  /// Functions that split a text or try a pattern everywhere, in one call.
  private static let thorough: Set<String> = [
    "->", "->>", "glob", "json", "json_array", "json_array_length", "json_extract", "json_group_array",
    "json_group_object", "json_insert", "json_object", "json_quote", "json_remove", "json_replace", "json_set",
    "json_type", "json_valid", "like",
  ]

  /// Functions that search one value in another, in time proportional to the product of both lengths.
  private static let searching: Set<String> = ["instr", "replace"]

  static let names = harmless.union(thorough).union(searching).union(own.map { $0.name.lowercased() })

  /// The largest value in bytes for a query with these calls.
  ///
  /// SQLite checks the time only where its program jumps back, not between consecutive calls. With values of this size,
  /// all calls take about a second.
  static func longestValue(_ calls: [String: Int]) -> Int64 {
    func number(_ names: Set<String>) -> Int { calls.reduce(0) { names.contains($1.key) ? $0 + $1.value : $0 } }
    let all = calls.values.reduce(0, +)
    var longest = Int64(16 << 20) / Int64(max(1, all / 32))
    let (patterns, searches) = (number(thorough), number(searching))
    if patterns > 0 { longest = min(longest, Int64(4 << 20) / Int64(patterns)) }
    // Twice the length takes four times as long.
    if searches > 0 { longest = min(longest, Int64(Double(256 << 10) / Double(searches).squareRoot())) }
    return longest
  }

  // MARK: Our own

  /// Core Data's dates and UUIDs as text, and `trim` with a character list, for which SQLite takes the product of both
  /// lengths.
  static let own: [DatabaseFunction] = [
    DatabaseFunction("core_data_date", argumentCount: 1, pure: true) { values in date(values[0]) },
    DatabaseFunction("uuid_text", argumentCount: 1, pure: true) { values in uuid(values[0]) },
    trim("trim", start: true, end: true), trim("ltrim", start: true, end: false),
    trim("rtrim", start: false, end: true),
  ]

  private static func trim(_ name: String, start: Bool, end: Bool) -> DatabaseFunction {
    DatabaseFunction(name, argumentCount: 2, pure: true) { values in
      trimmed(values[0], values[1], start: start, end: end)
    }
  }

  private static func trimmed(_ value: DatabaseValue, _ list: DatabaseValue, start: Bool, end: Bool) -> String? {
    guard let text = text(value), let set = self.text(list) else { return nil }
    let characters = Set(set.unicodeScalars)
    var rest = Substring(text).unicodeScalars
    if start { rest = rest.drop { characters.contains($0) } }
    if end, let last = rest.lastIndex(where: { !characters.contains($0) }) { return String(rest[...last]) }
    return end ? "" : String(rest)
  }

  private static func date(_ value: DatabaseValue) -> String? {
    guard let seconds = Double.fromDatabaseValue(value) else { return nil }
    return PresentedValue.date(seconds)
  }

  private static func uuid(_ value: DatabaseValue) -> String? {
    guard case .blob(let data) = value.storage, data.count == 16 else { return nil }
    return PresentedValue.uuid([UInt8](data))
  }

  /// Returns SQLite's text of a value; nil for NULL.
  private static func text(_ value: DatabaseValue) -> String? {
    switch value.storage {
    case .null: nil
    case .int64(let number): String(number)
    case .double(let number): "\(number)"
    case .string(let text): text
    case .blob(let data): String(decoding: data, as: UTF8.self)
    }
  }
}

extension Statement {
  /// Counts each function in the compiled statement, case-folded, with `||` for concatenations.
  ///
  /// SQLite substitutes subqueries for names of their columns, so the text isn't enough. Empty for `EXPLAIN`, which
  /// runs no steps (https://sqlite.org/opcode.html, https://sqlite.org/lang_explain.html).
  func calls(_ database: Database) throws -> [String: Int] {
    guard unsafe sqlite3_stmt_isexplain(sqliteStatement) == 0 else { return [:] }
    var calls: [String: Int] = [:]
    let program = try Row.fetchCursor(database, sql: "EXPLAIN \(sql)")
    while let step = try program.next() {
      let opcode = String.fromDatabaseValue(step["opcode"]) ?? ""
      let name = opcode == "Concat" ? "||" : String.fromDatabaseValue(step["p4"])
      guard Self.calling.contains(opcode), let name else { continue }
      calls[String(name.prefix { $0 != "(" }).caseFolded, default: 0] += 1
    }
    return calls
  }

  /// The opcodes that call a function or work as much.
  private static let calling: Set<String> = [
    "Function", "PureFunc", "AggStep", "AggStep1", "AggInverse", "AggValue", "Concat",
  ]
}

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
      noted(!mayCompareComputed, "NATURAL or USING where a table has computed columns")
    case SQLITE_READ:
      noted(
        database == "temp" ? views.contains(first.caseFolded) : rules.allows(second, of: first),
        "reading \(first)\(second.isEmpty ? "" : ".\(second)")")
    case SQLITE_FUNCTION: noted(rules.functions.contains(second.caseFolded), "the function \(second)")
    default: noted(false, Self.words(action))
    }
  }

  /// Keeps the first refusal.
  private func noted(_ isAllowed: Bool, _ words: @autoclosure () -> String) -> Bool {
    if !isAllowed, refusal == nil { refusal = words() }
    return isAllowed
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
  var caseFolded: String { String(decoding: utf8.map { (0x41...0x5a).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self) }
}
