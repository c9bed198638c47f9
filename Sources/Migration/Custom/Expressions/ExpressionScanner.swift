/// Splits an expression into tokens as SQLite does and rejects forbidden ones.
struct ExpressionScanner {
  /// In characters.
  static let limit = 16_384

  private let text: [Unicode.Scalar]
  private var offset = 0

  static func tokens(of text: String) throws(ExpressionProblem) -> [ExpressionToken] {
    guard text.unicodeScalars.count <= limit else {
      throw ExpressionProblem(limit, "it is longer than \(limit) characters")
    }
    var scanner = ExpressionScanner(text: Array(text.unicodeScalars))
    var tokens: [ExpressionToken] = []
    while let token = try scanner.next() { tokens.append(token) }
    guard !tokens.isEmpty else { throw ExpressionProblem(1, "it is empty") }
    return tokens
  }

  private func scalar(_ ahead: Int = 0) -> Unicode.Scalar? {
    let index = offset + ahead
    return index < text.count ? text[index] : nil
  }

  private mutating func next() throws(ExpressionProblem) -> ExpressionToken? {
    try skipSpace()
    guard let first = scalar() else { return nil }
    let position = offset + 1
    let kind: ExpressionToken.Kind
    let text: String
    switch first {
    case "'": (kind, text) = (.literal, try quoted("'", position))
    case "\"", "`":
      // A quote inside is always doubled.
      let raw = try quoted(first, position).unicodeScalars.dropFirst().dropLast()
      (kind, text) = (.name, String(Substring(raw.replacing([first, first], with: [first]))))
    case "[": (kind, text) = (.name, String(try quoted("]", position).dropFirst().dropLast()))
    case "x" where scalar(1) == "'", "X" where scalar(1) == "'": (kind, text) = (.literal, try blob(position))
    case _ where Self.isDigit(first) || (first == "." && scalar(1).map(Self.isDigit) == true):
      (kind, text) = (.literal, number())
    case _ where Self.isNameStart(first):
      (kind, text) = (.word, take { Self.isNameStart($0) || Self.isDigit($0) })
    default: (kind, text) = (.symbol, try symbol(first, position))
    }
    return ExpressionToken(kind: kind, text: text, position: position)
  }

  private mutating func blob(_ position: Int) throws(ExpressionProblem) -> String {
    offset += 1
    let digits = try quoted("'", position).dropFirst().dropLast()
    guard digits.count.isMultiple(of: 2), digits.allSatisfy(\.isHexDigit) else {
      throw ExpressionProblem(position, "the bytes are not written as pairs of hexadecimal digits")
    }
    return "x'\(digits)'"
  }

  private mutating func skipSpace() throws(ExpressionProblem) {
    while let first = scalar() {
      if first == " " || (first.value >= 9 && first.value <= 13) {
        offset += 1
      } else if first == "-", scalar(1) == "-" {
        while let next = scalar(), next != "\n" { offset += 1 }
      } else if first == "/", scalar(1) == "*" {
        let start = offset + 1
        offset += 2
        while let next = scalar(), !(next == "*" && scalar(1) == "/") { offset += 1 }
        guard scalar() != nil else { throw ExpressionProblem(start, "the comment has no end") }
        offset += 2
      } else {
        return
      }
    }
  }

  private mutating func quoted(_ quote: Unicode.Scalar, _ position: Int) throws(ExpressionProblem) -> String {
    var result = String.UnicodeScalarView()
    if let first = scalar() { result.append(first) }
    offset += 1
    while let next = scalar() {
      guard next.value != 0 else { throw ExpressionProblem(offset + 1, "it holds a character with the number 0") }
      result.append(next)
      offset += 1
      guard next == quote else { continue }
      guard quote != "]", scalar() == quote else { return String(result) }
      result.append(quote)
      offset += 1
    }
    throw ExpressionProblem(position, "the quote that begins here has no end")
  }

  private mutating func number() -> String {
    var previous: Unicode.Scalar = " "
    return take { next in
      let isSign = next == "+" || next == "-"
      let isExponent = previous == "e" || previous == "E"
      let isPart = Self.isDigit(next) || next == "." || Self.isNameStart(next) || (isSign && isExponent)
      previous = next
      return isPart
    }
  }

  private mutating func symbol(_ first: Unicode.Scalar, _ position: Int) throws(ExpressionProblem) -> String {
    for text in ["->>", "->", "||", "<=", ">=", "<>", "!=", "==", "<<", ">>"] {
      let scalars = Array(text.unicodeScalars)
      if scalars.indices.allSatisfy({ scalar($0) == scalars[$0] }) {
        offset += scalars.count
        return text
      }
    }
    offset += 1
    if "()+-*/%<>=&|~,.".unicodeScalars.contains(first) { return String(Character(first)) }
    switch first {
    case ";":
      throw ExpressionProblem(
        position, "a statement ends here, and only one expression is allowed",
        hint: "Write an expression such as \"name || ' ' || surname\".")
    case "?", ":", "@", "$", "#":
      throw ExpressionProblem(
        position, "parameters and variables are not allowed",
        hint: "Write the names of the source's attributes as they stand in its model.")
    default: throw ExpressionProblem(position, "a character that no expression has")
    }
  }

  private mutating func take(_ isWanted: (Unicode.Scalar) -> Bool) -> String {
    var result = String.UnicodeScalarView()
    while let next = scalar(), isWanted(next) {
      result.append(next)
      offset += 1
    }
    return String(result)
  }

  private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { scalar >= "0" && scalar <= "9" }

  private static func isNameStart(_ scalar: Unicode.Scalar) -> Bool {
    (scalar >= "a" && scalar <= "z") || (scalar >= "A" && scalar <= "Z") || scalar == "_" || scalar.value >= 0x80
  }
}
