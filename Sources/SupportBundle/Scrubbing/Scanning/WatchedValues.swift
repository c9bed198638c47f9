import SQLiteFormat

/// What must not be found any more: fingerprints of a store's values under a key, in bounded memory.
///
/// A value is watched by its first 24 bytes at most, a long one also by 24 bytes from every 512th on, text in UTF-8. Values of
/// fewer than four bytes are not watched.
struct WatchedValues: Sendable {
  /// The longest beginning of a value that is compared.
  static let longest = 24

  /// The most bytes that such a beginning takes in any form: as UTF-16, in base64 or as hexadecimal digits.
  static let longestForm = 2 * longest + 4

  /// From one piece of a long value that is compared to the next.
  static let pieceDistance = 512

  /// How many values are watched at most: one for each 64 bytes of a large store, which is more than stores have; what is beyond that is
  /// counted.
  let limit: Int

  /// Values of fewer bytes are not looked for in base64: as little as that is found by chance.
  static let shortestInBase64 = 6

  let function: KeyedFunction
  private let bytes: Int64

  /// The fingerprints of the values of eight bytes and more.
  private(set) var values = FingerprintSet()

  /// The values of four to seven bytes as they are, the length in the highest byte.
  private(set) var shortValues: FingerprintSet

  /// How many of them are digits alone, by their length.
  private var digitCounts = [Int](repeating: 0, count: 8)

  /// Values that may be found.
  private(set) var exempt = FingerprintSet()

  private var numbers = FingerprintSet()

  // What nearly all places are dismissed by: the first four bytes of all values, and then the first eight of long ones and short
  // ones as a whole, in a filter that grows with the store, since one that is full dismisses nothing. For text in UTF-16 it is
  // the first unit, in either order, then the first four.
  private(set) var units = [UInt64](repeating: 0, count: 1024)
  private(set) var starts = StartFilter()
  private(set) var shortStarts = BlockFilter(bits: 14)
  private(set) var members: BlockFilter
  private(set) var wideStarts = BlockFilter(bits: 15)

  /// For a hash of the first eight bytes the lengths that such values have, from 8 to 24, as bits; and whether they may be a number
  /// of eight bytes.
  private(set) var lengths: [UInt32]
  private let lengthShift: UInt64

  /// The values that found no room.
  private(set) var unwatched: Int64 = 0

  /// Nothing to watch for yet.
  ///
  /// - Parameter bytes: the size of the store, by which there is room for its values.
  init(_ function: KeyedFunction, bytes: Int64) {
    self.function = function
    self.bytes = bytes
    // A value for each 64 bytes is many; sixteen bits of the filter for each dismiss all but a few in a hundred.
    limit = Int(max(6_000_000, min(48_000_000, bytes / 64)))
    let bits = max(18, min(21, Int64.bitWidth - (bytes / 1024).leadingZeroBitCount))
    shortValues = FingerprintSet(salt: function(0x7361_6c74, 0))
    members = BlockFilter(bits: bits)
    lengths = [UInt32](repeating: 0, count: 1 << (bits + 1))
    lengthShift = UInt64(63 - bits)
  }

  /// Nothing to watch for yet, in the same store.
  init(like other: WatchedValues) { self.init(other.function, bytes: other.bytes) }

  /// The number of different values that are watched.
  var count: Int { values.count + shortValues.count + numbers.count }

  /// The number of values that are exempt.
  var exemptCount: Int { exempt.count }

  /// The bytes that it takes.
  var memory: Int {
    values.memory + shortValues.memory + exempt.memory + numbers.memory + shortStarts.memory + members.memory
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
    for unit in [UInt16(truncatingIfNeeded: first), UInt16(truncatingIfNeeded: first).byteSwapped] {
      units[Int(unit >> 6)] |= 1 << UInt64(unit & 63)
    }
  }

  /// Watches for what another one of the same store watched for, which is empty then.
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

  /// Takes as little memory as goes, once all values are known.
  mutating func seal() {
    values.seal()
    shortValues.seal()
    numbers.seal()
  }

  /// The bit of ``lengths`` that stands for a number of eight bytes.
  static let numberMark: UInt32 = 1 << 31

  /// Watches for the eight bytes of a number that is watched for; the number itself tells whether they are found.
  ///
  /// - Parameter bits: the bytes as an integer.
  mutating func insert(bytesOfNumber bits: UInt64) {
    let word = bits.byteSwapped
    members.insert(word)
    lengths[place(word)] |= Self.numberMark
    starts.insert(word & 0xffff_ffff)
  }

  /// Whether eight bytes, the first one lowest, are those of a number that is watched for, as an integer or as a real.
  func isNumber(_ word: UInt64) -> Bool {
    let bits = word.byteSwapped
    guard Self.isTelling(word) else { return false }
    if contains(number: bits) { return true }
    let real = Double(bitPattern: bits)
    return real.isFinite && contains(number: Pseudonyms.bits(of: real))
  }

  /// Whether of eight bytes four are not ones that structure is full of.
  private static func isTelling(_ word: UInt64) -> Bool {
    var count = 0
    for shift in stride(from: UInt64(0), to: 64, by: 8) {
      let byte = UInt8(truncatingIfNeeded: word &>> shift)
      if byte > 0x0f, byte != 0xff { count &+= 1 }
    }
    return count >= 4
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

  // MARK: What values are told by

  /// Whether a short value is of so many that they are found in any digits, where finding one tells nothing: postcodes among
  /// the digits of telephone numbers.
  ///
  /// - Parameter hit: what was found.
  func isCommon(_ hit: Hit) -> Bool {
    let length = Int(hit.key >> 56)
    guard (4...7).contains(length), Self.isDigits(hit.key, length) else { return false }
    var possible = 1
    for _ in 0..<length { possible *= 10 }
    return digitCounts[length] > possible / Self.sparseness
  }

  /// How many texts of as many digits there are for each that is watched for, at least.
  private static let sparseness = 1000

  private static func isDigits(_ word: UInt64, _ length: Int) -> Bool {
    (0..<length).allSatisfy { (0x30...0x39).contains(UInt8(truncatingIfNeeded: word &>> UInt64(8 &* $0))) }
  }

  @inline(__always)
  func fingerprint(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    function(bytes, offset..<(offset &+ length), tweak: UInt64(length))
  }

  /// A value of up to seven bytes, and its length in the highest byte.
  @inline(__always)
  static func shortKey(_ word: UInt64, _ length: Int) -> UInt64 {
    word & (1 &<< UInt64(8 &* length) &- 1) | UInt64(length) &<< 56
  }

  /// Where the lengths of values are that begin with eight bytes.
  @inline(__always)
  func place(_ word: UInt64) -> Int {
    Int(truncatingIfNeeded: ((word ^ word >> 31) &* 0xd6e8_feb8_6659_fd93) >> lengthShift)
  }

  /// Up to eight bytes, the first one lowest.
  @inline(__always)
  static func word(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<min(8, length) { word |= UInt64(bytes[offset &+ index]) << UInt64(8 &* index) }
    return word
  }

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
  mutating func takeExemptions(of other: inout WatchedValues) { exempt.take(&other.exempt) }
}
