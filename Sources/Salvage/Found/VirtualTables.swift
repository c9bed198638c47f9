internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// Restores virtual tables, such as full-text and R-tree indexes, over their recovered shadow tables.
///
/// Only the declaration is written into the schema, as SQLite's `.dump` does, and checked by the module. If the check
/// fails, the table is rebuilt from content. Tables that need the app's own code stay as declared.
struct VirtualTables {
  /// SQLite's answer to a statement.
  enum Answer {
    /// The first row's first value as text.
    case done(String?)

    case refused(String)
  }

  private struct Declared {
    var name: String
    var module: String
    var statement: String
  }

  private let declared: [Declared]

  /// The attached database with content for rebuilds.
  private let content: String?

  /// Runs a statement to its end in a connection's main database.
  private let ask: (String) throws -> Answer

  private(set) var remarks: [String] = []

  /// The rows of rebuilt tables that have fewer than their content had, by the shadow table with a row for each.
  private(set) var recounts: [SalvageReport.Recount] = []

  init(in entries: [SchemaEntry], content: String? = nil, ask: @escaping (String) throws -> Answer) {
    declared = entries.compactMap { entry in
      guard let sql = entry.sql, let definition = entry.tableDefinition, let module = definition.module,
        isSame(definition.name, entry.name)
      else { return nil }
      return Declared(name: entry.name, module: module.lowercased(), statement: sql)
    }
    self.content = content
    self.ask = ask
  }

  mutating func make() throws {
    for table in declared {
      guard let reason = try refusal(of: table) else { continue }
      let name = printable(table.name)
      if Self.isOfApp(reason), case .done = try enter(table) {
        remarks.append(
          "the virtual table \(name) stays as it is declared, and nothing checked it: only the app can use it (\(reason))"
        )
      } else if let content, ShadowTables.modules.contains(table.module) {
        if let words = try remake(table, from: content) {
          remarks.append("the virtual table \(name) was damaged (\(reason)); \(words)")
        }
      } else {
        remarks.append("the virtual table \(name) was not made again (\(reason)); the tables behind it were")
      }
    }
  }

  /// Whether SQLite lacks the app's own module or tokenizer.
  private static func isOfApp(_ reason: String) -> Bool {
    [lacksModule, "no such tokenizer", "unknown tokenizer", "error in tokenizer constructor"].contains(
      where: reason.hasPrefix)
  }

  private static let lacksModule = "this SQLite lacks the module"

  /// Rebuilds a virtual table; returns a remark unless complete.
  private mutating func remake(_ table: Declared, from content: String) throws -> String? {
    let words = try refill(table, from: content)
    guard let shadow = ShadowTables.rows(of: table.name, module: table.module) else { return words }
    let rows = SQLText.quotedIdentifier(shadow)
    let made = try count("SELECT count(*) FROM main.\(rows)") ?? 0
    let found = try count("SELECT count(*) FROM \(content).\(rows)") ?? 0
    guard made < found else { return words }
    recounts.append(.init(name: shadow, table: shadow, recovered: made, setAside: 0, lost: found - made))
    return words ?? "it was made anew with \(made) of \(found) entries"
  }

  /// Remakes a virtual table from its content; returns a remark if it stays empty.
  private func refill(_ table: Declared, from content: String) throws -> String? {
    for shadow in ShadowTables.names(of: table.name, module: table.module) {
      _ = try ask("DROP TABLE IF EXISTS main.\(SQLText.quotedIdentifier(shadow))")
    }
    if case .refused(let message) = try ask(table.statement) { return "it could not be made anew (\(message))" }
    let empty = "it was made anew, and is empty"
    guard let fill = try filling(table, from: content) else { return "\(empty): its content could not be read" }
    if case .refused(let message) = try ask(fill) { return "\(empty) (\(message))" }
    return try complaint(of: table).map { "\(empty) (\($0))" }
  }

  /// The statement that fills a rebuilt table, if its content is readable.
  private func filling(_ table: Declared, from content: String) throws -> String? {
    func columns(of name: String, in schema: String) -> String {
      "FROM pragma_table_xinfo(\(SQLText.literal(name)), '\(schema)')"
    }
    let name = SQLText.quotedIdentifier(table.name)
    guard table.module.hasPrefix("fts") else {
      guard let all = try count("SELECT count(*) \(columns(of: table.name, in: "main"))"),
        let rows = try count("SELECT count(*) \(columns(of: table.name + "_rowid", in: content))"), rows >= 2,
        all > rows - 1, table.module != "geopoly"
      else { return nil }
      let entries = SpatialEntries(
        schema: content, name: table.name, coordinates: Int(all - 1 - (rows - 2)), others: Int(rows - 2),
        areIntegers: table.module == "rtree_i32")
      return "INSERT OR IGNORE INTO main.\(name) \(entries.selection)"
    }
    let source = table.name + "_content"
    let list = "SELECT group_concat('\"' || replace(name, '\"', '\"\"') || '\"', ', ') FROM (SELECT name"
    guard try count("SELECT count(*) \(columns(of: source, in: content))") ?? 0 > 0 else {
      return "INSERT INTO main.\(name) (\(name)) VALUES ('rebuild')"
    }
    guard
      case .done(let own?) = try ask("\(list) \(columns(of: table.name, in: "main")) WHERE hidden = 0 ORDER BY cid)"),
      case .done(let values?) = try ask("\(list) \(columns(of: source, in: content)) WHERE cid > 0 ORDER BY cid)")
    else { return nil }
    let key = table.module == "fts5" ? "id" : "docid"
    return "INSERT INTO main.\(name) (rowid, \(own)) SELECT \(key), \(values) FROM \(content)."
      + SQLText.quotedIdentifier(source)
  }

  private func count(_ sql: String) throws -> Int64? {
    guard case .done(let text) = try ask(sql) else { return nil }
    return text.flatMap { Int64($0) }
  }

  private func refusal(of table: Declared) throws -> String? {
    guard case .done("1") = try ask("SELECT 1 FROM pragma_module_list WHERE name = \(SQLText.literal(table.module))")
    else { return "\(Self.lacksModule) \(printable(table.module))" }
    guard Self.modules.contains(table.module) else { return "the module \(printable(table.module)) keeps no rows" }
    guard
      case .done(nil) = try ask(
        "SELECT 1 FROM main.sqlite_master WHERE lower(name) = \(SQLText.literal(table.name.lowercased()))")
    else { return "something else has its name" }
    // EXPLAIN only compiles: a failing statement must not enter the schema.
    if case .refused(let message) = try ask("EXPLAIN \(table.statement)") { return message }
    if case .refused(let message) = try enter(table) { return message }
    guard let message = try complaint(of: table) else { return nil }
    _ = try ask("PRAGMA writable_schema = 1")
    _ = try ask(
      "DELETE FROM main.sqlite_master WHERE name = \(SQLText.literal(table.name)) AND rootpage = 0 AND type = 'table'")
    _ = try ask("PRAGMA writable_schema = RESET")
    return message
  }

  private func enter(_ table: Declared) throws -> Answer {
    if case .refused(let message) = try ask("PRAGMA writable_schema = 1") { return .refused(message) }
    let name = SQLText.literal(table.name)
    let written = try ask(
      "INSERT INTO main.sqlite_master (type, name, tbl_name, rootpage, sql) "
        + "VALUES ('table', \(name), \(name), 0, \(SQLText.literal(table.statement)))")
    let read = try ask("PRAGMA writable_schema = RESET")
    if case .refused = written { return written }
    return read
  }

  private func complaint(of table: Declared) throws -> String? {
    let name = SQLText.quotedIdentifier(table.name)
    let look = "SELECT 1 FROM main.\(name) LIMIT 1"
    switch table.module {
    case "fts3", "fts4", "fts5":
      let check = "INSERT INTO main.\(name) (\(name)) VALUES ('integrity-check')"
      return try refusal(of: [look, check])
    case "rtree", "rtree_i32", "geopoly":
      if case .refused(let message) = try ask(look) { return message }
      switch try ask("SELECT rtreecheck('main', \(SQLText.literal(table.name)))") {
      case .done("ok"): return nil
      case .done: return "its nodes are damaged"
      case .refused(let message): return message
      }
    default: return try refusal(of: [look])
    }
  }

  private func refusal(of statements: [String]) throws -> String? {
    for statement in statements {
      if case .refused(let message) = try ask(statement) { return message }
    }
    return nil
  }

  /// SQLite's own modules that read only tables.
  private static let modules: Set<String> = [
    "fts3", "fts4", "fts5", "rtree", "rtree_i32", "geopoly", "fts4aux", "fts5vocab", "fts3tokenize",
  ]
}

/// Reads an R-tree's nodes in SQL (sqlite.org/rtree.html, "The Shadow Tables").
struct SpatialEntries {
  let schema: String

  let name: String

  let coordinates: Int

  /// The number of auxiliary columns.
  let others: Int

  let areIntegers: Bool

  /// Selects leaf entries confirmed by the `_rowid` table: key, coordinates, auxiliary columns.
  var selection: String {
    let cell = "4+i*\(8 + 4 * coordinates)"
    let numbers = (0..<coordinates).map { "\(Self.number(at: "\(cell)+\(8 + 4 * $0)")) AS u\($0)" }
    let values = (0..<coordinates).map { place in
      let bits = "u\(place)"
      // A signed 32-bit integer or an IEEE 754 single.
      return areIntegers
        ? "\(bits)-(\(bits)>>31)*4294967296"
        : "(SELECT v*((\(bits)&8388607)+(((\(bits)>>23)&255)>0)*8388608)*(1-2*(\(bits)>>31)) FROM p "
          + "WHERE e=max((\(bits)>>23)&255,1))"
    }
    let rows = "\(schema).\(SQLText.quotedIdentifier(name + "_rowid"))"
    let nodes = "\(schema).\(SQLText.quotedIdentifier(name + "_node"))"
    let high = Self.number(at: cell)
    return """
      WITH RECURSIVE p(e,v) AS (VALUES(1,1.401298464324817e-45) UNION ALL SELECT e+1,v*2 FROM p WHERE e<254),
      n(h,i,c) AS (
        SELECT h,0,min(\(Self.byte(at: "2"))*256+\(Self.byte(at: "3")),(length(h)/2-4)/\(8 + 4 * coordinates))
        FROM (SELECT hex(data) AS h FROM \(nodes) WHERE nodeno IN (SELECT nodeno FROM \(rows)))
        UNION ALL SELECT h,i+1,c FROM n WHERE i+1<c),
      k AS MATERIALIZED (
        SELECT (\(high)-(\(high)>>31)*4294967296)*4294967296+\(Self.number(at: "\(cell)+4")) AS id,
        \(numbers.joined(separator: ",")) FROM n WHERE i<c)
      SELECT k.id,\((values + (0..<others).map { "r.a\($0)" }).joined(separator: ",")) FROM k JOIN \(rows) AS r ON r.rowid=k.id
      """
  }

  private static func number(at offset: String) -> String {
    let bytes = (0..<4).map { "\(byte(at: "\(offset)+\($0)"))*\(1 << (24 - 8 * $0))" }
    return "(\(bytes.joined(separator: "+")))"
  }

  /// A byte, from its hexadecimal digits in `h`.
  private static func byte(at offset: String) -> String {
    let digits = "instr('0123456789ABCDEF',substr(h,(\(offset))*2+"
    return "((\(digits)1,1))-1)*16+\(digits)2,1))-1)"
  }
}
