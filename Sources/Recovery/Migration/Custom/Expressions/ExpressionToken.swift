/// A piece of an SQL expression of a mapping, with its place in the text.
struct MappingExpressionToken {
  /// What kind of piece it is.
  enum Kind: Equatable {
    /// A bare word: a keyword, the name of a function, or the name of a property.
    case word(String)

    /// A name in quotes, which is always that of a property.
    case name(String)

    /// A literal, as it was written.
    case literal(String)

    /// An operator, a parenthesis, a comma or a point.
    case symbol(String)
  }

  let kind: Kind

  /// The place of its first character, from 1.
  let position: Int

  /// Whether it is that symbol.
  func isSymbol(_ text: String) -> Bool { kind == .symbol(text) }
}

/// What is wrong with an expression, and where.
struct MappingExpressionProblem: Error {
  /// The place of the first character that is wrong, from 1; 0 where no single one is.
  var position: Int

  /// What is wrong, in a plain sentence without a full stop.
  var detail: String

  /// What would be right, as full sentences; nil for nothing in particular.
  var hint: String?

  /// Whether a function is needed that is not there.
  var isUnsupported = false

  /// What is wrong, with the place in the expression.
  var words: String { position > 0 ? "character \(position): \(detail)" : detail }
}
