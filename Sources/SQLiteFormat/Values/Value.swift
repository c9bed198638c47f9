import Platform

/// A value as SQLite stores it.
public enum Value: Sendable, Hashable {
  case null

  case integer(Int64)

  /// An IEEE 754 double, never not-a-number (SQLite reads that as NULL).
  case real(Double)

  case text(EncodedText)

  case blob([UInt8])
}

extension Value {
  /// The integer, if it is one.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The number, if it is a real or integer.
  public var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .text, .blob: nil
    }
  }

  /// The text, if it is one, with U+FFFD for invalid parts.
  public var string: String? { if case .text(let value) = self { value.string } else { nil } }

  /// The bytes of a blob or of text.
  public var bytes: [UInt8]? {
    switch self {
    case .blob(let bytes): bytes
    case .text(let text): text.bytes
    case .null, .integer, .real: nil
    }
  }

  /// Whether it is NULL.
  public var isNull: Bool { self == .null }
}

/// Text as stored bytes, valid or not.
public struct EncodedText: Sendable, Hashable {
  /// The bytes, without a terminator.
  public var bytes: [UInt8]

  /// The expected encoding.
  public var encoding: TextEncoding

  /// Creates text from bytes.
  public init(bytes: [UInt8], encoding: TextEncoding) {
    self.bytes = bytes
    self.encoding = encoding
  }

  /// Encodes a string.
  public init(_ string: String, encoding: TextEncoding = .utf8) {
    self.encoding = encoding
    switch encoding {
    case .utf8: bytes = Array(string.utf8)
    case .utf16LittleEndian:
      bytes = string.utf16.flatMap { [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8)] }
    case .utf16BigEndian:
      bytes = string.utf16.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] }
    }
  }

  /// The text, with U+FFFD for invalid parts; drops the last byte of an odd UTF-16 length.
  public var string: String {
    switch encoding {
    case .utf8: String(decoding: bytes, as: UTF8.self)
    case .utf16LittleEndian, .utf16BigEndian: String(decoding: codeUnits, as: UTF16.self)
    }
  }

  /// The text, or nil if invalid.
  public var validString: String? {
    switch encoding {
    case .utf8: return String(utf8: bytes)
    case .utf16LittleEndian, .utf16BigEndian:
      guard bytes.count.isMultiple(of: 2) else { return nil }
      return String(utf16: codeUnits)
    }
  }

  /// Whether the bytes are valid in the encoding.
  public var isValid: Bool { validString != nil }

  private var codeUnits: [UInt16] {
    let low = encoding == .utf16LittleEndian ? 0 : 1
    return (0..<bytes.count / 2).map { UInt16(bytes[$0 * 2 + low]) | UInt16(bytes[$0 * 2 + 1 - low]) << 8 }
  }
}

/// A database's text encoding (header offset 56).
public enum TextEncoding: UInt32, Sendable, Hashable {
  /// UTF-8, as in every Core Data store.
  case utf8 = 1

  case utf16LittleEndian = 2

  case utf16BigEndian = 3

  /// The name in `PRAGMA encoding`.
  package var pragmaName: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}

/// A column's preferred kind of value (SQLite, "Datatypes In SQLite", section 3.1).
public enum Affinity: String, Sendable, Hashable {
  case integer, text, blob

  /// Reals, even if stored as integers.
  case real

  /// Numbers, if text looks like one.
  case numeric

  /// Returns the affinity of a declared type.
  public init(declaredType: String) {
    let type = folded(declaredType)
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
