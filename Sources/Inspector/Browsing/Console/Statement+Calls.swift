package import GRDB
internal import GRDBSQLite

extension Statement {
  /// How often each function stands in the compiled statement, without case, and `||` for how often values are joined.
  ///
  /// Its text does not tell: SQLite puts a selection in the place of each name that stands for a column of it. Empty for an
  /// `EXPLAIN`, which does nothing (https://sqlite.org/opcode.html, https://sqlite.org/lang_explain.html).
  package func calls(_ database: Database) throws -> [String: Int] {
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

  /// The steps of SQLite's machine that call a function, or do as much.
  private static let calling: Set<String> = [
    "Function", "PureFunc", "AggStep", "AggStep1", "AggInverse", "AggValue", "Concat",
  ]
}
