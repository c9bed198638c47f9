/// A piece of an SQL expression of a mapping, with its place in the text.
struct ExpressionToken {
  /// What kind of piece it is.
  enum Kind {
    /// A bare word: a keyword, the name of a function, or the name of a property.
    case word

    /// A name in quotes, which is always that of a property.
    case name
    case literal

    /// An operator, a parenthesis, a comma or a point.
    case symbol
  }

  let kind: Kind

  /// What was written; of a name, what its quotes hold.
  let text: String

  /// The place of its first character, from 1.
  let position: Int

  /// Whether it is that symbol.
  func isSymbol(_ text: String) -> Bool { kind == .symbol && self.text == text }

  /// A bare word in small letters; nil for every other piece.
  var keyword: String? { kind == .word ? text.lowercased() : nil }
}

/// What is wrong with an expression, and where.
struct ExpressionProblem: Error {
  /// The place of the first character that is wrong, from 1; 0 where no single one is.
  var position: Int

  /// What is wrong, in a plain sentence without a full stop.
  var detail: String

  /// What would be right, as full sentences; nil for nothing in particular.
  var hint: String?

  /// Whether a function is needed that is not there.
  var isUnsupported: Bool

  init(_ position: Int, _ detail: String, hint: String? = nil, isUnsupported: Bool = false) {
    (self.position, self.detail, self.hint, self.isUnsupported) = (position, detail, hint, isUnsupported)
  }

  /// What is wrong, with the place in the expression.
  var words: String { position > 0 ? "character \(position): \(detail)" : detail }

  /// What is no expression to SQLite.
  static func compilation(_ detail: String, at position: Int) -> Self {
    Self(
      position, "SQLite cannot compile the expression: \(detail)",
      hint: "Correct the expression; SQLite's rules for expressions hold.")
  }
}
