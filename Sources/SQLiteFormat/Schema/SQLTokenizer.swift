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
