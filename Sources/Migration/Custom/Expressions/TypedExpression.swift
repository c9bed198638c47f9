internal import ManagedObjectModel
internal import PersistentStore

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
      let names = path.map(SQLText.quotedIdentifier).joined(separator: ".")
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
