/// A Bloom filter of 64-bit words: two bits of one word for each member, so that one look at memory tells of nearly
/// everything that is no member.
struct BlockFilter: Sendable {
  private var words: [UInt64]
  private let shift: UInt64

  /// Whether anything was put in.
  private(set) var isEmpty = true

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
  private static func mixed(_ key: UInt64) -> UInt64 { (key ^ key >> 29) &* 0x9e37_79b9_7f4a_7c15 }

  @inline(__always)
  private static func pattern(_ hash: UInt64) -> UInt64 { 1 << (hash & 63) | 1 << (hash >> 6 & 63) }

  /// Puts a key in.
  mutating func insert(_ key: UInt64) {
    let hash = Self.mixed(key)
    words[Int(truncatingIfNeeded: hash >> shift)] |= Self.pattern(hash)
    isEmpty = false
  }

  /// Whether a key may be in it; false is certain.
  @inline(__always)
  func mayContain(_ key: UInt64) -> Bool {
    let hash = Self.mixed(key)
    let pattern = Self.pattern(hash)
    return words[Int(truncatingIfNeeded: hash >> shift)] & pattern == pattern
  }
}
