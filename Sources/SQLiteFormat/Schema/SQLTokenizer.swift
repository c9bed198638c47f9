internal import Platform

/// Splits SQL into tokens, without comments; accepts any input.
struct SQLTokenizer {
  private let bytes: [UInt8]
  private var offset = 0

  static func tokens(of sql: String) -> [SQLToken] {
    var tokenizer = SQLTokenizer(bytes: Array(sql.utf8))
    var tokens: [SQLToken] = []
    while let token = tokenizer.next() { tokens.append(token) }
    return tokens
  }

  private func byte(_ ahead: Int = 0) -> UInt8? {
    let index = offset + ahead
    return index < bytes.count ? bytes[index] : nil
  }

  private mutating func next() -> SQLToken? {
    skipSpace()
    guard let first = byte() else { return nil }
    switch first {
    case UInt8(ascii: "'"): return .string(quoted(until: first))
    case UInt8(ascii: "\""), UInt8(ascii: "`"): return .quoted(quoted(until: first))
    case UInt8(ascii: "["):
      offset += 1
      let text = take { $0 != UInt8(ascii: "]") }
      offset += 1
      return .quoted(text)
    default: break
    }
    if first == UInt8(ascii: "x") || first == UInt8(ascii: "X"), byte(1) == UInt8(ascii: "'") {
      offset += 1
      return .blob(quoted(until: UInt8(ascii: "'")))
    }
    let isPoint = first == UInt8(ascii: ".")
    if isDigit(first) || isPoint && byte(1).map(isDigit) == true { return .number(number()) }
    if isNameByte(first) { return .word(take(isNameByte)) }
    offset += 1
    return .symbol(first)
  }

  private mutating func skipSpace() {
    while let first = byte() {
      if first == 0x20 || (first >= 9 && first <= 13) {
        offset += 1
      } else if first == UInt8(ascii: "-"), byte(1) == first {
        while let next = byte(), next != 10 { offset += 1 }
      } else if first == UInt8(ascii: "/"), byte(1) == UInt8(ascii: "*") {
        offset += 2
        while let next = byte(), !(next == UInt8(ascii: "*") && byte(1) == UInt8(ascii: "/")) { offset += 1 }
        offset += 2
      } else {
        return
      }
    }
  }

  /// Reads to the closing quote; a doubled one stands for itself.
  private mutating func quoted(until quote: UInt8) -> String {
    offset += 1
    var content: [UInt8] = []
    while let next = byte() {
      offset += 1
      if next == quote {
        guard byte() == quote else { break }
        offset += 1
      }
      content.append(next)
    }
    return String(decoding: content, as: UTF8.self)
  }

  private mutating func number() -> String {
    var previous: UInt8 = 0
    return take { next in
      let isSign = next == UInt8(ascii: "+") || next == UInt8(ascii: "-")
      let accepted = isNameByte(next) || next == UInt8(ascii: ".") || isSign && previous | 0x20 == UInt8(ascii: "e")
      previous = next
      return accepted
    }
  }

  private mutating func take(_ isWanted: (UInt8) -> Bool) -> String {
    let start = offset
    while let next = byte(), isWanted(next) { offset += 1 }
    return String(decoding: bytes[start..<offset], as: UTF8.self)
  }
}

private func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

private func isNameByte(_ byte: UInt8) -> Bool {
  let letter = byte | 0x20
  return letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z") || isDigit(byte) || byte == UInt8(ascii: "_")
    || byte == UInt8(ascii: "$") || byte >= 0x80
}

/// Reads tokens in order; parentheses count as one.
struct TokenReader {
  private let tokens: [SQLToken]
  private var index = 0

  init(_ tokens: [SQLToken]) { self.tokens = tokens }

  var peek: SQLToken? { index < tokens.count ? tokens[index] : nil }

  var rest: [SQLToken] { Array(tokens[index...]) }

  mutating func next() -> SQLToken? {
    guard index < tokens.count else { return nil }
    index += 1
    return tokens[index - 1]
  }

  mutating func takeWord(_ keyword: StaticString) -> Bool {
    guard peek?.isWord(keyword) == true else { return false }
    index += 1
    return true
  }

  mutating func takeQualifiedName() -> String? {
    guard let first = next()?.name else { return nil }
    guard peek?.isSymbol(".") == true else { return first }
    index += 1
    return next()?.name
  }

  /// Takes a parenthesized part; an unclosed one runs to the end.
  mutating func takeParenthesized() -> [SQLToken]? {
    guard peek?.isSymbol("(") == true else { return nil }
    index += 1
    let start = index
    skipParenthesized()
    let isClosed = index > start && tokens[index - 1].isSymbol(")")
    return Array(tokens[start..<(isClosed ? index - 1 : index)])
  }

  mutating func skipParenthesized() {
    var depth = 1
    while depth > 0, let token = next() {
      if token.isSymbol("(") { depth += 1 }
      if token.isSymbol(")") { depth -= 1 }
    }
  }

  mutating func takeType() -> String {
    var type = ""
    while let token = peek {
      if token.isSymbol("(") {
        type += "(" + (takeParenthesized() ?? []).map(\.text).joined() + ")"
        continue
      }
      guard let word = token.name, !token.beginsConstraint else { break }
      index += 1
      type += type.isEmpty ? word : " " + word
    }
    return type
  }

  /// Takes a default; nil for an expression.
  ///
  /// - Parameter keepsDigits: whether numbers stay text, as in text columns.
  mutating func takeLiteral(keepingDigits keepsDigits: Bool = false) -> Value? {
    if peek?.isSymbol("(") == true {
      let inner = takeParenthesized() ?? []
      var reader = TokenReader(inner)
      guard inner.count <= 2, inner.first?.isSymbol("(") == false else { return nil }
      return reader.takeLiteral(keepingDigits: keepsDigits)
    }
    var sign = ""
    if peek?.isSymbol("-") == true || peek?.isSymbol("+") == true { sign = next()?.isSymbol("-") == true ? "-" : "" }
    switch next() {
    case .number(let digits):
      if keepsDigits, !digits.lowercased().hasPrefix("0x") { return .text(EncodedText(sign + digits)) }
      let number = TokenReader.number(sign: sign, digits)
      if keepsDigits, case .integer(let value) = number { return .text(EncodedText(String(value))) }
      return number
    case .string(let text), .quoted(let text): return .text(EncodedText(text))
    case .blob(let digits): return TokenReader.blob(digits)
    case .word(let word) where isSameName(word, "true"): return .integer(1)
    case .word(let word) where isSameName(word, "false"): return .integer(0)
    case .word(let word) where isSameName(word, "null"): return .null
    case .word(let word) where !word.lowercased().hasPrefix("current_"): return .text(EncodedText(word))
    case nil, .word?, .symbol?: return nil
    }
  }

  mutating func takeReference() {
    if peek?.isSymbol("(") == false { index += 1 }
    _ = takeParenthesized()
  }

  private static func number(sign: String, _ digits: String) -> Value? {
    if digits.lowercased().hasPrefix("0x") {
      return UInt64(digits.dropFirst(2), radix: 16).map {
        .integer(sign.isEmpty ? Int64(bitPattern: $0) : 0 &- Int64(bitPattern: $0))
      }
    }
    let text = sign + digits
    return Int64(text).map { .integer($0) } ?? Double(text).map { .real($0) }
  }

  private static func blob(_ digits: String) -> Value? { [UInt8](hexadecimal: digits).map { .blob($0) } }
}

extension SQLToken {
  /// Whether a type ends here.
  var beginsConstraint: Bool {
    guard case .word(let word) = self else { return false }
    return [
      "constraint", "primary", "not", "null", "unique", "check", "default", "collate", "references", "generated", "as",
      "foreign",
    ].contains { isSameName($0, word) }
  }

  var text: String {
    switch self {
    case .word(let text), .number(let text): text
    case .quoted(let text): "\"\(text)\""
    case .string(let text): "'\(text)'"
    case .blob(let digits): "x'\(digits)'"
    case .symbol(let byte): String(UnicodeScalar(byte))
    }
  }
}

extension Array where Element == SQLToken {
  /// The parts between top-level commas.
  var splitAtCommas: [[SQLToken]] {
    var parts: [[SQLToken]] = []
    var part: [SQLToken] = []
    var depth = 0
    for token in self {
      if token.isSymbol("(") { depth += 1 }
      if token.isSymbol(")") { depth -= 1 }
      if depth == 0, token.isSymbol(",") {
        parts.append(part)
        part = []
      } else {
        part.append(token)
      }
    }
    parts.append(part)
    return parts.filter { !$0.isEmpty }
  }
}

enum SQLToken: Sendable, Hashable {
  case word(String)

  /// In double quotes, backticks or brackets.
  case quoted(String)

  case string(String)

  case number(String)

  case blob(String)

  case symbol(UInt8)

  func isWord(_ keyword: StaticString) -> Bool {
    guard case .word(let text) = self else { return false }
    return isSameName(text, "\(keyword)")
  }

  func isSymbol(_ character: Unicode.Scalar) -> Bool {
    guard case .symbol(let byte) = self else { return false }
    return byte == UInt8(ascii: character)
  }

  /// The name, if any; SQLite accepts single quotes.
  var name: String? {
    switch self {
    case .word(let text), .quoted(let text), .string(let text): text
    case .number, .blob, .symbol: nil
    }
  }
}
