/// The sum of a page in a recovery kit: CRC-32 as gzip computes it.
///
/// It is linear, so that the difference of two sums tells which bit was flipped where it was a single one.
package enum PageSum {
  /// Eight tables of 256 entries: the sum of a byte followed by none to seven zero bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 1 ? 0xEDB8_8320 ^ (value >> 1) : value >> 1 }
      tables[byte] = value
    }
    for table in 1..<8 {
      for byte in 0..<256 {
        let previous = tables[(table - 1) * 256 + byte]
        tables[table * 256 + byte] = tables[Int(previous & 0xFF)] ^ (previous >> 8)
      }
    }
    return tables
  }()

  /// The sum of some bytes.
  package static func of(_ bytes: Span<UInt8>) -> UInt32 {
    let table = tables.span
    var sum: UInt32 = 0xFFFF_FFFF
    var index = 0
    let wholes = bytes.count & ~7
    while index < wholes {
      let low =
        sum
        ^ (UInt32(bytes[index]) | UInt32(bytes[index &+ 1]) << 8 | UInt32(bytes[index &+ 2]) << 16
          | UInt32(bytes[index &+ 3]) << 24)
      sum =
        table[Int(low & 0xFF) | 0x700] ^ table[Int(low >> 8 & 0xFF) | 0x600] ^ table[Int(low >> 16 & 0xFF) | 0x500]
        ^ table[Int(low >> 24) | 0x400] ^ table[Int(bytes[index &+ 4]) | 0x300] ^ table[Int(bytes[index &+ 5]) | 0x200]
        ^ table[Int(bytes[index &+ 6]) | 0x100] ^ table[Int(bytes[index &+ 7])]
      index &+= 8
    }
    while index < bytes.count {
      sum = table[Int((sum ^ UInt32(bytes[index])) & 0xFF)] ^ (sum >> 8)
      index &+= 1
    }
    return ~sum
  }

  /// The place of the one bit in which two pages differ, by the difference of their sums; nil where they differ otherwise.
  ///
  /// - Returns: the offset of the byte, and the bit in it, 0 for the lowest.
  static func flippedBit(difference: UInt32, count: Int) -> (offset: Int, bit: Int)? {
    guard difference != 0 else { return nil }
    let table = tables.span
    // The sum of a single bit in the last byte; each step is one more byte behind it.
    var sums = (0..<8).map { table[1 << $0] }
    var offset = count - 1
    while offset >= 0 {
      for bit in 0..<8 {
        if sums[bit] == difference { return (offset, bit) }
        sums[bit] = table[Int(sums[bit] & 0xFF)] ^ (sums[bit] >> 8)
      }
      offset -= 1
    }
    return nil
  }
}

extension RecoveryKit {
  /// The sum that a kit has of a page with those bytes.
  public static func sum(of page: [UInt8]) -> UInt32 { PageSum.of(page.span) }

  /// The one bit in which a page differs from that of which a kit has the sum; nil where it is the same, or differs in more.
  ///
  /// Of pages that differ otherwise, one in a hundred thousand seems to differ in one bit.
  public static func flippedBit(of page: [UInt8], expected: UInt32) -> (offset: Int, bit: Int)? {
    PageSum.flippedBit(difference: PageSum.of(page.span) ^ expected, count: page.count)
  }
}
