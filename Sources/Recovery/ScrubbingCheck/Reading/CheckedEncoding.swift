/// The encoding of a database's text.
enum CheckedEncoding {
  case utf8
  case utf16LittleEndian
  case utf16BigEndian

  /// By the number in the database's header; UTF-8 where that is no other.
  init(_ number: Int?) {
    switch number {
    case 2: self = .utf16LittleEndian
    case 3: self = .utf16BigEndian
    default: self = .utf8
    }
  }

  /// The text of bytes; what is none becomes U+FFFD.
  func text(_ bytes: some Collection<UInt8>) -> String {
    guard self != .utf8 else { return String(decoding: bytes, as: UTF8.self) }
    var units: [UInt16] = []
    var first: UInt8?
    for byte in bytes {
      guard let before = first else {
        first = byte
        continue
      }
      let (high, low) = self == .utf16BigEndian ? (before, byte) : (byte, before)
      units.append(UInt16(high) << 8 | UInt16(low))
      first = nil
    }
    return String(decoding: units, as: UTF16.self)
  }
}
