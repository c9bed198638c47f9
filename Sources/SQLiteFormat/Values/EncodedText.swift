import Platform

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
    case .utf8:
      bytes = Array(string.utf8)
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
    case .utf8:
      return String(utf8: bytes)
    case .utf16LittleEndian, .utf16BigEndian:
      guard bytes.count.isMultiple(of: 2) else { return nil }
      return String(utf16: codeUnits)
    }
  }

  /// Whether the bytes are valid in the encoding.
  public var isValid: Bool { validString != nil }

  private var codeUnits: [UInt16] {
    let low = encoding == .utf16LittleEndian ? 0 : 1
    return (0..<bytes.count / 2).map { index in
      UInt16(bytes[index * 2 + low]) | UInt16(bytes[index * 2 + 1 - low]) << 8
    }
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
