/// A value as SQLite stores it.
public enum Value: Sendable, Hashable {
  case null

  /// A signed integer of up to 64 bits.
  case integer(Int64)

  /// An IEEE 754 double, never not-a-number (SQLite reads that as NULL).
  case real(Double)

  /// Text in the database's encoding.
  case text(EncodedText)

  case blob([UInt8])
}

extension Value {
  /// The integer, where it is one.
  public var integer: Int64? {
    guard case .integer(let value) = self else { return nil }
    return value
  }

  /// The number, where it is a real or an integer.
  public var real: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(value)
    case .null, .text, .blob: nil
    }
  }

  /// The text, where it is text, with U+FFFD in place of what is not valid in its encoding.
  public var string: String? {
    guard case .text(let value) = self else { return nil }
    return value.string
  }

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
