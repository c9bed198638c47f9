internal import GRDB
import ManagedObjectModel
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
        for statement in layout.tables.map(\.statement) + layout.joinTables.map(\.statement) {
          try database.execute(sql: "CREATE TABLE \(Self.schema)" + statement.dropFirst("CREATE TABLE ".count))
        }
        try database.execute(sql: "CREATE TABLE old.Z_METADATA (Z_VERSION INTEGER, Z_UUID VARCHAR, Z_PLIST BLOB)")
      }
    } catch { throw MigrationError(any: error) }
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
          sql: "SELECT \(bound.sql) FROM \(Self.schema)\(table.sqlName) AS o WHERE o.Z_ENT = 1")
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

/// Resolves key paths over a source model to columns.
struct MappingPathResolver {
  let layout: StoreLayout

  /// The prefix of source tables: `old.` or empty.
  let schema: String

  private static let limit = 8

  func hasProperty(_ name: String, of entityName: String) -> Bool { layout.storage(of: name, in: entityName) != nil }

  /// The column in `o`; nil for anything but its attributes.
  func attribute(_ path: [String], of entityName: String) -> (path: PropertyPath, sql: String)? {
    guard let first = path.first else { return nil }
    let path = PropertyPath(first, leaf: Array(path.dropFirst()))
    return layout.column(of: path, in: entityName).map { (path, "o.\($0.sqlName)") }
  }

  func sql(
    _ reading: TypedExpression.Reading, of entityName: String, for place: String
  ) throws(ExpressionProblem) -> String {
    if reading.function == "uuid" {
      return "\(MappingFunctions.identifierFunction)(o.Z_PK, \(SQLText.literal(place)), "
        + "(SELECT Z_UUID FROM \(schema)Z_METADATA LIMIT 1))"
    }
    if reading.function == "primarykey" { return "o.Z_PK" }
    if reading.isTestedForNil, reading.path.count == 1, isMarked(reading.path[0], entityName),
      let attribute = attribute(reading.path, of: entityName)
    {
      return attribute.sql
    }
    return try sql(reading, reading.path[...], entityName, "o", 0)
  }

  private func sql(
    _ reading: TypedExpression.Reading, _ path: ArraySlice<String>, _ entityName: String, _ row: String, _ depth: Int
  ) throws(ExpressionProblem) -> String {
    guard let first = path.first else { return "NULL" }
    let rest = path.dropFirst()
    let name = "\(printable(first)) of \(printable(entityName))"
    switch layout.storage(of: first, in: entityName) {
    case .attribute(let columns) where reading.function == nil:
      guard let column = columns.first(where: { $0.path == PropertyPath(first, leaf: Array(rest)) }) else {
        throw ExpressionProblem(
          reading.position, "attribute \(name) is not followed by the right names",
          hint: "Its leaves: \(Self.leaves(columns)).")
      }
      guard !isMarked(first, entityName) else {
        throw ExpressionProblem(
          reading.position, "attribute \(name) has external storage, so that its values may lie outside the store",
          hint: "Copy it under its own or another name; what reads its values needs a policy.")
      }
      return "\(row).\(column.sqlName)"
    case .toOne(let column, _, _) where reading.function == nil || !rest.isEmpty:
      let key = "\(row).\(column.sqlName)"
      guard !rest.isEmpty else { return key }
      let target = try destination(of: first, entityName, reading, depth)
      let next = "q\(depth)"
      let value = try sql(reading, rest, target.name, next, depth + 1)
      return "(SELECT \(value) FROM \(table(target.tableName)) AS \(next) WHERE \(next).Z_PK = \(key))"
    case .toManyByColumn(let table, let column, _):
      return try many(
        reading, path, entityName, depth,
        from: "\(self.table(table)) AS q\(depth) WHERE q\(depth).\(column.sqlName) = \(row).Z_PK")
    case .toManyByJoinTable(let table, let own, let other, _):
      let target = try destination(of: first, entityName, reading, depth)
      return try many(
        reading, path, entityName, depth,
        from: "\(self.table(table)) AS p\(depth) JOIN \(self.table(target.tableName)) AS q\(depth) ON q\(depth).Z_PK = "
          + "p\(depth).\(other.sqlName) WHERE p\(depth).\(own.sqlName) = \(row).Z_PK")
    case .toOne, .attribute:
      throw ExpressionProblem(
        reading.position, "\(name) is no to-many relationship, which \(reading.function ?? "")() needs",
        hint: "Name a to-many relationship.")
    case nil: throw unknown(first, entityName, reading)
    }
  }

  /// The aggregate over the records the first name of a path leads to.
  private func many(
    _ reading: TypedExpression.Reading, _ path: ArraySlice<String>, _ entityName: String, _ depth: Int, from: String
  ) throws(ExpressionProblem) -> String {
    let first = path.first ?? ""
    guard let function = reading.function else {
      throw ExpressionProblem(
        reading.position, "relationship \(printable(first)) of \(printable(entityName)) leads to many records",
        hint: "Write count(\(first)), or sum, avg, min, max, total or group_concat of an attribute behind it.")
    }
    let target = try destination(of: first, entityName, reading, depth)
    var value = "*"
    if path.count > 1 {
      var behind = reading
      behind.function = nil
      value = try sql(behind, path.dropFirst(), target.name, "q\(depth)", depth + 1)
    } else if function != "count" {
      throw ExpressionProblem(
        reading.position, "\(function)() needs an attribute behind \(printable(first))",
        hint: "Write \(function)(\(first).attribute).")
    }
    return "(SELECT \(function)(\(value)) FROM \(from))"
  }

  private func table(_ name: String) -> String { schema + name.sqlName }

  private func destination(
    of relationship: String, _ entityName: String, _ reading: TypedExpression.Reading, _ depth: Int
  ) throws(ExpressionProblem) -> EntityLayout {
    guard depth < Self.limit else {
      throw ExpressionProblem(reading.position, "the path follows more than \(Self.limit) relationships")
    }
    guard
      let name = layout.model.properties(of: entityName)[relationship]?.property.relationship?.destinationEntityName,
      let entity = layout.entity(named: name)
    else { throw unknown(relationship, entityName, reading) }
    return entity
  }

  private func unknown(_ name: String, _ entityName: String, _ reading: TypedExpression.Reading) -> ExpressionProblem {
    let known = layout.model.properties(of: entityName).keys.filter { hasProperty($0, of: entityName) }
    return ExpressionProblem(
      reading.position, "\(printable(entityName)) has no stored property \"\(printable(name))\"",
      hint: NameSuggestion.hint(for: name, among: known, "properties of \(printable(entityName))"))
  }

  private func isMarked(_ name: String, _ entityName: String) -> Bool {
    guard let attribute = layout.model.properties(of: entityName)[name]?.property.attribute else { return false }
    return attribute.allowsExternalBinaryDataStorage && (attribute.type == .binary || attribute.type == .transformable)
  }

  private static func leaves(_ columns: [ColumnLayout]) -> String {
    let names = columns.compactMap { column -> String? in
      if case .compositeLeaf(_, let path, _) = column.role { path.joined(separator: ".") } else { nil }
    }
    return names.isEmpty ? "none" : names.sorted().map(printable).joined(separator: ", ")
  }
}

/// A mapping expression with its value type, in any source language.
struct TypedExpression: ExpressibleByStringLiteral {
  struct Reading {
    /// The function of the records; nil for the plain value.
    var function: String?

    /// The property names; empty for the record itself.
    var path: [String]

    /// From 1; 0 without one.
    var position = 0

    /// Whether only presence matters.
    var isTestedForNil = false

    var sql: String {
      let names = path.map(\.quotedName).joined(separator: ".")
      return function.map { "\($0)(\(names))" } ?? names
    }
  }

  enum Form {
    /// A constant, keyword or operator.
    case sign(String)
    case reading(Reading)

    /// A function call; without a name, a list in parentheses.
    case call(String, [TypedExpression])

    /// Operands with prefix, infix and suffix operators; precedence is left to SQLite.
    case series([TypedExpression])
  }

  let form: Form
  let type: ValueType

  init(_ form: Form, _ type: ValueType = .unknown) { (self.form, self.type) = (form, type) }

  init(stringLiteral sign: String) { self.init(.sign(sign)) }

  static func series(_ parts: TypedExpression..., type: ValueType = .unknown) -> TypedExpression {
    TypedExpression(.series(parts), type)
  }

  static func call(_ name: String, _ arguments: TypedExpression..., type: ValueType = .unknown) -> TypedExpression {
    TypedExpression(.call(name, arguments), type)
  }

  func cast(to word: TypedExpression, _ type: ValueType) -> TypedExpression {
    .call("CAST", .series(self, "AS", word), type: type)
  }

  func typed(_ type: ValueType) -> TypedExpression { TypedExpression(form, type) }

  /// The lowercase signs outside inner parentheses.
  var signs: Set<String> {
    switch form {
    case .sign(let text): [text.lowercased()]
    case .series(let parts): parts.reduce(into: []) { $0.formUnion($1.signs) }
    case .reading, .call: []
    }
  }

  // MARK: SQL

  var sql: String { sql(\.sql) }

  /// The expression as SQL; the caller writes the readings.
  func sql<Problem>(_ read: (Reading) throws(Problem) -> String) throws(Problem) -> String {
    switch form {
    case .sign(let text): return text
    case .reading(let reading): return try read(reading)
    case .call(let name, let arguments):
      return "\(name)(\(try arguments.map { part throws(Problem) in try part.sql(read) }.joined(separator: ", ")))"
    case .series(let parts):
      return try parts.map { part throws(Problem) in try part.sql(read) }.joined(separator: " ")
    }
  }
}

/// The type of an expression's value, as far as it limits its use.
enum ValueType: Hashable {
  case null
  case boolean
  case integer
  case real
  case text
  case date
  case bytes
  case uuid
  case uri

  case unknown

  /// The type of an attribute's values; nil if SQL can't make them.
  init?(_ type: AttributeType) {
    switch type {
    case .integer16, .integer32, .integer64: self = .integer
    case .decimal, .double, .float: self = .real
    case .boolean: self = .boolean
    case .string: self = .text
    case .date: self = .date
    case .binary, .transformable: self = .bytes
    case .uuid: self = .uuid
    case .uri: self = .uri
    case .undefined, .objectID, .composite: return nil
    }
  }

  var isNumber: Bool { self == .boolean || self == .integer || self == .real }

  /// Whether values can be compared or be branches of a condition.
  func agrees(with other: ValueType) -> Bool {
    self == other || self == .null || other == .null || (isNumber && other.isNumber)
  }

  /// The common type: the wider of two numbers.
  func joined(with other: ValueType) -> ValueType {
    if self == .null { return other }
    if other == .null || self == other { return self }
    return self == .real || other == .real ? .real : .integer
  }

  var word: String {
    switch self {
    case .null: "nil"
    case .boolean: "a truth value"
    case .integer, .real: "a number"
    case .text: "text"
    case .date: "a date"
    case .bytes: "data"
    case .uuid: "a UUID"
    case .uri: "a URI"
    case .unknown: "a value"
    }
  }
}
