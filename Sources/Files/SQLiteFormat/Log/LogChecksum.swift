/// The cumulative checksum of a write-ahead log: two 32-bit sums over pairs of words (SQLite file format, "Checksum
/// Algorithm").
package struct LogChecksum: Sendable, Equatable {
  /// The first of the two sums.
  package var first: UInt32 = 0

  /// The second of the two sums.
  package var second: UInt32 = 0

  /// A checksum of nothing yet.
  package init() {}

  /// Adds bytes, whose number is a multiple of eight, as words of the given byte order.
  package mutating func add(_ bytes: Span<UInt8>, bigEndian: Bool) {
    var first = first
    var second = second
    var index = 0
    let end = bytes.count & ~7
    // Both loops read little-endian words, which is what most machines write; the other order swaps them.
    while index < end {
      var low = UInt32(bytes[index]) | UInt32(bytes[index &+ 1]) << 8
      low |= UInt32(bytes[index &+ 2]) << 16 | UInt32(bytes[index &+ 3]) << 24
      var high = UInt32(bytes[index &+ 4]) | UInt32(bytes[index &+ 5]) << 8
      high |= UInt32(bytes[index &+ 6]) << 16 | UInt32(bytes[index &+ 7]) << 24
      if bigEndian {
        low = low.byteSwapped
        high = high.byteSwapped
      }
      first &+= low &+ second
      second &+= high &+ first
      index &+= 8
    }
    self.first = first
    self.second = second
  }
}
