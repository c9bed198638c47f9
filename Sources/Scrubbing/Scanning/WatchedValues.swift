internal import SQLiteFormat

/// What must not be found any more: fingerprints of a store's values under a key, in bounded memory.
///
/// A value is watched by its first 24 bytes at most, text in UTF-8. Values of fewer than four bytes are not watched.
struct WatchedValues: Sendable {
  /// The longest beginning of a value that is compared.
  static let longest = 24

  /// The most bytes that such a beginning takes in any form: as UTF-16, in base64 or as hexadecimal digits.
  static let longestForm = 2 * longest + 4

  /// How many values are watched at most: one for each 64 bytes of a large store, which is more than stores have; what is beyond that is
  /// counted.
  let limit: Int

  /// Values of fewer bytes are not looked for in base64: as little as that is found by chance.
  static let shortestInBase64 = 6

  private let function: KeyedFunction

  /// The fingerprints of the values of eight bytes and more.
  private var values = FingerprintSet()

  /// The values of four to seven bytes as they are, the length in the highest byte.
  private var shortValues = FingerprintSet()

  /// Values that may be found.
  private var exempt = FingerprintSet()

  /// Numbers, by value.
  private var numbers = FingerprintSet()

  // What nearly all places are dismissed by: the first two bytes of all values, then the first four, then those of short ones
  // and the first eight of long ones; and the first unit of text in UTF-16, then the first four. They are small, so that
  // they stay near the processor; only that of long values grows with the store, since one that is full dismisses nothing.
  private var pairs = [UInt64](repeating: 0, count: 1024)
  private var units = [UInt64](repeating: 0, count: 1024)
  private var starts = BlockFilter(bits: 16)
  private var shortStarts = BlockFilter(bits: 14)
  private var longStarts: BlockFilter
  private var wideStarts = BlockFilter(bits: 15)

  /// For a hash of the first eight bytes the lengths that such values have, from 8 to 24, as bits.
  private var lengths: [UInt32]
  private let lengthShift: UInt64

  /// The values that found no room.
  private(set) var unwatched: Int64 = 0

  /// Nothing to watch for yet.
  ///
  /// - Parameter bytes: the size of the store, by which there is room for its values.
  init(_ function: KeyedFunction, bytes: Int64) {
    self.function = function
    // A value for each 64 bytes is many; sixteen bits of the filter for each dismiss all but a few in a hundred.
    limit = Int(max(6_000_000, min(48_000_000, bytes / 64)))
    let bits = max(18, min(22, Int64.bitWidth - (bytes / 256).leadingZeroBitCount))
    longStarts = BlockFilter(bits: bits)
    lengths = [UInt32](repeating: 0, count: 1 << (bits + 1))
    lengthShift = UInt64(63 - bits)
  }

  /// The number of different values that are watched.
  var count: Int { values.count + shortValues.count + numbers.count }

  /// The number of values that are exempt.
  var exemptCount: Int { exempt.count }

  /// The bytes that it takes.
  var memory: Int {
    values.memory + shortValues.memory + exempt.memory + numbers.memory + shortStarts.memory + longStarts.memory
      + starts.memory + wideStarts.memory + lengths.count * 4
  }

  // MARK: Values

  /// Watches for a value, given as bytes.
  ///
  /// - Parameter isText: whether it is text in UTF-8, which is looked for as UTF-16 too.
  mutating func insert(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool) {
    guard range.count >= 4 else { return }
    let length = min(range.count, Self.longest)
    let start = range.lowerBound
    let word = Self.word(bytes, start, length)
    if length < 8 {
      guard shortValues.insert(Self.shortKey(word, length)) else { return }
      shortStarts.insert(word & 0xffff_ffff)
    } else {
      let fingerprint = fingerprint(bytes, start, length)
      guard values.count < limit else {
        if !values.contains(fingerprint) { unwatched += 1 }
        return
      }
      guard values.insert(fingerprint) else { return }
      longStarts.insert(word)
      lengths[place(word)] |= 1 << UInt32(length - 8)
    }
    starts.insert(word & 0xffff_ffff)
    pairs[Int(word & 0xffff) >> 6] |= 1 << (word & 63)
    if isText { insertWide(bytes, range) }
  }

  /// Notes the first four units of a text in UTF-16.
  private mutating func insertWide(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    var first: UInt64 = 0
    var count: UInt64 = 0
    var index = range.lowerBound
    func add(_ unit: UInt32) {
      if count < 4 { first |= UInt64(unit & 0xffff) << (16 * count) }
      count += 1
    }
    while index < range.upperBound, count < 4 {
      let character = TextCoding.read(bytes, at: index, before: range.upperBound, .utf8)
      index += character.length
      guard let scalar = character.scalar else { return }
      if scalar < 0x10000 {
        add(scalar)
      } else {
        add(0xd800 + (scalar - 0x10000) >> 10)
        add(0xdc00 + (scalar - 0x10000) & 0x3ff)
      }
    }
    guard count >= 4 else { return }
    wideStarts.insert(first)
    units[Int(first & 0xffff) >> 6] |= 1 << (first & 63)
  }

  /// Watches for a number of more than six digits; whether it is new.
  @discardableResult
  mutating func insert(number bits: UInt64) -> Bool {
    guard numbers.count < limit / 2 else {
      unwatched += 1
      return true
    }
    return numbers.insert(function(bits, 0x6e75_6d62))
  }

  /// Whether a number is one of the store's.
  func contains(number bits: UInt64) -> Bool { numbers.contains(function(bits, 0x6e75_6d62)) }

  // MARK: Exemptions

  /// Exempts every value that is found in the bytes; returns how many were not exempt before.
  @discardableResult
  mutating func exemptAll(in bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
    var offset = range.lowerBound
    let before = exempt.count
    while let hit = firstHit(bytes, from: offset, before: range.upperBound) {
      exempt.insert(hit.key)
      offset = hit.range.lowerBound
    }
    return exempt.count - before
  }

  /// Exempts the value of a hit.
  mutating func exempt(_ hit: Hit) { exempt.insert(hit.key) }

  /// Exempts what another copy of these values exempts.
  mutating func takeExemptions(of other: WatchedValues) { exempt.add(other.exempt) }

  // MARK: Looking for them

  /// A value that was found.
  struct Hit {
    /// Where it is, in whatever form.
    var range: Range<Int>

    /// What tells it from other values.
    fileprivate var key: UInt64
  }

  /// The first value that begins in a range and ends in it, exempt ones left out: as it is, in UTF-16 of either order and at
  /// any place, in base64 or in hexadecimal digits.
  func firstHit(_ bytes: Span<UInt8>, from start: Int, before limit: Int) -> Hit? {
    let end = min(limit, bytes.count)
    let kinds = PackedDigits.kinds.span
    let (pairs, units) = (pairs.span, units.span)
    // The eight bytes from `index` on, the first one lowest, and how many digits of either kind the last ones are.
    var word: UInt64 = 0
    var run64 = 0
    var run16 = 0
    var next = start
    var index = start &- 8
    let stop = end &- 4
    while index < stop {
      index &+= 1
      word >>= 8
      if next < end {
        let byte = bytes[next]
        next &+= 1
        word |= UInt64(byte) << 56
        let kind = kinds[Int(byte)]
        run64 = kind == 0 ? 0 : run64 &+ 1
        run16 = kind == 2 ? run16 &+ 1 : 0
      } else {
        run64 = 0
        run16 = 0
      }
      guard index >= start else { continue }
      let pair = Int(truncatingIfNeeded: word & 0xffff)
      if pairs[pair >> 6] >> UInt64(pair & 63) & 1 != 0, starts.mayContain(word & 0xffff_ffff),
        let hit = plainHit(bytes, at: index, before: end, word)
      {
        return hit
      }
      if units[pair >> 6] >> UInt64(pair & 63) & 1 != 0, wideStarts.mayContain(word),
        let hit = wideHit(bytes, at: index, before: end, .utf16LittleEndian)
      {
        return hit
      }
      let swapped = (pair & 0xff) << 8 | pair >> 8
      if units[swapped >> 6] >> UInt64(swapped & 63) & 1 != 0,
        wideStarts.mayContain((word & 0x00ff_00ff_00ff_00ff) << 8 | (word & 0xff00_ff00_ff00_ff00) >> 8),
        let hit = wideHit(bytes, at: index, before: end, .utf16BigEndian)
      {
        return hit
      }
      if run64 >= 8, let hit = packedHit(bytes, at: index, before: end, isHexadecimal: run16 >= 8) { return hit }
    }
    return nil
  }

  private func shortHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    for length in 4...7 where offset &+ length <= end {
      let key = Self.shortKey(word, length)
      if shortValues.contains(key), !exempt.contains(key) {
        return Hit(range: offset..<(offset &+ length), key: key)
      }
    }
    return nil
  }

  private func longHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    var wanted = lengths[place(word)]
    while wanted != 0 {
      let length = 8 &+ wanted.trailingZeroBitCount
      wanted &= wanted &- 1
      guard offset &+ length <= end else { return nil }
      let key = fingerprint(bytes, offset, length)
      if values.contains(key), !exempt.contains(key) { return Hit(range: offset..<(offset &+ length), key: key) }
    }
    return nil
  }

  @inline(never)
  private func plainHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    if shortStarts.mayContain(word & 0xffff_ffff), let hit = shortHit(bytes, at: offset, before: end, word) {
      return hit
    }
    if offset &+ 8 <= end, longStarts.mayContain(word) { return longHit(bytes, at: offset, before: end, word) }
    return nil
  }

  /// A value that begins at a place in UTF-16.
  @inline(never)
  private func wideHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ encoding: TextEncoding) -> Hit? {
    // The characters, and where each of their bytes came from.
    var text: [UInt8] = []
    var ends: [Int] = []
    var index = offset
    while index &+ 2 <= end, text.count < Self.longest {
      let character = TextCoding.read(bytes, at: index, before: end, encoding)
      guard character.scalar != nil else { break }
      TextCoding.appendUTF8(bytes, index..<(index &+ character.length), encoding, to: &text)
      index &+= character.length
      while ends.count < text.count { ends.append(index) }
    }
    guard let hit = hit(in: text.span, at: 0, shortest: 4) else { return nil }
    return Hit(range: offset..<ends[hit.range.upperBound &- 1], key: hit.key)
  }

  /// A value that begins at a place in digits: with one of the first three bytes that eight of base64 stand for, or with the
  /// first of hexadecimal ones.
  @inline(never)
  private func packedHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, isHexadecimal: Bool) -> Hit? {
    let digits = PackedDigits.base64.span
    var word: UInt64 = 0
    for index in offset..<(offset &+ 8) { word = word << 6 | UInt64(digits[Int(bytes[index])]) }
    for skipped in 0..<3 {
      let start = UInt32(truncatingIfNeeded: word >> UInt64(16 &- 8 &* skipped)).byteSwapped
      if starts.mayContain(UInt64(start)),
        let hit = packedHit(bytes, at: offset, before: end, bits: 6, skipping: skipped)
      {
        return hit
      }
    }
    return isHexadecimal ? packedHit(bytes, at: offset, before: end, bits: 4, skipping: 0) : nil
  }

  @inline(never)
  private func packedHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, bits: Int, skipping: Int) -> Hit? {
    let text = PackedDigits.decode(
      bytes, from: offset, before: end, bits: bits, count: skipping &+ Self.longest)
    guard let hit = hit(in: text.span, at: skipping, shortest: bits == 6 ? Self.shortestInBase64 : 4) else {
      return nil
    }
    let low = offset &+ 8 &* skipping / bits
    let high = offset &+ (8 &* hit.range.upperBound &+ bits &- 1) / bits
    return Hit(range: low..<min(end, high), key: hit.key)
  }

  /// The value that begins at a place of unpacked bytes, of at least so many bytes.
  private func hit(in bytes: Span<UInt8>, at offset: Int, shortest: Int) -> Hit? {
    let rest = bytes.count &- offset
    guard rest >= shortest else { return nil }
    let word = Self.word(bytes, offset, min(8, rest))
    if let hit = shortHit(bytes, at: offset, before: bytes.count, word), hit.range.count >= shortest { return hit }
    return rest >= 8 ? longHit(bytes, at: offset, before: bytes.count, word) : nil
  }

  @inline(__always)
  private func fingerprint(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    function(bytes, offset..<(offset &+ length), tweak: UInt64(length))
  }

  @inline(__always)
  private static func shortKey(_ word: UInt64, _ length: Int) -> UInt64 {
    word & (1 << UInt64(8 &* length) &- 1) | UInt64(length) << 56
  }

  @inline(__always)
  private func place(_ word: UInt64) -> Int {
    Int(truncatingIfNeeded: ((word ^ word >> 31) &* 0xd6e8_feb8_6659_fd93) >> lengthShift)
  }

  /// Up to eight bytes, the first one lowest.
  @inline(__always)
  private static func word(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<min(8, length) { word |= UInt64(bytes[offset &+ index]) << UInt64(8 &* index) }
    return word
  }
}
