/// An expression as far as its type, its value or what it names can be told without a compiler.
indirect enum SourceExpression: Hashable, Sendable {
  /// An argument of a call, an attribute or a macro.
  struct Argument: Hashable, Sendable {
    /// The label, where it has one.
    var label: String?

    var value: SourceExpression
  }

  /// Text; nil where it has interpolations.
  case string(String?)

  /// A whole number; nil where it is larger than 64 bits.
  case integer(Int64?)

  /// A number with a fraction or an exponent, as digits.
  case real(String)
  case boolean(Bool)
  case null
  case array([SourceExpression])
  case dictionary([SourceExpression], [SourceExpression])

  /// A name, or names with dots between, that begins with a name: `Kind.small`.
  case path([String])

  /// A member of a type that is not named: `.small`.
  case implicitMember(String)

  /// `T.self`.
  case metatype(TypeReference)

  /// `\T.a.b`, with the type where it is named.
  case keyPath(TypeReference?, [String])

  case call(SourceExpression, [Argument])

  /// A member of something that is no path: `Date().description`.
  case member(SourceExpression, String)

  /// A type that is written as an expression: `[Int]` in `[Int]()`, `Set<String>`.
  case type(TypeReference)

  /// `value as T`, whatever the value is.
  case cast(TypeReference)

  /// Operands of operators, in order, with the operators between.
  case operators([SourceExpression], [String])

  case other
}
