/// Decodes base64 (RFC 4648, section 4) and hexadecimal digits.
enum PackedDigits {
  static let none: UInt8 = 0xff

  static let padding = UInt8(ascii: "=")

  static let base64: [UInt8] = table { byte in
    switch byte {
    case 0x41...0x5a: byte - 0x41
    case 0x61...0x7a: byte - 0x61 + 26
    case 0x30...0x39: byte - 0x30 + 52
    case 0x2b: 62
    case 0x2f: 63
    default: none
    }
  }

  static let hexadecimal: [UInt8] = table { byte in
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: none
    }
  }

  static let otherMark: UInt8 = 0x80

  static let hexadecimalMark: UInt8 = 0x40

  /// By byte: the base64 value in six bits, and the mark.
  static let kinds: [UInt8] = (0...255).map {
    base64[$0] == none ? otherMark : hexadecimal[$0] == none ? base64[$0] : base64[$0] | hexadecimalMark
  }

  private static func table(_ number: (UInt8) -> UInt8) -> [UInt8] { (0...255).map { number(UInt8($0)) } }

  /// Returns four of the six bytes of base64 digits, the first lowest.
  @inline(__always)
  static func start(_ bits: UInt64, skipping skipped: Int) -> UInt64 {
    UInt64(UInt32(truncatingIfNeeded: bits &>> UInt64(16 &- 8 &* skipped)).byteSwapped)
  }

  /// Returns the 48 bits of eight base64 digits, the last lowest.
  @inline(__always)
  static func base64(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
    let kinds = kinds.span
    var word: UInt64 = 0
    for index in start..<(start &+ 8) { word = word &<< 6 | UInt64(kinds[Int(bytes[index])] & 63) }
    return word
  }

  /// Returns the four bytes of eight hexadecimal digits, the first lowest.
  static func hexadecimalStart(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
    var word: UInt32 = 0
    for index in start..<(start + 8) { word = word << 4 | UInt32(hexadecimal[Int(bytes[index])]) }
    return UInt64(word.byteSwapped)
  }

  /// Decodes digits, and returns the number of bytes.
  ///
  /// - Parameter bits: the bits per digit: 6 for base64, 4 for hexadecimal.
  static func decode(
    _ bytes: Span<UInt8>, from start: Int, before end: Int, bits: Int, count: Int, into result: inout MutableSpan<UInt8>
  ) -> Int {
    let table = (bits == 6 ? base64 : hexadecimal).span
    var made = 0
    var word: UInt32 = 0
    var held = 0
    var index = start
    while index < end, made < count {
      let digit = table[Int(bytes[index])]
      if digit == none { break }
      word = word << UInt32(bits) | UInt32(digit)
      held += bits
      if held >= 8 {
        held -= 8
        result[made] = UInt8(truncatingIfNeeded: word >> UInt32(held))
        made += 1
      }
      index += 1
    }
    return made
  }
}
