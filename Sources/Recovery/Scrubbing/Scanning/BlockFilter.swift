/// A Bloom filter of 64-bit words: two bits of one word for each member, so that one look at memory tells of nearly
/// everything that is no member.
struct BlockFilter: Sendable {
  private(set) var words: [UInt64]
  let shift: UInt64

  /// A filter.
  ///
  /// - Parameter bits: the number of words as a power of two.
  init(bits: Int) {
    words = [UInt64](repeating: 0, count: 1 << bits)
    shift = UInt64(64 - bits)
  }

  /// The bytes that it takes.
  var memory: Int { words.count * 8 }

  @inline(__always)
  private static func mixed(_ key: UInt64) -> UInt64 { (key ^ key &>> 29) &* 0x9e37_79b9_7f4a_7c15 }

  @inline(__always)
  private static func pattern(_ hash: UInt64) -> UInt64 { 1 &<< (hash & 63) | 1 &<< (hash &>> 6 & 63) }

  mutating func insert(_ key: UInt64) {
    let hash = Self.mixed(key)
    words[Int(truncatingIfNeeded: hash &>> shift)] |= Self.pattern(hash)
  }

  /// Whether a key may be in it; false is certain.
  @inline(__always)
  func mayContain(_ key: UInt64) -> Bool { Self.mayContain(key, words.span, shift) != 0 }

  /// 1 where a key may be in the filter of these words, else 0: a number, so that nothing has to be guessed in a loop.
  @inline(__always)
  static func mayContain(_ key: UInt64, _ words: Span<UInt64>, _ shift: UInt64) -> Int {
    let hash = mixed(key)
    let pattern = pattern(hash)
    return words[Int(truncatingIfNeeded: hash &>> shift)] & pattern == pattern ? 1 : 0
  }

  /// Puts in what is in another filter of the same size.
  mutating func add(_ other: BlockFilter) {
    for index in words.indices where index < other.words.count { words[index] |= other.words[index] }
  }
}
