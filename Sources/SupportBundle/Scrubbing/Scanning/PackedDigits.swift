/// The digits of base64 (RFC 4648, section 4) and of hexadecimal numbers, as numbers.
enum PackedDigits {
  /// What stands for a character that is no digit.
  static let none: UInt8 = 0xff

  /// What fills up the last digits of base64.
  static let padding = UInt8(ascii: "=")

  /// For each byte the number that it stands for in base64.
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

  /// For each byte the number that it stands for as a hexadecimal digit of either case.
  static let hexadecimal: [UInt8] = table { byte in
    switch byte {
    case 0x30...0x39: byte - 0x30
    case 0x41...0x46: byte - 0x41 + 10
    case 0x61...0x66: byte - 0x61 + 10
    default: none
    }
  }

  /// What characters that are no digits have in ``kinds``.
  static let otherMark: UInt8 = 0x80

  /// What hexadecimal digits have in ``kinds``.
  static let hexadecimalMark: UInt8 = 0x40

  /// For each byte, in the lower six bits, the number that it stands for in base64, and the mark of what it is.
  static let kinds: [UInt8] = (0...255).map {
    base64[$0] == none ? otherMark : hexadecimal[$0] == none ? base64[$0] : base64[$0] | hexadecimalMark
  }

  private static func table(_ number: (UInt8) -> UInt8) -> [UInt8] { (0...255).map { number(UInt8($0)) } }

  /// Four of the six bytes that eight digits of base64 stand for, the first one lowest.
  ///
  /// - Parameter bits: the 48 bits of the digits, those of the last one lowest.
  @inline(__always)
  static func start(_ bits: UInt64, skipping skipped: Int) -> UInt64 {
    UInt64(UInt32(truncatingIfNeeded: bits &>> UInt64(16 &- 8 &* skipped)).byteSwapped)
  }

  /// The 48 bits that eight digits of base64 stand for, those of the last one lowest.
  @inline(__always)
  static func base64(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
    let kinds = kinds.span
    var word: UInt64 = 0
    for index in start..<(start &+ 8) { word = word &<< 6 | UInt64(kinds[Int(bytes[index])] & 63) }
    return word
  }

  /// The four bytes that eight hexadecimal digits stand for, the first one lowest.
  static func hexadecimalStart(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
    var word: UInt32 = 0
    for index in start..<(start + 8) { word = word << 4 | UInt32(hexadecimal[Int(bytes[index])]) }
    return UInt64(word.byteSwapped)
  }

  /// Decodes digits, up to the first character that is none; gives the number of bytes.
  ///
  /// - Parameters:
  ///   - bits: the bits of a digit: 6 for base64, 4 for hexadecimal.
  ///   - count: how many bytes are wanted at most; there is room for as many.
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
