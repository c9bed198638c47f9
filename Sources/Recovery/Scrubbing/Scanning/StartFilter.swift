/// A Bloom filter of the first four bytes of values, those of ASCII characters apart: text is then not mistaken for the many
/// numbers and identifiers that begin with any bytes.
///
/// It is small enough to stay near the processor, as it is asked about every byte.
struct StartFilter: Sendable {
  private static let textBits: UInt64 = 16
  private static let otherBits: UInt64 = 17

  /// The words of the part for text, then those of the other one.
  private(set) var words = [UInt64](repeating: 0, count: 1 << textBits + 1 << otherBits)

  /// The bytes that it takes.
  var memory: Int { words.count * 8 }

  /// The word and the bits of it for four bytes, given as a number.
  @inline(__always)
  private static func place(_ start: UInt64) -> (word: Int, pattern: UInt64) {
    let hash = (start ^ start &>> 29) &* 0x9e37_79b9_7f4a_7c15
    let isText = start & 0x8080_8080 == 0
    let word = isText ? hash &>> (64 &- textBits) : (hash &>> (64 &- otherBits)) &+ (1 &<< textBits)
    return (Int(truncatingIfNeeded: word), 1 &<< (hash & 63) | 1 &<< (hash &>> 6 & 63))
  }

  /// Puts in the first four bytes of a value.
  mutating func insert(_ start: UInt64) {
    let place = Self.place(start)
    words[place.word] |= place.pattern
  }

  /// Whether a value may begin with four bytes; false is certain.
  @inline(__always)
  func mayContain(_ start: UInt64) -> Bool { Self.mayContain(start, words.span) != 0 }

  /// 1 where a value of the filter of these words may begin with four bytes, else 0.
  @inline(__always)
  static func mayContain(_ start: UInt64, _ words: Span<UInt64>) -> Int {
    let place = place(start)
    return words[place.word] & place.pattern == place.pattern ? 1 : 0
  }

  /// Puts in what is in another filter.
  mutating func add(_ other: StartFilter) {
    for index in words.indices { words[index] |= other.words[index] }
  }
}
