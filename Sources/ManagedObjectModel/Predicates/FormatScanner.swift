struct FormatScanner {
  enum Token: Hashable {
    case word(String)
    case number(String)
    case string(String)
    case variable(String)
    case sign(String)
    case end
  }

  private let scalars: [Unicode.Scalar]
  private var position = 0

  init(_ text: String) { scalars = Array(text.unicodeScalars) }

  /// Returns nil for invalid text.
  mutating func next() -> Token? {
    while position < scalars.count, scalars[position].properties.isWhitespace { position += 1 }
    guard position < scalars.count else { return .end }
    let scalar = scalars[position]
    if Self.startsName(scalar) { return .word(take(while: Self.isName)) }
    if ("0"..."9").contains(scalar) { return number() }
    switch scalar {
    case "$":
      position += 1
      let name = take { Self.isName($0) && $0 != "." }
      return name.isEmpty ? nil : .variable(name)
    case "\"", "'": return string(closedBy: scalar)
    default: return sign()
    }
  }

  private static func startsName(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar == "@" || scalar.properties.isAlphabetic
  }

  private static func isName(_ scalar: Unicode.Scalar) -> Bool {
    startsName(scalar) || scalar == "." || ("0"..."9").contains(scalar)
  }

  private mutating func take(while condition: (Unicode.Scalar) -> Bool) -> String {
    var result = String.UnicodeScalarView()
    while position < scalars.count, condition(scalars[position]) {
      result.append(scalars[position])
      position += 1
    }
    return String(result)
  }

  private mutating func number() -> Token {
    var text = take { ("0"..."9").contains($0) || $0 == "." }
    if position < scalars.count, scalars[position] == "e" || scalars[position] == "E" {
      position += 1
      var sign = ""
      if position < scalars.count, scalars[position] == "-" || scalars[position] == "+" {
        sign = String(scalars[position])
        position += 1
      }
      text += "e" + sign + take { ("0"..."9").contains($0) }
    }
    return .number(text)
  }

  private mutating func string(closedBy quote: Unicode.Scalar) -> Token? {
    position += 1
    var result = String.UnicodeScalarView()
    while position < scalars.count {
      let scalar = scalars[position]
      position += 1
      if scalar == quote { return .string(String(result)) }
      if scalar == "\\", position < scalars.count {
        result.append(scalars[position])
        position += 1
      } else {
        result.append(scalar)
      }
    }
    return nil
  }

  private mutating func sign() -> Token? {
    for length in [2, 1] where position + length <= scalars.count {
      let text = String(String.UnicodeScalarView(scalars[position..<position + length]))
      if Self.signs.contains(text) {
        position += length
        return .sign(text)
      }
    }
    return nil
  }

  private static let signs: Set<String> = [
    "<", "<=", "=<", ">", ">=", "=>", "=", "==", "!=", "<>", "&&", "||", "!", "(", ")", "{", "}", "[", "]", ",", ":",
    ".", "+", "-", "*", "/", "**",
  ]
}
