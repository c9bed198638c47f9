package import GRDB
internal import GRDBSQLite

extension Statement {
  /// Counts each function in the compiled statement, case-folded, with `||` for concatenations.
  ///
  /// SQLite substitutes subqueries for names of their columns, so the text isn't enough. Empty for `EXPLAIN`, which
  /// runs no steps (https://sqlite.org/opcode.html, https://sqlite.org/lang_explain.html).
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

  /// The opcodes that call a function or work as much.
  private static let calling: Set<String> = [
    "Function", "PureFunc", "AggStep", "AggStep1", "AggInverse", "AggValue", "Concat",
  ]
}
