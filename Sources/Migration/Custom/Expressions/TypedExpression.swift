internal import PersistentStore

/// An expression of a mapping and the type of its values, whichever language it was written in.
struct TypedExpression: ExpressibleByStringLiteral {
  /// What an expression reads of a record of the source.
  struct Reading {
    /// What is made of all records that the path leads to, or said of the record itself; nil for the value alone.
    var function: String?

    /// The names of the properties; none for the record itself.
    var path: [String]

    /// The place in the text, from 1; 0 where there is none.
    var position = 0

    /// Whether only that there is a value matters.
    var isTestedForNil = false

    /// It by the names of the model.
    var sql: String {
      let names = path.map(SQLText.quotedIdentifier).joined(separator: ".")
      return function.map { "\($0)(\(names))" } ?? names
    }
  }

  /// What an expression is made of.
  enum Form {
    /// A constant, a keyword or an operator, as SQL writes it.
    case sign(String)
    case reading(Reading)

    /// A function of arguments; without a name, a list in parentheses.
    case call(String, [TypedExpression])

    /// Operands and what stands before, between and behind them; which operator binds tighter is SQLite's rule.
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

  /// The expression as a value of another type, made by SQL's `CAST`.
  func cast(to word: TypedExpression, _ type: ValueType) -> TypedExpression {
    .call("CAST", .series(self, "AS", word), type: type)
  }

  /// The same expression, whose values are taken for those of another type.
  func typed(_ type: ValueType) -> TypedExpression { TypedExpression(form, type) }

  /// The signs in it that stand in no parentheses of their own, in small letters.
  var signs: Set<String> {
    switch form {
    case .sign(let text): [text.lowercased()]
    case .series(let parts): parts.reduce(into: []) { $0.formUnion($1.signs) }
    case .reading, .call: []
    }
  }

  // MARK: SQL

  /// The expression as SQL by the names of the model.
  var sql: String { sql(\.sql) }

  /// The expression as SQL; the caller writes what it reads.
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
