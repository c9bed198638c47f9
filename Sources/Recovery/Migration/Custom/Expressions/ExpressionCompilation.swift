internal import GRDB
internal import PersistentStore
internal import StoreFiles

/// Lets SQLite compile expressions on empty tables of a source's model, so that errors come before any store is touched.
struct ExpressionCompilation {
  /// What stands before the names of the source's tables.
  private static let schema = "old."

  /// The columns of the source by the names of its model.
  let paths: MappingPathResolver

  private let queue: DatabaseQueue

  /// Makes the tables, in memory.
  init(_ layout: StoreLayout) throws(MigrationError) {
    paths = MappingPathResolver(layout: layout, schema: Self.schema)
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

  /// Binds an expression in SQL and compiles what has become of it.
  ///
  /// - Throws: the problem, with its place in the text where it has one.
  func bind(_ text: String, of entityName: String, place: String) throws(ExpressionProblem) -> BoundExpression {
    let bound = try paths.bind(text, of: entityName, place: place)
    guard let table = paths.layout.entity(named: entityName)?.tableName else { return bound }
    do {
      try queue.inDatabase { database in
        _ = try database.makeStatement(
          sql: "SELECT \(bound.sql) FROM \(Self.schema)\(SQLText.identifier(table)) AS o WHERE o.Z_ENT = 1")
      }
    } catch {
      let message = (error as? DatabaseError)?.message ?? "an unforeseen failure"
      // SQLite has one code for all that is wrong, `SQLITE_ERROR`; only its words tell what.
      let isSyntax = ["syntax error", "incomplete input", "unrecognized token"].contains { message.contains($0) }
      throw .compilation(isSyntax ? "a syntax error" : printable(message), at: bound.position(named: message))
    }
    return bound
  }
}

extension BoundExpression {
  /// The place of what SQLite names: `near "x": syntax error`, `wrong number of arguments to function abs()`; 0 where it
  /// is not known.
  fileprivate func position(named message: String) -> Int {
    let isFunction = message.hasSuffix("()")
    let name =
      isFunction
      ? message.dropLast(2).split(separator: " ").last : message.split(separator: "\"").dropFirst().first
    let found = tokens.filter { $0.text.lowercased() == name?.lowercased() }
    return found.count == 1 ? found[0].position : 0
  }
}
