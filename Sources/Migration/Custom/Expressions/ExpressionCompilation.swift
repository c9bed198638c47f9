internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// Lets SQLite compile expressions on empty tables of a source's model, so that errors come before any store is touched.
struct ExpressionCompilation {
  /// What stands before the names of the source's tables.
  static let schema = "old."

  private let queue: DatabaseQueue

  /// Makes the tables, in memory.
  init(_ layout: StoreLayout) throws(MigrationError) {
    do {
      queue = try DatabaseQueue()
      try queue.inDatabase { database in
        try StepConnection.addFunctions(to: database, referenceDate: 0)
        try database.execute(sql: "ATTACH DATABASE ':memory:' AS old")
        for table in layout.tables { try database.execute(sql: Self.placed(table.statement)) }
        for table in layout.joinTables { try database.execute(sql: Self.placed(table.statement)) }
        try database.execute(sql: "CREATE TABLE old.Z_METADATA (Z_VERSION INTEGER, Z_UUID VARCHAR, Z_PLIST BLOB)")
      }
    } catch {
      throw MigrationError(database: error, path: nil)
    }
  }

  private static func placed(_ statement: String) -> String {
    "CREATE TABLE \(schema)" + statement.dropFirst("CREATE TABLE ".count)
  }

  /// Compiles what was made of an expression.
  ///
  /// - Throws: the problem, with its place in the text where it has one.
  func check(
    _ expression: MappingExpressionRewriter.Rewritten, of entity: EntityLayout
  ) throws(MappingExpressionProblem) {
    guard let message = message(expression.sql, of: entity) else { return }
    let hint = "Correct the expression; SQLite's rules for expressions hold."
    let pieces = expression.pieces
    guard Self.isSyntax(message), !pieces.isEmpty else {
      throw MappingExpressionProblem(
        position: Self.position(named: message, pieces),
        detail: "SQLite cannot compile the expression: \(printable(message))", hint: hint)
    }
    // What was put around the expression, and what its names became, must not be told.
    guard isWrong(pieces[...]) else {
      throw MappingExpressionProblem(
        position: pieces.last?.position ?? 0,
        detail: "SQLite cannot compile the expression: it ends too early, something must follow", hint: hint)
    }
    // The shortest beginning that nothing could make right ends with the piece that is wrong.
    var (low, high) = (1, pieces.count)
    while low < high {
      let middle = (low + high) / 2
      if isWrong(pieces.prefix(middle)) { high = middle } else { low = middle + 1 }
    }
    throw MappingExpressionProblem(
      position: pieces[low - 1].position, detail: "SQLite cannot compile the expression: a syntax error", hint: hint)
  }

  /// What SQLite says against an expression over the row `o`; nil for nothing.
  func message(_ sql: String, of entity: EntityLayout) -> String? {
    message("SELECT \(sql) FROM \(Self.schema)\(SQLText.identifier(entity.tableName)) AS o WHERE o.Z_ENT = 1")
  }

  private func message(_ statement: String) -> String? {
    queue.inDatabase { database in
      do {
        _ = try database.makeStatement(sql: statement)
        return nil
      } catch {
        return (error as? DatabaseError)?.message ?? "an unforeseen failure"
      }
    }
  }

  /// Whether a message is about the grammar and not about a name.
  ///
  /// SQLite has one code for both, `SQLITE_ERROR`; only its words tell them apart.
  private static func isSyntax(_ message: String) -> Bool {
    ["syntax error", "incomplete input", "unrecognized token"].contains { message.contains($0) }
  }

  /// Whether pieces are no beginning of an expression; names are not looked at.
  private func isWrong(_ pieces: ArraySlice<MappingExpressionRewriter.Piece>) -> Bool {
    message("SELECT " + pieces.map(\.sql).joined(separator: " ")).map {
      Self.isSyntax($0) && !$0.contains("incomplete input")
    } ?? false
  }

  /// The place of the function that a message such as `wrong number of arguments to function abs()` names; 0 for none.
  private static func position(named message: String, _ pieces: [MappingExpressionRewriter.Piece]) -> Int {
    guard message.hasSuffix("()"), let name = message.dropLast(2).split(separator: " ").last else { return 0 }
    let found = pieces.filter { $0.sql.lowercased() == name.lowercased() }
    return found.count == 1 ? found[0].position : 0
  }
}
