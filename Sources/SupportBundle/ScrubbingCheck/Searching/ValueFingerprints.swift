internal import Foundation

/// The fingerprints of the original's values, in bounded memory: the first 24 bytes of each, and pieces of long ones.
///
/// When full, it keeps half or a quarter: a wrong rule leaks many values.
struct ValueFingerprints: Sendable {
  static let longest = 24

  static let longestWide = 36

  /// The capacity in pieces, at sixteen bytes each.
  static let room = 6_000_000

  /// The least information for a significant match.
  static let leastOfValue = 416

  /// Own fingerprints, and other readers'.
  private var held: FingerprintTable
  private var others: [FingerprintTable] = []

  /// A Bloom filter of first eight bytes, three bits in one word.
  ///
  /// 4 MB, small enough for a lookup per byte.
  private var beginnings: [UInt64]
  private let shift: UInt64

  /// The piece lengths by hash, as bits from 8.
  private var lengths: [UInt32]

  /// The information required of a partial value.
  let bound: Int

  /// The pieces also in kept content.
  private var exempt: Set<UInt64> = []

  /// - Parameters:
  ///   - bytes: the size of original and result.
  ///   - readers: the readers that share the capacity.
  init(bytes: Int64, readers: Int = 1) {
    let bits = max(7, min(19, Int64.bitWidth - (bytes / 64).leadingZeroBitCount))
    beginnings = [UInt64](repeating: 0, count: 1 << bits)
    lengths = [UInt32](repeating: 0, count: 4 << bits)
    shift = UInt64(64 - bits)
    // One per 128 bytes of the original.
    held = FingerprintTable(room: Self.room / readers, expecting: Int(clamping: bytes / 256) / readers)
    bound = Information.bound(places: bytes, pieces: min(bytes / 8, Int64(Self.room)))
  }

  /// The sampling: one in 1, 2, 4… pieces.
  var share: UInt64 { others.reduce(held.sampling) { max($0, $1.sampling) } + 1 }

  mutating func take(_ other: ValueFingerprints) {
    for index in beginnings.indices { beginnings[index] |= other.beginnings[index] }
    for index in lengths.indices { lengths[index] |= other.lengths[index] }
    others.append(other.held)
    others += other.others
  }

  // MARK: Hashes

  /// Reads eight bytes, the first lowest.
  @inline(__always)
  static func word(_ bytes: Span<UInt8>, _ offset: Int) -> UInt64 {
    var word: UInt64 = 0
    for index in 0..<8 { word |= UInt64(bytes[offset &+ index]) << UInt64(8 &* index) }
    return word
  }

  /// Its first bits index ``beginnings``, two more ``lengths``.
  @inline(__always)
  private static func hash(_ word: UInt64) -> UInt64 {
    let product = word &* 0x9e37_79b9_7f4a_7c15
    return product ^ product >> 32
  }

  @inline(__always)
  private static func bits(_ hash: UInt64) -> UInt64 {
    1 << (hash & 63) | 1 << (hash >> 6 & 63) | 1 << (hash >> 12 & 63)
  }

  @inline(__always)
  private func lengths(of word: UInt64) -> UInt32 {
    let hash = Self.hash(word)
    let bits = Self.bits(hash)
    guard beginnings[Int(truncatingIfNeeded: hash >> shift)] & bits == bits else { return 0 }
    return lengths[Int(truncatingIfNeeded: hash >> (shift &- 2))]
  }

  /// Returns a nonzero fingerprint of at least eight bytes.
  @inline(__always)
  static func fingerprint(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) -> UInt64 {
    var hash = UInt64(truncatingIfNeeded: length) &* 0xff51_afd7_ed55_8ccd
    var taken = 0
    while taken < length {
      let word = word(bytes, offset &+ min(taken, length &- 8))
      hash = (hash ^ word) &* 0x9fb2_1c65_1e98_df25
      hash ^= hash >> 32
      taken &+= 8
    }
    hash = hash &* 0xc4ce_b9fe_1a85_ec53
    hash ^= hash >> 29
    return hash == 0 ? 1 : hash
  }

  // MARK: Set

  private func contains(_ key: UInt64) -> Bool { held.contains(key) || others.contains { $0.contains(key) } }

  private mutating func hold(_ bytes: Span<UInt8>, _ offset: Int, _ length: Int) {
    guard held.insert(Self.fingerprint(bytes, offset, length)) else { return }
    let hash = Self.hash(Self.word(bytes, offset))
    beginnings[Int(truncatingIfNeeded: hash >> shift)] |= Self.bits(hash)
    lengths[Int(truncatingIfNeeded: hash >> (shift - 2))] |= 1 << UInt32(length - 8)
  }

  // MARK: Values

  static func bits(ofText bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
    var bits = 0
    for index in range {
      let byte = bytes[index]
      if byte < 0x80 {
        bits &+= Int(Information.text[Int(byte)])
      } else if byte >= 0xc3, byte < 0xee || byte == 0xf0, byte != 0xcc {
        let next = index &+ 1 < range.upperBound ? bytes[index &+ 1] : 0
        // Marks, spaces and punctuation stay.
        if byte == 0xe2 && next <= 0x83 || byte == 0xe3 && next == 0x80 { continue }
        bits &+= Information.character
      }
    }
    return bits
  }

  mutating func insert(text: String) {
    let bytes = Array(text.utf8)
    insert(text: bytes.span, bytes.indices)
  }

  /// Adds UTF-8 text, and UTF-16 if not ASCII.
  mutating func insert(text bytes: Span<UInt8>, _ range: Range<Int>) {
    if range.count >= 8 {
      let length = min(range.count, Self.longest)
      let first = range.lowerBound..<(range.lowerBound + length)
      let bits = Self.bits(ofText: bytes, first)
      if bits >= (length == range.count ? Self.leastOfValue : bound) { hold(bytes, first.lowerBound, length) }
      insertPieces(bytes, range, isText: true)
    }
    guard range.count >= 4, range.count <= 4096, range.contains(where: { bytes[$0] >= 0x80 }) else { return }
    insertWide(String(decoding: range.map { bytes[$0] }, as: UTF8.self))
  }

  /// Adds UTF-16 in both orders.
  private mutating func insertWide(_ text: String) {
    let units = Array(text.utf16)
    let length = min(2 * units.count, Self.longestWide)
    guard length >= 8 else { return }
    let beginning = String(decoding: units.prefix(length / 2), as: UTF16.self)
    let bits = Information.ofText(beginning, onceEach: false).bits
    guard bits >= (length == 2 * units.count ? Self.leastOfValue : bound) else { return }
    var little: [UInt8] = []
    var big: [UInt8] = []
    for unit in units.prefix(length / 2) {
      little += [UInt8(truncatingIfNeeded: unit), UInt8(unit >> 8)]
      big += [UInt8(unit >> 8), UInt8(truncatingIfNeeded: unit)]
    }
    hold(little.span, 0, length)
    hold(big.span, 0, length)
  }

  mutating func insert(blob bytes: Span<UInt8>, _ range: Range<Int>) {
    var start = range.lowerBound + PageComparison.signature(bytes, range)
    while start < range.upperBound, bytes[start] == 0 { start += 1 }
    guard range.upperBound - start >= 8 else { return }
    let length = min(range.upperBound - start, Self.longest)
    if Self.isTelling(bytes, start..<(start + length)) { hold(bytes, start, length) }
    insertPieces(bytes, start..<range.upperBound, isText: false)
  }

  /// Adds pieces of a long value at multiples of 64 bytes.
  mutating func insertPieces(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool, every distance: Int = 256) {
    var next = range.lowerBound + distance
    while next + Self.longest <= range.upperBound {
      let piece = next..<(next + Self.longest)
      if isText ? Self.bits(ofText: bytes, piece) >= bound : Self.isTelling(bytes, piece) {
        hold(bytes, next, Self.longest)
      }
      next += distance
    }
  }

  /// Whether bytes are uncommon in structure.
  private static func isTelling(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var seen: Set<UInt8> = []
    for index in range where bytes[index] > 0x0f && bytes[index] != 0xff { seen.insert(bytes[index]) }
    return seen.count >= min(8, range.count - 3)
  }

  /// Removes pieces that kept bytes contain.
  mutating func remove(allIn bytes: Span<UInt8>) {
    guard bytes.count >= 8 else { return }
    for offset in 0...(bytes.count - 8) {
      let word = Self.word(bytes, offset)
      var wanted = lengths(of: word)
      while wanted != 0 {
        let length = 8 + wanted.trailingZeroBitCount
        wanted &= wanted &- 1
        guard offset + length <= bytes.count else { break }
        let key = Self.fingerprint(bytes, offset, length)
        if contains(key) { exempt.insert(key) }
      }
    }
  }

  /// Returns the length of a piece at an offset.
  @inline(__always)
  func match(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Int? {
    let wanted = lengths(of: word)
    return wanted == 0 ? nil : match(bytes, at: offset, before: end, lengths: wanted)
  }

  @inline(never)
  private func match(_ bytes: Span<UInt8>, at offset: Int, before end: Int, lengths: UInt32) -> Int? {
    var wanted = lengths
    while wanted != 0 {
      let length = 8 &+ wanted.trailingZeroBitCount
      wanted &= wanted &- 1
      guard offset &+ length <= end else { return nil }
      let key = Self.fingerprint(bytes, offset, length)
      if contains(key), !exempt.contains(key) { return length }
    }
    return nil
  }
}

/// A bounded hash table of fingerprints.
///
/// When full, it keeps only those that end in a zero bit.
struct FingerprintTable: Sendable {
  private var table: [UInt64]
  private var count = 0

  /// The bits that are zero in all members.
  private(set) var sampling: UInt64 = 0

  private let room: Int

  /// A third more than the capacity, rounded up to a power of two.
  private let mostPlaces: Int

  /// - Parameter expected: the expected count, to avoid growth, which needs both tables.
  init(room: Int, expecting expected: Int = 0) {
    self.room = room
    mostPlaces = max(1 << 12, 1 << (Int.bitWidth - (room * 4 / 3 - 1).leadingZeroBitCount))
    let places = 1 << (Int.bitWidth - max(0, expected - 1).leadingZeroBitCount)
    table = [UInt64](repeating: 0, count: max(1 << 12, min(mostPlaces, places)))
  }

  @inline(__always)
  private func slot(_ key: UInt64) -> Int {
    let mask = table.count &- 1
    var index = Int(truncatingIfNeeded: key >> 20) & mask
    while table[index] != 0, table[index] != key { index = (index &+ 1) & mask }
    return index
  }

  func contains(_ key: UInt64) -> Bool { key & sampling == 0 && table[slot(key)] == key }

  /// Inserts a nonzero fingerprint; false if full.
  mutating func insert(_ key: UInt64) -> Bool {
    guard key & sampling == 0 else { return false }
    let place = slot(key)
    guard table[place] == 0 else { return true }
    if count >= room {
      sampling = sampling << 1 | 1
      thin()
      return insert(key)
    }
    table[place] = key
    count += 1
    if count * 10 >= table.count * 7, table.count < mostPlaces { rebuild(table.count * 2) }
    return true
  }

  /// Removes unsampled members in place, moving later ones to their first free slot.
  private mutating func thin() {
    guard let gap = table.firstIndex(of: 0) else { return }
    count = 0
    for step in 1..<table.count {
      let index = (gap &+ step) & (table.count &- 1)
      let key = table[index]
      guard key != 0 else { continue }
      table[index] = 0
      guard key & sampling == 0 else { continue }
      table[slot(key)] = key
      count += 1
    }
  }

  private mutating func rebuild(_ size: Int) {
    let old = table
    table = [UInt64](repeating: 0, count: size)
    for key in old where key != 0 { table[slot(key)] = key }
  }
}

/// The information of bytes equal in original and result, in sixteenths of a bit.
enum Information {
  /// For text: one of 26 letters or ten digits; other characters stay.
  static let text: [UInt16] = (0..<256).map { byte in
    switch byte {
    case 0x30...0x39: 53
    case 0x41...0x5a, 0x61...0x7a: 75
    default: 0
    }
  }

  /// For identifiers: one of ten digits, or of six letters.
  static let identifier: [UInt16] = (0..<256).map { byte in
    switch byte {
    case 0x30...0x39: 53
    case 0x41...0x46, 0x61...0x66: 41
    default: 0
    }
  }

  /// For blobs: one of 255.
  static let blob: [UInt16] = (0..<256).map { $0 == 0 ? 0 : 127 }

  /// A non-ASCII character, one of the smallest alphabets.
  static let character = 44

  /// The minimum of a whole value: three letters or four digits.
  static let leastOfValue = 208

  /// Returns the information that chance exceeds less than once in a million.
  ///
  /// - Parameters:
  ///   - places: the compared places.
  ///   - pieces: the pieces sought at each.
  static func bound(places: Int64, pieces: Int64 = 1) -> Int {
    Int((16 * (log2(Double(max(1, places))) + log2(Double(max(1, pieces))) + 20)).rounded(.up))
  }

  /// Whether a character stays: marks, spaces, punctuation, joiners.
  static func stays(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0..<0x80, 0x80...0xbf, 0xd7, 0xf7, 0x300...0x36f, 0x2000...0x206f, 0x20d0...0x20ff, 0x3000...0x3040,
      0xe000...0xf8ff, 0xfe00...0xfe0f, 0xfeff, 0xfff0...0x1_2fff, 0x1f3fb...0x1f3ff, 0xe0000...0x10ffff:
      true
    default: false
    }
  }

  /// Returns the information and length of a text; words count once.
  ///
  /// - Parameter isName: whether a word is a schema name, which stays.
  static func ofText(
    _ text: String, onceEach: Bool, isName: (String) -> Bool = { _ in false }
  ) -> (bits: Int, characters: Int) {
    var bits = 0
    var seen: Set<String> = []
    for word in text.split(whereSeparator: { !($0.isLetter || $0.isNumber || $0 == "_") }).map(String.init) {
      if onceEach, !seen.insert(word).inserted { continue }
      if isName(word) { continue }
      for scalar in word.unicodeScalars {
        if scalar.value < 0x80 {
          bits += Int(Self.text[Int(scalar.value)])
        } else if !stays(scalar.value) {
          bits += character
        }
      }
    }
    return (bits, text.unicodeScalars.count { $0.value != 0 })
  }
}
