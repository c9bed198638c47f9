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

  /// The lengths of digits that match too often to be significant, such as postcodes within telephone numbers.
  private var commonLengths = [Bool](repeating: false, count: 8)

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

  /// Exempts numerous short digits.
  mutating func exemptCommonDigits() {
    var possible = 1000
    for length in 4...7 {
      possible *= 10
      if digitCounts[length] > possible / Self.sparseness { commonLengths[length] = true }
    }
  }

  private func contains(short key: UInt64) -> Bool {
    guard shortValues.contains(key), !exempt.contains(key) else { return false }
    let length = Int(key >> 56)
    return !commonLengths[length] || !Self.isDigits(key, length)
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

  /// Exempts every value in the bytes.
  mutating func exemptAll(in bytes: Span<UInt8>, _ range: Range<Int>) {
    var offset = range.lowerBound
    while let hit = firstHit(bytes, from: offset, before: range.upperBound) {
      exempt.insert(hit.key)
      offset = hit.range.lowerBound
    }
  }

  mutating func exempt(_ hit: Hit) { exempt.insert(hit.key) }

  mutating func takeExemptions(of other: inout WatchedValues) { exempt.take(&other.exempt) }
}

extension WatchedValues {
  struct Hit {
    var range: Range<Int>

    var key: UInt64
  }

  /// Returns the first unexempted value: plain, in UTF-16 of any order and alignment, base64 or hexadecimal.
  func firstHit(_ bytes: Span<UInt8>, from start: Int, before limit: Int) -> Hit? {
    var block = ScanBlock()
    return firstHit(bytes, from: start, before: limit, using: &block)
  }

  func firstHit(_ bytes: Span<UInt8>, from start: Int, before limit: Int, using block: inout ScanBlock) -> Hit? {
    let end = min(limit, bytes.count)
    let stop = end &- 3
    guard stop &- start > ScanBlock.worthwhile else {
      var index = start
      while index < stop {
        if let hit = hit(bytes, at: index, before: end) { return hit }
        index &+= 1
      }
      return nil
    }
    var index = start
    while index < stop {
      let next = min(index &+ ScanBlock.length, stop)
      block.sift(bytes, index..<next, before: end, self)
      for place in block.places { if let hit = hit(bytes, at: Int(place), before: end) { return hit } }
      index = next
    }
    return nil
  }

  private func hit(_ bytes: Span<UInt8>, at index: Int, before end: Int) -> Hit? {
    let word = Self.word(bytes, index, end &- index)
    let pair = Int(truncatingIfNeeded: word & 0xffff)
    if starts.mayContain(word & 0xffff_ffff), let hit = plainHit(bytes, at: index, before: end, word) { return hit }
    if units[pair &>> 6] &>> UInt64(pair & 63) & 1 != 0 {
      if wideStarts.mayContain(word), let hit = wideHit(bytes, at: index, before: end, .utf16LittleEndian) {
        return hit
      }
      if wideStarts.mayContain(Self.swappedUnits(word)),
        let hit = wideHit(bytes, at: index, before: end, .utf16BigEndian)
      {
        return hit
      }
    }
    return packedHit(bytes, at: index, before: end) ?? paddedHit(bytes, at: index, before: end)
  }

  /// Finds a value of four or five bytes with base64 padding; without, it would match by chance.
  private func paddedHit(_ bytes: Span<UInt8>, at index: Int, before end: Int) -> Hit? {
    guard index &+ 8 <= end, bytes[index &+ 7] == PackedDigits.padding else { return nil }
    if index > 0, PackedDigits.kinds[Int(bytes[index &- 1])] & PackedDigits.otherMark == 0 { return nil }
    let count = bytes[index &+ 6] == PackedDigits.padding ? 4 : 5
    var text = [UInt8](repeating: 0, count: 32)
    var span = text.mutableSpan
    guard PackedDigits.decode(bytes, from: index, before: index &+ 8, bits: 6, count: 8, into: &span) == count else {
      return nil
    }
    let key = Self.shortKey(Self.word(text.span, 0, count), count)
    return contains(short: key) ? Hit(range: index..<(index &+ 8), key: key) : nil
  }

  /// Swaps the bytes of four units.
  @inline(__always)
  static func swappedUnits(_ word: UInt64) -> UInt64 {
    (word & 0x00ff_00ff_00ff_00ff) << 8 | (word & 0xff00_ff00_ff00_ff00) >> 8
  }

  private func shortHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    for length in 4...7 where offset &+ length <= end {
      let key = Self.shortKey(word, length)
      if members.mayContain(key), contains(short: key) { return Hit(range: offset..<(offset &+ length), key: key) }
    }
    return nil
  }

  private func longHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    var wanted = lengths[place(word)]
    if wanted & Self.numberMark != 0 {
      wanted &= ~Self.numberMark
      if offset &+ 8 <= end, isNumber(word) {
        let key = fingerprint(bytes, offset, 8)
        if !exempt.contains(key) { return Hit(range: offset..<(offset &+ 8), key: key) }
      }
    }
    while wanted != 0 {
      let length = 8 &+ wanted.trailingZeroBitCount
      wanted &= wanted &- 1
      guard offset &+ length <= end else { return nil }
      let key = fingerprint(bytes, offset, length)
      if values.contains(key), !exempt.contains(key) { return Hit(range: offset..<(offset &+ length), key: key) }
    }
    return nil
  }

  private func plainHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    if shortStarts.mayContain(word & 0xffff_ffff), let hit = shortHit(bytes, at: offset, before: end, word) {
      return hit
    }
    if offset &+ 8 <= end, members.mayContain(word) { return longHit(bytes, at: offset, before: end, word) }
    return nil
  }

  @inline(never)
  private func wideHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ encoding: TextEncoding) -> Hit? {
    // The characters and their offsets.
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
    guard let hit = hit(in: text.span, from: 0, before: text.count, shortest: 4) else { return nil }
    return Hit(range: offset..<ends[hit.range.upperBound &- 1], key: hit.key)
  }

  /// Finds a value in base64, from each of three first bytes, or hexadecimal digits.
  private func packedHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int) -> Hit? {
    guard offset &+ 8 <= end else { return nil }
    let table = PackedDigits.kinds
    let kinds = table.span
    var word: UInt64 = 0
    var isHexadecimal = true
    for index in offset..<(offset &+ 8) {
      let digit = kinds[Int(bytes[index])]
      if digit & PackedDigits.otherMark != 0 { return nil }
      if digit & PackedDigits.hexadecimalMark == 0 { isHexadecimal = false }
      word = word << 6 | UInt64(digit & 63)
    }
    for skipped in 0..<3 where starts.mayContain(PackedDigits.start(word, skipping: skipped)) {
      if let hit = packedHit(bytes, at: offset, before: end, bits: 6, skipping: skipped) { return hit }
    }
    return isHexadecimal ? packedHit(bytes, at: offset, before: end, bits: 4, skipping: 0) : nil
  }

  @inline(never)
  private func packedHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, bits: Int, skipping: Int) -> Hit? {
    var text = [UInt8](repeating: 0, count: 32)
    var span = text.mutableSpan
    // Decode enough for the filters first.
    var count = PackedDigits.decode(bytes, from: offset, before: end, bits: bits, count: skipping &+ 8, into: &span)
    let shortest = bits == 6 ? Self.shortestInBase64 : 4
    let rest = count &- skipping
    guard rest >= shortest else { return nil }
    let word = Self.word(text.span, skipping, min(8, rest))
    if rest >= 8, members.mayContain(word) {
      var span = text.mutableSpan
      count = PackedDigits.decode(
        bytes, from: offset, before: end, bits: bits, count: skipping &+ Self.longest, into: &span)
    } else if !shortStarts.mayContain(word & 0xffff_ffff) {
      return nil
    }
    guard let hit = hit(in: text.span, from: skipping, before: count, shortest: shortest) else { return nil }
    let low = offset &+ 8 &* skipping / bits
    let high = offset &+ (8 &* hit.range.upperBound &+ bits &- 1) / bits
    return Hit(range: low..<min(end, high), key: hit.key)
  }

  private func hit(in bytes: Span<UInt8>, from offset: Int, before end: Int, shortest: Int) -> Hit? {
    let rest = end &- offset
    guard rest >= shortest else { return nil }
    let word = Self.word(bytes, offset, min(8, rest))
    if let hit = shortHit(bytes, at: offset, before: end, word), hit.range.count >= shortest { return hit }
    return rest >= 8 ? longHit(bytes, at: offset, before: end, word) : nil
  }
}
