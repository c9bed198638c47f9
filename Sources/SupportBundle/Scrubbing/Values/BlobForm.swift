internal import SQLiteFormat

/// Recognizes blobs by first bytes that reveal no content.
enum BlobForm {
  static let longestPrefix = 8

  /// Returns the leading bytes to keep: a signature, Core Data's mark of external values.
  ///
  /// - Parameter keepsSignature: whether more than the mark stays.
  static func keptPrefix(_ bytes: Span<UInt8>, _ range: Range<Int>, keepsSignature: Bool = true) -> Int {
    let start = range.lowerBound
    guard range.count >= longestPrefix else { return 0 }
    guard keepsSignature else { return bytes[start] == 1 ? 1 : 0 }
    switch bytes[start] {
    case 0x89: return has([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], bytes, start) ? 8 : 0
    case 0xff: return has([0xff, 0xd8, 0xff], bytes, start) ? 3 : 0
    case 0x62: return has([0x62, 0x70, 0x6c, 0x69, 0x73, 0x74, 0x30, 0x30], bytes, start) ? 8 : 0
    case 1: return 1
    default: return 0
    }
  }

  /// Whether a blob is Core Data's reference to a file: 2, a UUID of 36 characters, a zero.
  static func isReference(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    range.count == 38 && bytes[range.lowerBound] == 2 && bytes[range.upperBound - 1] == 0
      && isIdentifierText(bytes, (range.lowerBound + 1)..<(range.upperBound - 1))
  }

  static func isIdentifierText(
    _ bytes: Span<UInt8>, _ range: Range<Int>, _ encoding: TextEncoding = .utf8
  ) -> Bool {
    let unit = encoding == .utf8 ? 1 : 2
    guard range.count == 36 * unit else { return false }
    let low = encoding == .utf16BigEndian ? 1 : 0
    for index in 0..<36 {
      let place = range.lowerBound + index * unit
      if unit == 2, bytes[place + 1 - low] != 0 { return false }
      let byte = bytes[place + low]
      switch index {
      case 8, 13, 18, 23: if byte != 0x2d { return false }
      default:
        switch byte {
        case 0x30...0x39, 0x41...0x46, 0x61...0x66: break
        default: return false
        }
      }
    }
    return true
  }

  /// Whether bytes are a UUID of a known version and the usual variant.
  static func isIdentifier(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == 16 else { return false }
    let version = bytes[range.lowerBound + 6] >> 4
    return version >= 1 && version <= 8 && bytes[range.lowerBound + 8] & 0xc0 == 0x80
  }

  private static func has(_ signature: [UInt8], _ bytes: Span<UInt8>, _ start: Int) -> Bool {
    for (index, byte) in signature.enumerated() where bytes[start + index] != byte { return false }
    return true
  }
}
