internal import SQLiteFormat

/// Makes the pseudonyms of a store's values: first takes note of all of them, then replaces them in place.
///
/// Not for use from several threads at once.
final class Pseudonyms {
  /// What became of a value.
  enum Outcome {
    /// It was replaced.
    case replaced

    /// It is a date and was shifted.
    case shifted

    /// It stays by a rule: small numbers, keys, references to files.
    case kept

    /// It was overwritten with filling.
    case dropped

    /// There is nothing in it: NULL, constants, empty text.
    case nothing
  }

  /// Text up to this many characters is replaced as a whole; longer text word by word, so that its pieces on different
  /// pages can still be told to belong together.
  static let longestWhole = 64

  let encoding: TextEncoding
  let function: KeyedFunction
  var watched: WatchedValues
  var orderedTexts: OrderedTexts
  var orderedNumbers = OrderedNumbers()
  var dates = DateShift()

  /// What is kept and may be found, as far as there is room for it.
  private(set) var keptBytes: [UInt8] = []
  private static let keptLimit = 4 << 20

  /// How often a pseudonym had to be changed because an original value was in it.
  private(set) var changedCount: Int64 = 0

  private var source: [UInt8] = []
  private var canonical: [UInt8] = []

  init(key: ScrubbingKey, attempt: Int, encoding: TextEncoding) {
    self.encoding = encoding
    function = key.function(for: "values", attempt: attempt)
    watched = WatchedValues(key.function(for: "watch", attempt: 0))
    orderedTexts = OrderedTexts(encoding: encoding)
  }

  /// The bytes that the fingerprints and orders take.
  var memory: Int { watched.memory + orderedTexts.memory + orderedNumbers.memory }

  // MARK: Taking note

  /// Takes note of a value.
  func note(_ code: Int64, _ bytes: Span<UInt8>, _ range: Range<Int>, _ rule: FieldRule) {
    switch code {
    case 0: return
    case 8, 9:
      if rule.kind == .date { dates.note(Double(code - 8), limit: nil) }
    case 1...6:
      guard rule.kind != .keep, rule.kind != .key,
        let number = bytes.signedInteger(at: range.lowerBound, length: range.count)
      else { return }
      if rule.kind == .date {
        let bits = UInt64(8 * range.count - 1)
        dates.note(Double(number), limit: Double(sign: .plus, exponent: Int(bits), significand: 1))
        return
      }
      guard NumberRegion.isLong(number) else { return }
      if rule.isOrdered { orderedNumbers.insert(number) }
      watched.insert(number: UInt64(bitPattern: number))
      let text = Array(String(number).utf8)
      watched.insert(text.span, 0..<text.count)
      if range.count >= 6, Self.isTellingNoise(bytes, range) { watched.insert(bytes, range) }
    case 7:
      guard let bits = bytes.signedInteger(at: range.lowerBound, length: 8), rule.kind != .keep else { return }
      let number = Double(bitPattern: UInt64(bitPattern: bits))
      if rule.kind == .date {
        dates.note(number, limit: nil)
      } else if number.isFinite, number != 0 {
        if rule.isOrdered { orderedNumbers.insert(real: number) }
        if Self.isTellingNoise(bytes, range) { watched.insert(bytes, range) }
      }
    default:
      guard code >= 12, !range.isEmpty else { return }
      noteBytes(isText: code & 1 == 1, bytes, range, rule)
    }
  }

  private func noteBytes(isText: Bool, _ bytes: Span<UInt8>, _ range: Range<Int>, _ rule: FieldRule) {
    if rule.kind == .keep {
      keep(bytes, range)
      return
    }
    if rule.kind == .metadata {
      keep(bytes, range)
      return
    }
    if isText {
      if rule.isOrdered {
        orderedTexts.insert(bytes, range, isBlob: false, seed: seed(bytes, range, isText: true))
      }
      watch(text: bytes, range)
    } else {
      if rule.isOrdered {
        orderedTexts.insert(bytes, range, isBlob: true, seed: seed(bytes, range, isText: false))
      }
      let kept = BlobForm.keptPrefix(bytes, range)
      if kept == range.count { keep(bytes, range) }
      guard range.count >= 8, kept < min(range.count, WatchedValues.longest) else { return }
      let end = min(range.upperBound, range.lowerBound + WatchedValues.longest)
      if Self.isTellingNoise(bytes, (range.lowerBound + kept)..<end) { watched.insert(bytes, range) }
    }
  }

  /// Whether bytes are not ones that structure is full of: zeros and ones, and little else.
  private static func isTellingNoise(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var count = 0
    for index in range where bytes[index] > 0x0f && bytes[index] != 0xff { count += 1 }
    return count >= 4
  }

  /// Watches for text of four characters and more of which something can change.
  func watch(text bytes: Span<UInt8>, _ range: Range<Int>) {
    if encoding == .utf8 {
      if Self.isTelling(bytes, range) { watched.insert(bytes, range) }
      return
    }
    canonical.removeAll(keepingCapacity: true)
    TextCoding.appendUTF8(bytes, range, encoding, to: &canonical)
    let text = canonical
    if Self.isTelling(text.span, 0..<text.count) { watched.insert(text.span, 0..<text.count) }
  }

  /// Whether UTF-8 text has four characters, and one among its first bytes that is ever replaced.
  private static func isTelling(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count >= 4 else { return false }
    var characters = 0
    var isChangeable = false
    var index = range.lowerBound
    let end = min(range.upperBound, range.lowerBound + WatchedValues.longest)
    while index < end {
      let character = TextCoding.read(bytes, at: index, before: range.upperBound, .utf8)
      guard let scalar = character.scalar else { return false }
      characters += 1
      // A character of which only a part is compared does not count.
      if index + character.length <= end, !isChangeable {
        isChangeable = scalar < 0x80 ? isAlphanumeric(UInt8(scalar)) : CharacterBlock.block(of: scalar) != nil
      }
      index += character.length
    }
    return characters >= 4 && isChangeable
  }

  /// Takes note of bytes that stay, so that finding them again is no fault.
  func keep(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    guard keptBytes.count + range.count < Self.keptLimit else { return }
    if encoding == .utf8 {
      for index in range { keptBytes.append(bytes[index]) }
    } else {
      TextCoding.appendUTF8(bytes, range, encoding, to: &keptBytes)
      for index in range { keptBytes.append(bytes[index]) }
    }
    keptBytes.append(0)
  }

  /// Ends the taking of notes: pseudonyms with an order are made, and the shift of dates is chosen.
  func finishNotes() {
    let kept = keptBytes
    keptBytes = []
    watched.exemptAll(in: kept.span, 0..<kept.count)
    dates.choose(function)
    orderedNumbers.assign(function)
    orderedTexts.assign(function) { value, from, isBlob, seed in
      guard from < value.count else { return }
      if isBlob {
        replaceBlob(&value, 0..<value.count, from: from, seed: seed)
      } else {
        replaceText(&value, 0..<value.count, from: from, seed: seed)
      }
    }
    // Where the order leaves no other choice a pseudonym may contain a value.
    orderedTexts.visit { bytes, range in
      if encoding == .utf8 {
        watched.exemptAll(in: bytes, range)
      } else {
        var text: [UInt8] = []
        TextCoding.appendUTF8(bytes, range, encoding, to: &text)
        watched.exemptAll(in: text.span, 0..<text.count)
      }
    }
  }

  // MARK: Replacing

  /// Replaces a value in place.
  func replace(_ code: Int64, _ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    switch code {
    case 1...6: return replaceInteger(&bytes, range, rule)
    case 7: return replaceReal(&bytes, range, rule)
    case 12...:
      guard !range.isEmpty else { return .nothing }
      switch rule.kind {
      case .keep: return .kept
      case .metadata:
        MetadataScrub.replace(&bytes, range, self)
        return .replaced
      case .drop where !rule.isOrdered:
        Self.drop(&bytes, range, isText: code & 1 == 1, encoding)
        return .dropped
      default: break
      }
      if code & 1 == 1 {
        replaceWholeText(&bytes, range)
      } else {
        if BlobForm.isReference(bytes.span, range) { return .kept }
        replaceWholeBlob(&bytes, range)
      }
      return .replaced
    default: return .nothing
    }
  }

  private func replaceInteger(_ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    guard rule.kind != .keep, rule.kind != .key,
      let number = bytes.span.signedInteger(at: range.lowerBound, length: range.count)
    else { return .kept }
    if rule.kind == .date {
      let shifted = dates(number)
      // A date that no row's index had was not asked whether it fits.
      guard shifted != number, NumberRegion.width(shifted) <= range.count else { return .kept }
      Self.write(shifted, &bytes, range)
      return .shifted
    }
    guard NumberRegion.isLong(number) else { return .kept }
    if rule.kind == .drop, !rule.isOrdered {
      Self.write(NumberRegion.region(of: number).lowerBound, &bytes, range)
      return .dropped
    }
    if rule.isOrdered, let pseudonym = orderedNumbers.pseudonym(number) {
      Self.write(pseudonym, &bytes, range)
      return .replaced
    }
    let region = NumberRegion.region(of: number)
    let width = UInt64(bitPattern: region.upperBound &- region.lowerBound)
    var stream = KeyStream(function, seed: UInt64(bitPattern: number) ^ 0x696e_7465)
    var pseudonym = number
    for _ in 0..<32 {
      pseudonym = region.lowerBound &+ Int64(bitPattern: stream.below64(width))
      if !watched.contains(number: UInt64(bitPattern: pseudonym)) { break }
    }
    Self.write(pseudonym, &bytes, range)
    return .replaced
  }

  private func replaceReal(_ bytes: inout [UInt8], _ range: Range<Int>, _ rule: FieldRule) -> Outcome {
    guard rule.kind != .keep, let stored = bytes.span.signedInteger(at: range.lowerBound, length: range.count),
      range.count == 8
    else { return .kept }
    let number = Double(bitPattern: UInt64(bitPattern: stored))
    guard number.isFinite, number != 0 else { return .kept }
    if rule.kind == .date {
      let shifted = dates(number)
      Self.write(Int64(bitPattern: shifted.bitPattern), &bytes, range)
      return shifted == number ? .kept : .shifted
    }
    if rule.kind == .drop, !rule.isOrdered {
      Self.write(Int64(bitPattern: number.binade.bitPattern), &bytes, range)
      return .dropped
    }
    if rule.isOrdered, let pseudonym = orderedNumbers.pseudonym(real: number, function) {
      Self.write(Int64(bitPattern: pseudonym.bitPattern), &bytes, range)
      return .replaced
    }
    var stream = KeyStream(function, seed: number.bitPattern ^ 0x7265_616c)
    let pseudonym = number.bitPattern & ~(1 << 52 - 1) | stream.next64() & (1 << 52 - 1)
    Self.write(Int64(bitPattern: pseudonym), &bytes, range)
    return .replaced
  }

  private static func write(_ number: Int64, _ bytes: inout [UInt8], _ range: Range<Int>) {
    var rest = number
    for index in range.reversed() {
      bytes[index] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
    }
  }

  private func seed(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool) -> UInt64 {
    function(bytes, range, tweak: isText ? 0x74_6578 : 0x62_6c6f)
  }

  private func replaceWholeText(_ bytes: inout [UInt8], _ range: Range<Int>) {
    let seed = seed(bytes.span, range, isText: true)
    if let ordered = orderedTexts.pseudonym(seed: seed) {
      if range.count > ordered.count { replaceText(&bytes, range, from: ordered.count, seed: seed) }
      for (index, byte) in ordered.enumerated() { bytes[range.lowerBound + index] = byte }
      return
    }
    replaceText(&bytes, range, from: 0, seed: seed)
  }

  private func replaceWholeBlob(_ bytes: inout [UInt8], _ range: Range<Int>) {
    let seed = seed(bytes.span, range, isText: false)
    if let ordered = orderedTexts.pseudonym(seed: seed) {
      if range.count > ordered.count { replaceBlob(&bytes, range, from: ordered.count, seed: seed) }
      for (index, byte) in ordered.enumerated() { bytes[range.lowerBound + index] = byte }
      return
    }
    replaceBlob(&bytes, range, from: BlobForm.keptPrefix(bytes.span, range), seed: seed)
  }

  // MARK: Text

  /// Replaces text from an offset on.
  private func replaceText(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    let start = range.lowerBound + from
    let unit = encoding == .utf8 ? 1 : 2
    if unit == 1, from == 0, BlobForm.isIdentifierText(bytes.span, range) {
      replaceIdentifierText(&bytes, range, seed: seed)
      return
    }
    if range.count <= Self.longestWhole * unit {
      var stream = KeyStream(function, seed: seed)
      replaceCharacters(&bytes, start..<range.upperBound, &stream)
    } else {
      replaceWords(&bytes, start..<range.upperBound)
    }
    changeHits(&bytes, range, from: start)
  }

  /// Replaces text of which neither beginning nor end may be known, word by word.
  func replacePiece(_ bytes: inout [UInt8], _ range: Range<Int>) {
    replaceWords(&bytes, range)
    changeHits(&bytes, range, from: range.lowerBound)
  }

  @inline(__always)
  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    byte >= 0x61 && byte <= 0x7a || byte >= 0x41 && byte <= 0x5a || byte >= 0x30 && byte <= 0x39
  }

  private func replaceCharacters(_ bytes: inout [UInt8], _ range: Range<Int>, _ stream: inout KeyStream) {
    var index = range.lowerBound
    let end = range.upperBound
    let isNarrow = encoding == .utf8
    while index < end {
      let byte = bytes[index]
      if isNarrow, byte < 0x80 {
        if byte >= 0x61, byte <= 0x7a {
          bytes[index] = 0x61 &+ UInt8(truncatingIfNeeded: (stream.next16() &* 26) >> 16)
        } else if byte >= 0x41, byte <= 0x5a {
          bytes[index] = 0x41 &+ UInt8(truncatingIfNeeded: (stream.next16() &* 26) >> 16)
        } else if byte >= 0x30, byte <= 0x39 {
          bytes[index] = 0x30 &+ UInt8(truncatingIfNeeded: (stream.next16() &* 10) >> 16)
        }
        index &+= 1
        continue
      }
      let character = TextCoding.read(bytes.span, at: index, before: end, encoding)
      if let scalar = character.scalar {
        if let block = Self.block(of: scalar) {
          let other = block.lowerBound + UInt32(stream.below(Int(block.upperBound - block.lowerBound) + 1))
          TextCoding.write(other, length: character.length, into: &bytes, at: index, encoding)
        }
      } else if isNarrow, byte < 0xc0, index == range.lowerBound || bytes[index - 1] < 0xc0 {
        // A byte that continues nothing: any other continues nothing either.
        bytes[index] = 0x80 | UInt8(stream.below(64))
      }
      index &+= character.length
    }
  }

  private static func block(of scalar: UInt32) -> ClosedRange<UInt32>? {
    switch scalar {
    case 0x30...0x39: 0x30...0x39
    case 0x41...0x5a: 0x41...0x5a
    case 0x61...0x7a: 0x61...0x7a
    case 0..<0x80: nil
    default: CharacterBlock.block(of: scalar)
    }
  }

  private func replaceWords(_ bytes: inout [UInt8], _ range: Range<Int>) {
    var index = range.lowerBound
    let end = range.upperBound
    let isNarrow = encoding == .utf8
    func isWord(_ bytes: Span<UInt8>, _ place: Int) -> Bool {
      if isNarrow { return bytes[place] >= 0x80 || Self.isAlphanumeric(bytes[place]) }
      guard place &+ 1 < end else { return false }
      let isLittle = encoding == .utf16LittleEndian
      let (low, high) = isLittle ? (bytes[place], bytes[place &+ 1]) : (bytes[place &+ 1], bytes[place])
      return high != 0 || low >= 0x80 || Self.isAlphanumeric(low)
    }
    func isDigit(_ bytes: Span<UInt8>, _ place: Int) -> Bool {
      let byte = encoding == .utf16BigEndian && place &+ 1 < end ? bytes[place &+ 1] : bytes[place]
      return byte >= 0x30 && byte <= 0x39
    }
    let unit = isNarrow ? 1 : 2
    while index < end {
      guard isWord(bytes.span, index) else {
        index &+= unit
        continue
      }
      // Numbers within words are words of their own, so that what is common in a text stays so.
      let isNumber = isDigit(bytes.span, index)
      var next = index &+ unit
      while next < end, isWord(bytes.span, next), isDigit(bytes.span, next) == isNumber { next &+= unit }
      next = min(next, end)
      var stream = KeyStream(function, seed: function(bytes.span, index..<next, tweak: 0x77_6f72))
      replaceCharacters(&bytes, index..<next, &stream)
      index = next
    }
  }

  private func replaceIdentifierText(_ bytes: inout [UInt8], _ range: Range<Int>, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    for index in 0..<36 where index != 14 {
      let place = range.lowerBound + index
      let byte = bytes[place]
      if index == 19 {
        // The variant's digit is one of 8, 9, a and b.
        if byte == 0x38 || byte == 0x39 { bytes[place] = 0x38 + UInt8(stream.below(2)) }
      } else if byte >= 0x30, byte <= 0x39 {
        bytes[place] = 0x30 + UInt8(stream.below(10))
      } else if byte != 0x2d {
        bytes[place] = byte & 0x60 | UInt8(1 + stream.below(6))
      }
    }
  }

  /// Changes characters where a pseudonym happens to contain an original value, the same ones each time.
  private func changeHits(_ bytes: inout [UInt8], _ range: Range<Int>, from start: Int) {
    guard encoding == .utf8 else {
      changeWideHits(&bytes, range, from: start)
      return
    }
    var offset = range.lowerBound
    var rounds = 0
    while rounds < 256, let hit = watched.firstHit(bytes.span, from: offset, before: range.upperBound) {
      rounds += 1
      offset = hit.lowerBound
      if !change(&bytes, max(hit.lowerBound, start)..<max(start, hit.upperBound), in: range, round: rounds) {
        offset = hit.lowerBound + 1
      }
    }
    if rounds > 0 { changedCount += 1 }
    // Where every pseudonym of that form is a value of the store, this one may stay.
    if rounds == 256 { watched.exemptAll(in: bytes.span, range) }
  }

  private func changeWideHits(_ bytes: inout [UInt8], _ range: Range<Int>, from start: Int) {
    for round in 0..<256 {
      var text: [UInt8] = []
      TextCoding.appendUTF8(bytes.span, range, encoding, to: &text)
      guard let hit = watched.firstHit(text.span, from: 0, before: text.count) else { return }
      if round == 0 { changedCount += 1 }
      // The characters of the hit, by their places in both encodings.
      var place = 0
      var index = range.lowerBound
      var candidates: [Candidate] = []
      while index < range.upperBound, place < hit.upperBound {
        let character = TextCoding.read(bytes.span, at: index, before: range.upperBound, encoding)
        if let scalar = character.scalar, place >= hit.lowerBound, index >= start, let block = Self.block(of: scalar),
          block.upperBound > block.lowerBound
        {
          candidates.append(Candidate(offset: index, scalar: scalar, length: character.length, block: block))
        }
        let scalar = character.scalar ?? 0x20
        place += scalar < 0x80 ? 1 : scalar < 0x800 ? 2 : scalar < 0x10000 ? 3 : 4
        index += character.length
      }
      guard !candidates.isEmpty else {
        watched.exemptAll(in: text.span, hit)
        continue
      }
      change(&bytes, candidates[round % candidates.count], round: round, encoding)
    }
  }

  /// A character that may be replaced by another of its block.
  private struct Candidate {
    var offset: Int
    var scalar: UInt32
    var length: Int
    var block: ClosedRange<UInt32>
  }

  private func change(_ bytes: inout [UInt8], _ chosen: Candidate, round: Int, _ encoding: TextEncoding) {
    let size = chosen.block.upperBound - chosen.block.lowerBound + 1
    let step = 1 + UInt32(truncatingIfNeeded: function(UInt64(round), UInt64(chosen.scalar))) % (size - 1)
    let other = chosen.block.lowerBound + (chosen.scalar - chosen.block.lowerBound + step) % size
    TextCoding.write(other, length: chosen.length, into: &bytes, at: chosen.offset, encoding)
  }

  /// Replaces one character of a range by the next of its block; false where none can be.
  private func change(_ bytes: inout [UInt8], _ hit: Range<Int>, in range: Range<Int>, round: Int) -> Bool {
    // Characters of several bytes may begin before the hit.
    var index = hit.lowerBound
    while index > range.lowerBound, bytes[index] & 0xc0 == 0x80 { index -= 1 }
    var candidates: [Candidate] = []
    while index < hit.upperBound {
      let character = TextCoding.read(bytes.span, at: index, before: range.upperBound, .utf8)
      if let scalar = character.scalar, index >= hit.lowerBound, let block = Self.block(of: scalar),
        block.upperBound > block.lowerBound
      {
        candidates.append(Candidate(offset: index, scalar: scalar, length: character.length, block: block))
      }
      index += character.length
    }
    guard !candidates.isEmpty else { return false }
    change(&bytes, candidates[round % candidates.count], round: round, .utf8)
    return true
  }

  // MARK: Blobs

  /// Replaces the bytes of a blob from an offset on; zeros in a row stay.
  private func replaceBlob(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    let isIdentifier = BlobForm.isIdentifier(bytes.span, range)
    let (version, variant) =
      isIdentifier ? (bytes[range.lowerBound + 6] & 0xf0, bytes[range.lowerBound + 8] & 0xc0) : (0, 0)
    replaceNoise(&bytes, (range.lowerBound + from)..<range.upperBound, &stream)
    if isIdentifier {
      if from <= 6 { bytes[range.lowerBound + 6] = version | bytes[range.lowerBound + 6] & 0x0f }
      if from <= 8 { bytes[range.lowerBound + 8] = variant | bytes[range.lowerBound + 8] & 0x3f }
    }
    var offset = range.lowerBound
    var rounds = 0
    while rounds < 4096, let hit = watched.firstHit(bytes.span, from: offset, before: range.upperBound) {
      rounds += 1
      let place = hit.lowerBound + rounds % hit.count
      if place >= range.lowerBound + from, bytes[place] != 0, !isIdentifier || place < range.lowerBound + 6 {
        bytes[place] = bytes[place] == 255 ? 1 : bytes[place] + 1
      }
      offset = rounds % 64 == 63 ? hit.lowerBound + 1 : hit.lowerBound
    }
    if rounds > 0 { changedCount += 1 }
  }

  /// Replaces bytes by noise: eight zeros in a row and more stay, nothing else becomes zero.
  func replaceNoise(_ bytes: inout [UInt8], _ range: Range<Int>, _ stream: inout KeyStream) {
    var index = range.lowerBound
    let end = range.upperBound
    while index < end {
      if bytes[index] == 0 {
        var next = index
        while next < end, bytes[next] == 0 { next &+= 1 }
        if next &- index >= 8 || next == end || index == range.lowerBound {
          index = next
          continue
        }
        while index < next {
          bytes[index] = UInt8(truncatingIfNeeded: 1 &+ ((stream.next16() &* 255) >> 16))
          index &+= 1
        }
        continue
      }
      bytes[index] = UInt8(truncatingIfNeeded: 1 &+ ((stream.next16() &* 255) >> 16))
      index &+= 1
    }
  }

  private static func drop(_ bytes: inout [UInt8], _ range: Range<Int>, isText: Bool, _ encoding: TextEncoding) {
    for index in range where bytes[index] != 0 {
      guard isText else {
        bytes[index] = 0xdd
        continue
      }
      switch bytes[index] {
      case 0x30...0x39: bytes[index] = 0x30
      case 0x41...0x5a: bytes[index] = 0x58
      case 0x61...0x7a, 0x80...0xff: bytes[index] = 0x78
      default: break
      }
    }
  }

  /// Lets the values in a range be found, because they are there by chance.
  func exempt(_ bytes: Span<UInt8>, _ range: Range<Int>) { watched.exemptAll(in: bytes, range) }

  /// Whether bytes on a page contain an original value.
  func firstHit(_ bytes: Span<UInt8>, from start: Int, before end: Int) -> Range<Int>? {
    watched.firstHit(bytes, from: start, before: end)
  }
}
