/// A piece of an SQL statement.
enum SQLToken: Sendable, Hashable {
  /// A name or keyword without quotes.
  case word(String)

  /// A name in double quotes, backticks or brackets.
  case quoted(String)

  case string(String)

  case number(String)

  /// A blob literal's hexadecimal digits.
  case blob(String)

  /// One character that is none of these.
  case symbol(UInt8)

  /// Whether it is the given keyword.
  func isWord(_ keyword: StaticString) -> Bool {
    guard case .word(let text) = self else { return false }
    return isSameName(text, "\(keyword)")
  }

  func isSymbol(_ character: Unicode.Scalar) -> Bool {
    guard case .symbol(let byte) = self else { return false }
    return byte == UInt8(ascii: character)
  }

  /// The name that it can stand for, where it can; SQLite takes text in single quotes for a name too.
  var name: String? {
    switch self {
    case .word(let text), .quoted(let text), .string(let text): text
    case .number, .blob, .symbol: nil
    }
  }
}
