import SQLiteFormat

/// The values that must not appear in the output, as keyed fingerprints in bounded memory.
///
/// Watched are the first 24 bytes, and 24 bytes every 512 of long values; text as UTF-8. Values under four bytes are
/// not watched.
struct WatchedValues: Sendable {
  static let longest = 24

  /// The longest encoded form of ``longest`` bytes.
  static let longestForm = 2 * longest + 4

  static let pieceDistance = 512

  /// One value per 64 bytes of a large store, more than stores have; the rest are counted.
  let limit: Int

  /// Shorter values match by chance in base64.
  static let shortestInBase64 = 6

  let function: KeyedFunction
  private let bytes: Int64

  /// The values of eight bytes and more.
  private(set) var values = FingerprintSet()

  /// The values of four to seven bytes, with the length in the high byte.
  private(set) var shortValues: FingerprintSet

  private var digitCounts = [Int](repeating: 0, count: 8)

  /// The values that may appear.
  private(set) var exempt = FingerprintSet()

  private var numbers = FingerprintSet()

  // The filters: the first four bytes of all values, then eight of long ones and whole short ones. The second grows
  // with the store, since a full filter excludes little. For UTF-16, the first unit in either order, then four.
  private(set) var units = [UInt64](repeating: 0, count: 1024)
  private(set) var starts = StartFilter()
  private(set) var shortStarts = BlockFilter(bits: 14)
  private(set) var members: BlockFilter
  private(set) var wideStarts = BlockFilter(bits: 15)

  /// By hash of the first eight bytes: the lengths 8 to 24 as bits, and whether they may be a number.
  private(set) var lengths: [UInt32]
  private let lengthShift: UInt64

  private(set) var unwatched: Int64 = 0

  /// - Parameter bytes: the store size, for the capacity.
  init(_ function: KeyedFunction, bytes: Int64) {
    self.function = function
    self.bytes = bytes
    // Sixteen filter bits per value exclude all but a few percent.
    limit = Int(max(6_000_000, min(48_000_000, bytes / 64)))
    let bits = max(18, min(21, Int64.bitWidth - (bytes / 1024).leadingZeroBitCount))
    shortValues = FingerprintSet(salt: function(0x7361_6c74, 0))
    members = BlockFilter(bits: bits)
    lengths = [UInt32](repeating: 0, count: 1 << (bits + 1))
    lengthShift = UInt64(63 - bits)
  }

  init(like other: WatchedValues) { self.init(other.function, bytes: other.bytes) }

  var count: Int { values.count + shortValues.count + numbers.count }

  var exemptCount: Int { exempt.count }

  var memory: Int {
    values.memory + shortValues.memory + exempt.memory + numbers.memory + shortStarts.memory + members.memory
      + starts.memory + wideStarts.memory + lengths.count * 4
  }

  // MARK: Values

  /// - Parameter isText: whether it is UTF-8 text, also sought as UTF-16.
  mutating func insert(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool) {
    guard range.count >= 4 else { return }
    let length = min(range.count, Self.longest)
    let start = range.lowerBound
    let word = Self.word(bytes, start, length)
    if length < 8 {
      let key = Self.shortKey(word, length)
      guard shortValues.insert(key) else { return }
      if Self.isDigits(word, length) { digitCounts[length] += 1 }
      shortStarts.insert(word & 0xffff_ffff)
      members.insert(key)
    } else {
      let fingerprint = fingerprint(bytes, start, length)
      guard values.count < limit else {
        if !values.contains(fingerprint) { unwatched += 1 }
        return
      }
      guard values.insert(fingerprint) else { return }
      members.insert(word)
      lengths[place(word)] |= 1 << UInt32(length - 8)
    }
    starts.insert(word & 0xffff_ffff)
    if isText { insertWide(bytes, range) }
  }

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
    for unit in [UInt16(truncatingIfNeeded: first), UInt16(truncatingIfNeeded: first).byteSwapped] {
      units[Int(unit >> 6)] |= 1 << UInt64(unit & 63)
    }
  }

  mutating func take(_ other: inout WatchedValues) {
    unwatched += other.unwatched + values.take(&other.values, upTo: limit)
    unwatched += numbers.take(&other.numbers, upTo: limit / 2)
    shortValues.take(&other.shortValues)
    for length in digitCounts.indices { digitCounts[length] += other.digitCounts[length] }
    exempt.take(&other.exempt)
    for index in units.indices { units[index] |= other.units[index] }
    for index in lengths.indices { lengths[index] |= other.lengths[index] }
    starts.add(other.starts)
    shortStarts.add(other.shortStarts)
    members.add(other.members)
    wideStarts.add(other.wideStarts)
  }

  /// Minimizes memory after the last insertion.
  mutating func seal() {
    values.seal()
    shortValues.seal()
    numbers.seal()
  }

  static let numberMark: UInt32 = 1 << 31

  mutating func insert(bytesOfNumber bits: UInt64) {
    let word = bits.byteSwapped
    members.insert(word)
    lengths[place(word)] |= Self.numberMark
    starts.insert(word & 0xffff_ffff)
  }

  /// Whether eight bytes, the first lowest, are a watched number.
  func isNumber(_ word: UInt64) -> Bool {
    let bits = word.byteSwapped
    guard Self.isTelling(word) else { return false }
    if contains(number: bits) { return true }
    let real = Double(bitPattern: bits)
    return real.isFinite && contains(number: Pseudonyms.bits(of: real))
  }

  /// Whether four bytes are uncommon in structure.
  private static func isTelling(_ word: UInt64) -> Bool {
    var count = 0
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      let byte = UInt8(truncatingIfNeeded: word &>> shift)
      if byte > 0x0f, byte != 0xff { count &+= 1 }
    }
    return count >= 4
  }

  /// Watches a number of more than six digits; true if new.
  @discardableResult
  mutating func insert(number bits: UInt64) -> Bool {
    guard numbers.count < limit / 2 else {
      unwatched += 1
      return true
    }
    return numbers.insert(function(bits, 0x6e75_6d62))
  }

  func contains(number bits: UInt64) -> Bool { numbers.contains(function(bits, 0x6e75_6d62)) }

  // MARK: Keys

  /// Whether short digits match too often to be significant, such as postcodes within telephone numbers.
  func isCommon(_ hit: Hit) -> Bool {
    let length = Int(hit.key >> 56)
    guard (4...7).contains(length), Self.isDigits(hit.key, length) else { return false }
    var possible = 1
    for _ in 0..<length { possible *= 10 }
    return digitCounts[length] > possible / Self.sparseness
  }

  /// The least ratio of possible to watched digits.
  private static let sparseness = 1000

  private static func isDigits(_ word: UInt64, _ length: Int) -> Bool {
    (0..<length).allSatisfy { (0x30...0x39).contains(UInt8(truncatingIfNeeded: word &>> UInt64(8 &* $0))) }
  }

  @inline(__always)
  func fingerprint(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    function(bytes, offset..<(offset &+ length), tweak: UInt64(length))
  }

  /// Packs up to seven bytes, with the length in the high byte.
  @inline(__always)
  static func shortKey(_ word: UInt64, _ length: Int) -> UInt64 {
    word & (1 &<< UInt64(8 &* length) &- 1) | UInt64(length) &<< 56
  }

  @inline(__always)
  func place(_ word: UInt64) -> Int {
    Int(truncatingIfNeeded: ((word ^ word >> 31) &* 0xd6e8_feb8_6659_fd93) >> lengthShift)
  }

  /// Returns up to eight bytes, the first lowest.
  @inline(__always)
  static func word(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<min(8, length) { word |= UInt64(bytes[offset &+ index]) << UInt64(8 &* index) }
    return word
  }

  // MARK: Exemptions

  /// Exempts every value in the bytes; returns the number of new ones.
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

  mutating func exempt(_ hit: Hit) { exempt.insert(hit.key) }

  mutating func takeExemptions(of other: inout WatchedValues) { exempt.take(&other.exempt) }
}
