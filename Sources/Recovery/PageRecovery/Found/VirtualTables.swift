internal import PersistentStore
package import SQLiteFormat
internal import StoreFiles

/// The virtual tables of a store, made again over the tables behind them: full-text and R-tree indexes.
///
/// The rows of a virtual table are in ordinary tables, which come back as all tables do. So only its declaration is written
/// into the schema, as SQLite's own `.dump` does, and then its module checks what it finds. Where it is not satisfied, or
/// SQLite lacks the module, the declaration is left out again, which is told.
package struct VirtualTables {
  /// What SQLite has to say to a statement.
  package enum Answer {
    /// It was carried out; the first value of its first row, as text.
    case done(String?)

    /// It was refused, with this message.
    case refused(String)
  }

  /// A virtual table as the schema has it.
  private struct Declared {
    var name: String
    var module: String
    var statement: String
  }

  private let declared: [Declared]

  /// Whether a module may draw up its index anew from the content that it keeps, where the index is damaged.
  private let mayRebuild: Bool

  /// What is to be said of those that were not made again.
  package private(set) var remarks: [String] = []

  /// Finds them among the entries of a schema.
  package init(in entries: [SchemaEntry], mayRebuild: Bool) {
    declared = entries.compactMap { entry in
      guard let sql = entry.sql, let definition = entry.tableDefinition, let module = definition.module,
        isSame(definition.name, entry.name)
      else { return nil }
      return Declared(name: entry.name, module: module.lowercased(), statement: sql)
    }
    self.mayRebuild = mayRebuild
  }

  /// Makes them again in the main database of a connection.
  ///
  /// - Parameter ask: carries a statement out to its end.
  package mutating func make<Problem: Error>(_ ask: (String) throws(Problem) -> Answer) throws(Problem) {
    for table in declared {
      guard let reason = try refusal(of: table, ask) else { continue }
      remarks.append(
        "the virtual table \(printable(table.name)) was not made again (\(reason)); the tables behind it were")
    }
  }

  /// Makes one; returns why it was not made.
  private func refusal<Problem: Error>(
    of table: Declared, _ ask: (String) throws(Problem) -> Answer
  ) throws(Problem) -> String? {
    guard case .done("1") = try ask("SELECT 1 FROM pragma_module_list WHERE name = \(SQLText.literal(table.module))")
    else {
      return "this SQLite lacks the module \(printable(table.module))"
    }
    guard Self.modules.contains(table.module) else { return "the module \(printable(table.module)) keeps no rows" }
    guard
      case .done(nil) = try ask(
        "SELECT 1 FROM main.sqlite_master WHERE lower(name) = \(SQLText.literal(table.name.lowercased()))")
    else { return "something else has its name" }
    // It is only compiled: what does not compile must not stand in a schema.
    if case .refused(let message) = try ask("EXPLAIN \(table.statement)") { return message }
    if case .refused(let message) = try enter(table, ask) { return message }
    guard let message = try complaint(of: table, ask) else { return nil }
    _ = try ask("PRAGMA writable_schema = 1")
    _ = try ask(
      "DELETE FROM main.sqlite_master WHERE name = \(SQLText.literal(table.name)) AND rootpage = 0 AND type = 'table'")
    _ = try ask("PRAGMA writable_schema = RESET")
    return message
  }

  /// Writes the declaration into the schema, and has the schema read again.
  private func enter<Problem: Error>(
    _ table: Declared, _ ask: (String) throws(Problem) -> Answer
  ) throws(Problem) -> Answer {
    if case .refused(let message) = try ask("PRAGMA writable_schema = 1") { return .refused(message) }
    let name = SQLText.literal(table.name)
    let written = try ask(
      "INSERT INTO main.sqlite_master (type, name, tbl_name, rootpage, sql) "
        + "VALUES ('table', \(name), \(name), 0, \(SQLText.literal(table.statement)))")
    let read = try ask("PRAGMA writable_schema = RESET")
    if case .refused = written { return written }
    return read
  }

  /// What the module says against what it finds; nil where it is satisfied.
  private func complaint<Problem: Error>(
    of table: Declared, _ ask: (String) throws(Problem) -> Answer
  ) throws(Problem) -> String? {
    let name = SQLText.quotedIdentifier(table.name)
    let look = "SELECT 1 FROM main.\(name) LIMIT 1"
    switch table.module {
    case "fts3", "fts4", "fts5":
      let check = "INSERT INTO main.\(name) (\(name)) VALUES ('integrity-check')"
      guard let message = try refusal(of: [look, check], ask) else { return nil }
      guard mayRebuild else { return message }
      let rebuild = "INSERT INTO main.\(name) (\(name)) VALUES ('rebuild')"
      return try refusal(of: [rebuild, look, check], ask) == nil ? nil : message
    case "rtree", "rtree_i32", "geopoly":
      if case .refused(let message) = try ask(look) { return message }
      switch try ask("SELECT rtreecheck('main', \(SQLText.literal(table.name)))") {
      case .done("ok"): return nil
      case .done: return "its nodes are damaged"
      case .refused(let message): return message
      }
    default: return try refusal(of: [look], ask)
    }
  }

  /// What is said against the first of several statements that is refused; nil where all are carried out.
  private func refusal<Problem: Error>(
    of statements: [String], _ ask: (String) throws(Problem) -> Answer
  ) throws(Problem) -> String? {
    for statement in statements {
      if case .refused(let message) = try ask(statement) { return message }
    }
    return nil
  }

  /// The modules of SQLite's own that read nothing but tables of the database.
  private static let modules: Set<String> = [
    "fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly", "fts4aux", "fts5vocab", "fts3tokenize",
  ]
}
