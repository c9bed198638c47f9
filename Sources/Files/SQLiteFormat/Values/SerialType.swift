/// The number before a record's body that says what a column holds and how long it is (SQLite file format, "Serial Type
/// Codes Of The Record Format").
public struct SerialType: RawRepresentable, Sendable, Hashable {
  /// The code as stored.
  public var rawValue: Int64

  /// A serial type of the given code.
  public init(rawValue: Int64) { self.rawValue = rawValue }

  @inlinable
  @inline(__always)
  package static func length(of code: Int64) -> Int? {
    if code >= 12 { return Int((code &- 12) >> 1) }
    guard code >= 0, code < 10 else { return nil }
    // The lengths of codes 0 to 9, four bits each, the lowest first: 0, 1, 2, 3, 4, 6, 8, 8, 0, 0.
    return (0x00_8864_3210 as Int) >> Int(4 &* code) & 0xf
  }

  /// The value of a column whose body starts at `offset`, or nil where the bytes end before it does.
  static func value(of code: Int64, in bytes: Span<UInt8>, at offset: Int, encoding: TextEncoding) -> Value? {
    switch code {
    case 0: return .null
    case 8: return .integer(0)
    case 9: return .integer(1)
    case 1, 2, 3, 4, 5, 6:
      guard let length = length(of: code), let value = bytes.signedInteger(at: offset, length: length) else {
        return nil
      }
      return .integer(value)
    case 7:
      guard let bits = bytes.signedInteger(at: offset, length: 8) else { return nil }
      let value = Double(bitPattern: UInt64(bitPattern: bits))
      return value.isNaN ? .null : .real(value)
    default:
      guard let length = length(of: code), offset >= 0, length <= bytes.count &- offset else { return nil }
      let content = Array(copying: bytes.extracting(offset..<(offset &+ length)))
      return code & 1 == 0 ? .blob(content) : .text(EncodedText(bytes: content, encoding: encoding))
    }
  }
}

extension Array where Element == UInt8 {
  /// An array of a span's bytes.
  package init(copying span: Span<UInt8>) {
    self.init(capacity: span.count) { (output: inout OutputSpan<UInt8>) in
      for index in span.indices { output.append(span[index]) }
    }
  }
}
