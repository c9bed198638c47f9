internal import GRDB
internal import PersistentStore
internal import Platform

/// Compiles expressions on empty in-memory tables, before a store is touched.
struct ExpressionCompilation {
  private static let schema = "old."

  let paths: MappingPathResolver

  private let queue: DatabaseQueue

  init(_ layout: StoreLayout) throws {
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
      throw MigrationError(any: error)
    }
  }

  private static func placed(_ statement: String) -> String {
    "CREATE TABLE \(schema)" + statement.dropFirst("CREATE TABLE ".count)
  }

  /// Binds an expression as SQL and compiles the result.
  ///
  /// - Throws: The problem, with its position in the text if known.
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
      // SQLite has one code for all of these, `SQLITE_ERROR`; only the message differs.
      let isSyntax = ["syntax error", "incomplete input", "unrecognized token"].contains { message.contains($0) }
      throw .compilation(isSyntax ? "a syntax error" : printable(message), at: bound.position(named: message))
    }
    return bound
  }
}

extension BoundExpression {
  /// The position SQLite names, as in `near "x": syntax error` or `wrong number of arguments to function abs()`; 0 if
  /// unknown.
  fileprivate func position(named message: String) -> Int {
    let isFunction = message.hasSuffix("()")
    let name =
      isFunction
      ? message.dropLast(2).split(separator: " ").last : message.split(separator: "\"").dropFirst().first
    let found = tokens.filter { $0.text.lowercased() == name?.lowercased() }
    return found.count == 1 ? found[0].position : 0
  }
}

/// An expression as SQL over its entity's columns.
struct BoundExpression {
  /// The expression over the row `o`.
  var sql: String

  var attribute: PropertyPath?

  /// The names and paths of properties it reads.
  var properties: Set<String>

  var tokens: [ExpressionToken]
}

extension MappingPathResolver {
  /// Binds an expression as SQL.
  ///
  /// - Parameter place: The destination, such as `PersonToAddress.identifier`; each has its own identifiers.
  func bind(_ text: String, of entityName: String, place: String) throws(ExpressionProblem) -> BoundExpression {
    var parser = try SQLExpressionParser(text) { hasProperty($0, of: entityName) }
    let expression: TypedExpression
    do throws(ExpressionProblem) {
      expression = try parser.expression()
    } catch {
      // Unknown names come before syntax errors.
      for reading in parser.readings { _ = try sql(reading, of: entityName, for: place) }
      throw error
    }
    let properties = Set(parser.readings.flatMap { $0.path.prefix(1) + [$0.path.joined(separator: ".")] })
    if case .reading(let reading) = expression.form, reading.function == nil,
      let (path, sql) = attribute(reading.path, of: entityName)
    {
      return BoundExpression(sql: sql, attribute: path, properties: properties, tokens: parser.tokens)
    }
    let sql = try expression.sql { reading throws(ExpressionProblem) in
      try self.sql(reading, of: entityName, for: place)
    }
    return BoundExpression(sql: "(\(sql))", attribute: nil, properties: properties, tokens: parser.tokens)
  }
}
