/// The digits of base64 (RFC 4648, section 4) and of hexadecimal numbers, as numbers.
enum PackedDigits {
  /// What stands for a character that is no digit.
  static let none: UInt8 = 0xff

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

  private static func table(_ number: (UInt8) -> UInt8) -> [UInt8] { (0...255).map { number(UInt8($0)) } }

  /// What digits decode to, up to the first character that is none.
  ///
  /// - Parameters:
  ///   - bits: the bits of a digit: 6 for base64, 4 for hexadecimal.
  ///   - count: how many bytes are wanted at most.
  static func decode(_ bytes: Span<UInt8>, from start: Int, before end: Int, bits: Int, count: Int) -> [UInt8] {
    let table = bits == 6 ? base64 : hexadecimal
    var result: [UInt8] = []
    var word: UInt32 = 0
    var held = 0
    var index = start
    while index < end, result.count < count {
      let digit = table[Int(bytes[index])]
      if digit == none { break }
      word = word << UInt32(bits) | UInt32(digit)
      held += bits
      if held >= 8 {
        held -= 8
        result.append(UInt8(truncatingIfNeeded: word >> UInt32(held)))
      }
      index += 1
    }
    return result
  }
}
