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
