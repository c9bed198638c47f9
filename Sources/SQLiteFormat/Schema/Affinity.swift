/// A column's preferred kind of value (SQLite, "Datatypes In SQLite", section 3.1).
public enum Affinity: String, Sendable, Hashable {
  case integer

  case text

  case blob

  /// Reals, even if stored as integers.
  case real

  /// Numbers, if text looks like one.
  case numeric

  /// Returns the affinity of a declared type.
  public init(declaredType: String) {
    let type = declaredType.utf8.map(lowercased)
    func has(_ part: String) -> Bool {
      let part = Array(part.utf8)
      return type.count >= part.count
        && (0...(type.count - part.count)).contains { type[$0..<($0 + part.count)].elementsEqual(part) }
    }
    if has("int") {
      self = .integer
    } else if has("char") || has("clob") || has("text") {
      self = .text
    } else if has("blob") || type.isEmpty {
      self = .blob
    } else if has("real") || has("floa") || has("doub") {
      self = .real
    } else {
      self = .numeric
    }
  }

  func applied(to literal: Value) -> Value {
    switch (self, literal) {
    case (.real, .integer(let number)): .real(Double(number))
    case (.real, .text(let text)): Affinity.number(text.string).flatMap { Double($0) }.map { .real($0) } ?? literal
    case (.integer, .text(let text)), (.numeric, .text(let text)):
      Affinity.number(text.string).flatMap { text in
        Int64(text).map { .integer($0) } ?? Double(text).map { Affinity.shortened($0) }
      } ?? literal
    case (.integer, .real(let number)), (.numeric, .real(let number)), (.blob, .real(let number)):
      Affinity.shortened(number)
    default: literal
    }
  }

  /// Returns trimmed text that is a decimal number.
  private static func number(_ text: String) -> String? {
    let isSpace = { (byte: UInt8) in byte == 0x20 || (byte >= 9 && byte <= 13) }
    let bytes = Array(text.utf8.drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    let isNumber = bytes.allSatisfy { ($0 >= 0x30 && $0 <= 0x39) || "+-.eE".utf8.contains($0) }
    return isNumber && !bytes.isEmpty ? String(decoding: bytes, as: UTF8.self) : nil
  }

  private static func shortened(_ number: Double) -> Value {
    Int64(exactly: number).map { .integer($0) } ?? .real(number)
  }
}
