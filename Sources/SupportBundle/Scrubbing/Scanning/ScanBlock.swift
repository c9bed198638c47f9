/// Filters the places where a value may begin.
///
/// Each filter handles all remaining places without branches, so that memory accesses overlap: ten times faster than
/// one place at a time.
struct ScanBlock {
  static let length = 1024

  /// Below this, single checks are faster.
  static let worthwhile = 96

  private(set) var places: [UInt32] = []

  // Each remaining place, and the eight bytes there.
  private var plain: [UInt32] = []
  private var words: [UInt64] = []

  private var wide: [UInt32] = []
  private var long: [UInt32] = []
  private var short: [UInt32] = []
  private var left: [UInt32] = []

  private var digits: [UInt64] = []
  private var hexadecimalDigits: [UInt64] = []
  private var padding: [UInt64] = []

  private mutating func allocate() {
    guard plain.isEmpty else { return }
    plain = [UInt32](repeating: 0, count: Self.length)
    words = [UInt64](repeating: 0, count: Self.length)
    (wide, long, short) = (plain, plain, plain)
    left = [UInt32](repeating: 0, count: 5 * Self.length)
    digits = [UInt64](repeating: 0, count: Self.length / 64 + 1)
    (hexadecimalDigits, padding) = (digits, digits)
  }

  /// Finds the places where a value ending before `end` may begin.
  mutating func sift(_ bytes: Span<UInt8>, _ range: Range<Int>, before end: Int, _ values: WatchedValues) {
    allocate()
    // Places near the end all pass.
    let whole = range.lowerBound..<max(range.lowerBound, min(range.upperBound, end &- 7))
    let counts = Self.first(bytes, whole, values, &plain, &words, &wide)
    var count = Self.plainOnes(counts.plain, plain, words, values, &long, &short, &left)
    count = wideOnes(counts.wide, bytes, values, count)
    count = packedOnes(bytes, whole, before: end, values, count)
    places.removeAll(keepingCapacity: true)
    places.append(contentsOf: left[..<count])
    if count > 1 { places.sort() }
    for place in whole.upperBound..<range.upperBound { places.append(UInt32(truncatingIfNeeded: place)) }
  }

  // Buffers are passed singly: as members they would be looked up for every byte.

  private static func first(
    _ bytes: Span<UInt8>, _ range: Range<Int>, _ values: WatchedValues, _ plainBuffer: inout [UInt32],
    _ wordBuffer: inout [UInt64], _ wideBuffer: inout [UInt32]
  ) -> (plain: Int, wide: Int) {
    guard !range.isEmpty else { return (0, 0) }
    let (units, starts) = (values.units.span, values.starts.words.span)
    var plain = plainBuffer.mutableSpan
    var words = wordBuffer.mutableSpan
    var wide = wideBuffer.mutableSpan
    var (plainCount, wideCount) = (0, 0)
    // The eight bytes, the first lowest.
    var word = WatchedValues.word(bytes, range.lowerBound, 7) &<< 8
    for index in range {
      word = word &>> 8 | UInt64(bytes[index &+ 7]) &<< 56
      plain[plainCount] = UInt32(truncatingIfNeeded: index)
      words[plainCount] = word
      plainCount &+= StartFilter.mayContain(word & 0xffff_ffff, starts)
      let pair = Int(truncatingIfNeeded: word & 0xffff)
      wide[wideCount] = UInt32(truncatingIfNeeded: index)
      wideCount &+= Int(truncatingIfNeeded: units[pair &>> 6] &>> UInt64(truncatingIfNeeded: pair & 63) & 1)
    }
    return (plainCount, wideCount)
  }

  private static func plainOnes(
    _ count: Int, _ plainBuffer: [UInt32], _ wordBuffer: [UInt64], _ values: WatchedValues,
    _ longBuffer: inout [UInt32], _ shortBuffer: inout [UInt32], _ leftBuffer: inout [UInt32]
  ) -> Int {
    let (plain, words) = (plainBuffer.span, wordBuffer.span)
    let (starts, members) = (values.shortStarts.words.span, values.members.words.span)
    let (startShift, shift) = (values.shortStarts.shift, values.members.shift)
    let lengths = values.lengths.span
    var long = longBuffer.mutableSpan
    var short = shortBuffer.mutableSpan
    var left = leftBuffer.mutableSpan
    var (longCount, shortCount, leftCount) = (0, 0, 0)
    for number in 0..<count {
      let word = words[number]
      long[longCount] = UInt32(truncatingIfNeeded: number)
      longCount &+= BlockFilter.mayContain(word, members, shift)
      short[shortCount] = UInt32(truncatingIfNeeded: number)
      shortCount &+= BlockFilter.mayContain(word & 0xffff_ffff, starts, startShift)
    }
    for place in 0..<longCount {
      let number = Int(long[place])
      left[leftCount] = plain[number]
      leftCount &+= lengths[values.place(words[number])] != 0 ? 1 : 0
    }
    for place in 0..<shortCount {
      let number = Int(short[place])
      let word = words[number]
      left[leftCount] = plain[number]
      leftCount &+=
        BlockFilter.mayContain(WatchedValues.shortKey(word, 4), members, shift)
        | BlockFilter.mayContain(WatchedValues.shortKey(word, 5), members, shift)
        | BlockFilter.mayContain(WatchedValues.shortKey(word, 6), members, shift)
        | BlockFilter.mayContain(WatchedValues.shortKey(word, 7), members, shift)
    }
    return leftCount
  }

  private mutating func wideOnes(_ count: Int, _ bytes: Span<UInt8>, _ values: WatchedValues, _ start: Int) -> Int {
    var leftCount = start
    for number in 0..<count {
      let word = WatchedValues.word(bytes, Int(wide[number]), 8)
      guard values.wideStarts.mayContain(word) || values.wideStarts.mayContain(WatchedValues.swappedUnits(word)) else {
        continue
      }
      left[leftCount] = wide[number]
      leftCount &+= 1
    }
    return leftCount
  }

  /// Finds eight digits in a row that may encode a value.
  private mutating func packedOnes(
    _ bytes: Span<UInt8>, _ range: Range<Int>, before end: Int, _ values: WatchedValues, _ start: Int
  ) -> Int {
    let kinds = PackedDigits.kinds
    let table = kinds.span
    let read = min(end, range.upperBound &+ 7) &- range.lowerBound
    let count = (range.count &+ 63) &>> 6
    for number in 0...count {
      var (some, hexadecimal, filling): (UInt64, UInt64, UInt64) = (0, 0, 0)
      let from = number &<< 6
      for bit in 0..<max(0, min(64, read &- from)) {
        let byte = bytes[range.lowerBound &+ from &+ bit]
        let kind = UInt64(table[Int(byte)])
        filling |= (byte == PackedDigits.padding ? 1 : 0) &<< UInt64(truncatingIfNeeded: bit)
        some |= (kind &>> 7 ^ 1) &<< UInt64(truncatingIfNeeded: bit)
        hexadecimal |= (kind &>> 6 & 1) &<< UInt64(truncatingIfNeeded: bit)
      }
      digits[number] = some
      hexadecimalDigits[number] = hexadecimal
      padding[number] = filling
    }
    var leftCount = start
    for number in 0..<count {
      // One or two may be padding.
      var padded = padding[number] &>> 7 | padding[number &+ 1] &<< 57
      while padded != 0 {
        let place = range.lowerBound &+ number &<< 6 &+ padded.trailingZeroBitCount
        padded &= padded &- 1
        guard place < range.upperBound else { break }
        left[leftCount] = UInt32(truncatingIfNeeded: place)
        leftCount &+= 1
      }
      var places = Self.runs(digits[number], digits[number &+ 1])
      guard places != 0 else { continue }
      let hexadecimal = Self.runs(hexadecimalDigits[number], hexadecimalDigits[number &+ 1])
      while places != 0 {
        let bit = places.trailingZeroBitCount
        places &= places &- 1
        let place = range.lowerBound &+ number &<< 6 &+ bit
        guard place < range.upperBound else { break }
        let word = PackedDigits.base64(bytes, at: place)
        if values.starts.mayContain(PackedDigits.start(word, skipping: 0))
          || values.starts.mayContain(PackedDigits.start(word, skipping: 1))
          || values.starts.mayContain(PackedDigits.start(word, skipping: 2))
          || hexadecimal &>> UInt64(bit) & 1 != 0
            && values.starts.mayContain(PackedDigits.hexadecimalStart(bytes, at: place))
        {
          left[leftCount] = UInt32(truncatingIfNeeded: place)
          leftCount &+= 1
        }
      }
    }
    return leftCount
  }

  /// Returns the bits where eight in a row begin.
  @inline(__always)
  private static func runs(_ word: UInt64, _ next: UInt64) -> UInt64 {
    let two = word & (word &>> 1 | next &<< 63)
    let nextTwo = next & next &>> 1
    let four = two & (two &>> 2 | nextTwo &<< 62)
    let nextFour = nextTwo & nextTwo &>> 2
    return four & (four &>> 4 | nextFour &<< 60)
  }
}

/// A Bloom filter of values' first four bytes, separate for ASCII text, so that text does not match the many numbers
/// and identifiers.
///
/// It fits in the processor cache, as every byte is tested.
struct StartFilter: Sendable {
  private static let textBits: UInt64 = 16
  private static let otherBits: UInt64 = 17

  /// The words for text, then the others.
  private(set) var words = [UInt64](repeating: 0, count: 1 << textBits + 1 << otherBits)

  @inline(__always)
  private static func place(_ start: UInt64) -> (word: Int, pattern: UInt64) {
    let hash = (start ^ start &>> 29) &* 0x9e37_79b9_7f4a_7c15
    let isText = start & 0x8080_8080 == 0
    let word = isText ? hash &>> (64 &- textBits) : (hash &>> (64 &- otherBits)) &+ (1 &<< textBits)
    return (Int(truncatingIfNeeded: word), 1 &<< (hash & 63) | 1 &<< (hash &>> 6 & 63))
  }

  mutating func insert(_ start: UInt64) {
    let place = Self.place(start)
    words[place.word] |= place.pattern
  }

  /// Whether a value may begin so; false is certain.
  @inline(__always)
  func mayContain(_ start: UInt64) -> Bool { Self.mayContain(start, words.span) != 0 }

  @inline(__always)
  static func mayContain(_ start: UInt64, _ words: Span<UInt64>) -> Int {
    let place = place(start)
    return words[place.word] & place.pattern == place.pattern ? 1 : 0
  }

  mutating func add(_ other: StartFilter) { for index in words.indices { words[index] |= other.words[index] } }
}

/// A Bloom filter with two bits in one word per member: one memory access excludes most keys.
struct BlockFilter: Sendable {
  private(set) var words: [UInt64]
  let shift: UInt64

  /// - Parameter bits: the number of words as a power of two.
  init(bits: Int) {
    words = [UInt64](repeating: 0, count: 1 << bits)
    shift = UInt64(64 - bits)
  }

  @inline(__always)
  private static func mixed(_ key: UInt64) -> UInt64 { (key ^ key &>> 29) &* 0x9e37_79b9_7f4a_7c15 }

  @inline(__always)
  private static func pattern(_ hash: UInt64) -> UInt64 { 1 &<< (hash & 63) | 1 &<< (hash &>> 6 & 63) }

  mutating func insert(_ key: UInt64) {
    let hash = Self.mixed(key)
    words[Int(truncatingIfNeeded: hash &>> shift)] |= Self.pattern(hash)
  }

  /// Whether a key may be a member; false is certain.
  @inline(__always)
  func mayContain(_ key: UInt64) -> Bool { Self.mayContain(key, words.span, shift) != 0 }

  /// Returns 1 or 0, for loops without branches.
  @inline(__always)
  static func mayContain(_ key: UInt64, _ words: Span<UInt64>, _ shift: UInt64) -> Int {
    let hash = mixed(key)
    let pattern = pattern(hash)
    return words[Int(truncatingIfNeeded: hash &>> shift)] & pattern == pattern ? 1 : 0
  }

  mutating func add(_ other: BlockFilter) {
    for index in words.indices where index < other.words.count { words[index] |= other.words[index] }
  }
}

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
