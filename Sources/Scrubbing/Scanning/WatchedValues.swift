/// What must not be found any more: fingerprints of a store's values under a key, in bounded memory, and none of the values.
///
/// A value is watched by its first 24 bytes at most, text in UTF-8. Values of fewer than four characters are not watched,
/// blobs of fewer than eight bytes neither.
struct WatchedValues: Sendable {
  /// The longest beginning of a value that is compared.
  static let longest = 24

  /// How many values are watched at most; what is behind that is counted.
  static let limit = 2_900_000

  private let function: KeyedFunction

  /// The fingerprints of the values.
  private var values = FingerprintSet()

  /// For each beginning of four bytes, which lengths of values have it: a bit for 4 to 7 each, one for longer ones.
  private var starts = [UInt8](repeating: 0, count: 1 << 22)

  /// For each beginning of eight bytes, the lengths from 8 to 24 as bits.
  private var beginnings = FingerprintSet(hasExtra: true)

  /// Values that are also words of the schema, the model or Core Data, and may be found.
  private var exempt = FingerprintSet()

  /// Numbers, by value.
  private var numbers = FingerprintSet()

  /// The values that found no room.
  private(set) var unwatched: Int64 = 0

  init(_ function: KeyedFunction) { self.function = function }

  /// The number of different values that are watched.
  var count: Int { values.count + numbers.count }

  /// The number of values that are exempt.
  var exemptCount: Int { exempt.count }

  /// The bytes that it takes.
  var memory: Int { values.memory + beginnings.memory + exempt.memory + numbers.memory + starts.count }

  // MARK: Values

  /// Watches for a value, given as bytes.
  mutating func insert(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    guard range.count >= 4 else { return }
    let length = min(range.count, Self.longest)
    let fingerprint = fingerprint(bytes, range.lowerBound, length)
    guard values.count < Self.limit || values.contains(fingerprint) else {
      unwatched += 1
      return
    }
    guard values.insert(fingerprint) else { return }
    starts[Self.start(bytes, range.lowerBound)] |= length < 8 ? 1 << UInt8(length - 4) : 16
    if length >= 8 {
      beginnings.insert(Self.beginning(bytes, range.lowerBound), adding: 1 << UInt32(length - 8))
    }
  }

  /// Watches for a number of more than six digits.
  mutating func insert(number bits: UInt64) {
    guard numbers.count < Self.limit / 2 else {
      unwatched += 1
      return
    }
    numbers.insert(function(bits, 0x6e75_6d62))
  }

  /// Whether a number is one of the store's.
  func contains(number bits: UInt64) -> Bool { numbers.contains(function(bits, 0x6e75_6d62)) }

  /// Exempts every value that is found in the bytes.
  mutating func exemptAll(in bytes: Span<UInt8>, _ range: Range<Int>) {
    var offset = range.lowerBound
    while let hit = firstHit(bytes, from: offset, before: range.upperBound) {
      exempt.insert(fingerprint(bytes, hit.lowerBound, hit.count))
      offset = hit.lowerBound
    }
  }

  /// The first value that begins in a range and ends in it, exempt ones left out.
  func firstHit(_ bytes: Span<UInt8>, from start: Int, before end: Int) -> Range<Int>? {
    var offset = start
    let last = min(end, bytes.count) &- 4
    while offset <= last {
      let lengths = starts[Self.start(bytes, offset)]
      if lengths != 0, let length = hit(bytes, at: offset, before: end, lengths) {
        return offset..<(offset &+ length)
      }
      offset &+= 1
    }
    return nil
  }

  @inline(never)
  private func hit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ lengths: UInt8) -> Int? {
    for length in 4...7 where lengths & 1 << UInt8(length &- 4) != 0 && offset &+ length <= end {
      if isWatched(fingerprint(bytes, offset, length)) { return length }
    }
    guard lengths & 16 != 0, offset &+ 8 <= end, let longer = beginnings.number(of: Self.beginning(bytes, offset))
    else {
      return nil
    }
    for length in 8...Self.longest where longer & 1 << UInt32(length &- 8) != 0 && offset &+ length <= end {
      if isWatched(fingerprint(bytes, offset, length)) { return length }
    }
    return nil
  }

  private func isWatched(_ fingerprint: UInt64) -> Bool {
    values.contains(fingerprint) && !exempt.contains(fingerprint)
  }

  @inline(__always)
  private func fingerprint(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    function(bytes, offset..<(offset &+ length), tweak: UInt64(length))
  }

  @inline(__always)
  private static func start(_ bytes: Span<UInt8>, _ offset: Int) -> Int {
    var word = UInt32(bytes[offset]) | UInt32(bytes[offset &+ 1]) << 8
    word |= UInt32(bytes[offset &+ 2]) << 16 | UInt32(bytes[offset &+ 3]) << 24
    return Int((word &* 0x9e37_79b1) >> 10)
  }

  private static func beginning(_ bytes: Span<UInt8>, _ offset: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<8 { word = word << 8 | UInt64(bytes[offset &+ index]) }
    return word
  }
}
