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
