import SQLiteFormat

extension Pseudonyms {
  /// Takes note of a value.
  func note(_ code: Int64, _ bytes: Span<UInt8>, _ range: Range<Int>, _ rule: FieldRule) {
    switch code {
    case 0: return
    case 8, 9:
      if rule.kind == .date { dates.note(Double(code - 8), limit: nil) }
      domains.note(short: code - 8, rule.domain, isCopy: rule.isCopy)
    case 1...6:
      guard rule.kind != .keep, rule.kind != .own,
        let number = bytes.signedInteger(at: range.lowerBound, length: range.count)
      else { return }
      guard NumberRegion.isLong(number) || rule.kind == .date else {
        if rule.kind != .word { domains.note(short: number, rule.domain, isCopy: rule.isCopy) }
        return
      }
      if rule.kind == .key {
        domains.note(key: number, rule.domain)
        return
      }
      if rule.kind == .date, !ranksDates {
        let bits = 8 * range.count - 1
        dates.note(Double(number), limit: Double(sign: .plus, exponent: bits, significand: 1))
      }
      guard NumberRegion.isLong(number) else {
        domains.note(short: number, rule.domain, isCopy: rule.isCopy)
        return
      }
      if rule.isOrdered || rule.kind == .date && (ranksDates || DateShift.isStuck(Double(number))) {
        orderedNumbers.insert(number)
      }
      guard watched.insert(number: UInt64(bitPattern: number)) else { return }
      watch(digits: "\(number.magnitude)")
      guard range.count >= 6, Self.isTelling(bytes, range) else { return }
      if range.count == 8 {
        watched.insert(bytesOfNumber: UInt64(bitPattern: number))
      } else {
        watched.insert(bytes, range, isText: false)
      }
    case 7:
      guard let stored = bytes.signedInteger(at: range.lowerBound, length: 8), rule.kind != .keep, rule.kind != .own
      else { return }
      noteReal(Double(bitPattern: UInt64(bitPattern: stored)), bytes, range, rule)
    default:
      guard code >= 12, !range.isEmpty else { return }
      noteBytes(isText: code & 1 == 1, bytes, range, rule)
    }
  }

  /// Watches for an integer of more than six digits.
  func watch(_ number: Int64) {
    guard watched.insert(number: UInt64(bitPattern: number)) else { return }
    watch(digits: "\(number.magnitude)")
    let width = NumberRegion.width(number)
    guard width >= 6 else { return }
    var bytes: [UInt8] = []
    for shift in stride(from: 8 * (width - 1), through: 0, by: -8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> Int64(shift)))
    }
    guard Self.isTelling(bytes.span, 0..<width) else { return }
    if width == 8 {
      watched.insert(bytesOfNumber: UInt64(bitPattern: number))
    } else {
      watched.insert(bytes.span, 0..<width, isText: false)
    }
  }

  private func noteReal(_ number: Double, _ bytes: Span<UInt8>, _ range: Range<Int>, _ rule: FieldRule) {
    guard number.isFinite, number != 0 else { return }
    let isDate = rule.kind == .date
    if isDate, !ranksDates { dates.note(number, limit: nil) }
    if rule.isOrdered && (!isDate || ranksDates) || isDate && (ranksDates || DateShift.isStuck(number)) {
      orderedNumbers.insert(real: number)
      if let whole = OrderedNumbers.whole(number), !NumberRegion.isLong(whole) {
        domains.note(short: whole, rule.domain, isCopy: true)
      }
    }
    guard watched.insert(number: Self.bits(of: number)) else { return }
    if Self.isTelling(bytes, range) { watched.insert(bytesOfNumber: number.bitPattern) }
    // Its decimal digits, where there are more than six.
    var text = "\(number.magnitude)"
    if text.hasSuffix(".0") { text.removeLast(2) }
    if text.utf8.count(where: { $0 >= 0x30 && $0 <= 0x39 }) > 6 { watch(digits: text) }
  }

  private func watch(digits: String) {
    var text: [UInt8] = []
    swap(&text, &canonical)
    text.removeAll(keepingCapacity: true)
    text.append(contentsOf: digits.utf8)
    watched.insert(text.span, 0..<text.count, isText: true)
    swap(&text, &canonical)
  }

  private func noteBytes(isText: Bool, _ bytes: Span<UInt8>, _ range: Range<Int>, _ rule: FieldRule) {
    guard rule.kind != .metadata else {
      MetadataScrub.note(bytes, range, self)
      return
    }
    let isOwn = rule.kind == .own && isOwn(bytes, range, isText: isText)
    if rule.kind == .keep || isOwn || rule.kind == .word && isText && isWord(bytes, range) {
      keep(bytes, range)
      return
    }
    if rule.isOrdered, isText || !BlobForm.isReference(bytes, range) {
      orderedTexts.insert(bytes, range, isBlob: !isText, seed: seed(bytes, range, isText: isText))
    }
    guard !isText else {
      watch(text: bytes, range)
      watchPieces(ofText: bytes, range)
      return
    }
    if BlobForm.isReference(bytes, range) {
      watched.insert(bytes, (range.lowerBound + 1)..<(range.upperBound - 1), isText: true)
      return
    }
    let kept = BlobForm.keptPrefix(bytes, range)
    // Zeros at the beginning stay zeros.
    var start = range.lowerBound
    while start < range.upperBound, bytes[start] == 0 { start &+= 1 }
    let value = start..<range.upperBound
    guard value.count >= 8, kept < min(range.count, WatchedValues.longest) else { return }
    let end = min(value.upperBound, start + WatchedValues.longest)
    if Self.isTelling(bytes, max(start, range.lowerBound + kept)..<max(end, range.lowerBound + kept)) {
      watched.insert(bytes, value, isText: false)
    }
    watchPieces(of: bytes, range)
  }

  /// Watches for pieces of bytes, from a distance behind their beginning on.
  func watchPieces(of bytes: Span<UInt8>, _ range: Range<Int>) {
    var next = range.lowerBound + WatchedValues.pieceDistance
    while next + WatchedValues.longest <= range.upperBound {
      // As with beginnings, zeros are passed over, as they stay.
      var start = next
      while start + WatchedValues.longest < range.upperBound, start < next + 8, bytes[start] == 0 { start += 1 }
      let piece = start..<(start + WatchedValues.longest)
      if Self.isTelling(bytes, piece) { watched.insert(bytes, piece, isText: false) }
      next += WatchedValues.pieceDistance
    }
  }

  private func isSpace(_ bytes: Span<UInt8>, at place: Int) -> Bool {
    switch encoding {
    case .utf8: bytes[place] == 0x20
    case .utf16LittleEndian: bytes[place] == 0x20 && bytes[place + 1] == 0
    case .utf16BigEndian: bytes[place] == 0 && bytes[place + 1] == 0x20
    }
  }

  private func watchPieces(ofText bytes: Span<UInt8>, _ range: Range<Int>) {
    let unit = encoding == .utf8 ? 1 : 2
    var next = range.lowerBound + WatchedValues.pieceDistance
    while next + unit * WatchedValues.longest <= range.upperBound {
      // A piece begins with a word where one is near, as words begin alike and so stand out among other text; else with a
      // whole character.
      var start = next
      let end = min(next + 64, range.upperBound - unit * WatchedValues.longest)
      while start < end, !isSpace(bytes, at: start) { start += unit }
      start = start < end ? start + unit : next
      if encoding == .utf8 {
        while start < next + 3, bytes[start] & 0xc0 == 0x80 { start += 1 }
      } else {
        let high = encoding == .utf16LittleEndian ? bytes[start + 1] : bytes[start]
        if high & 0xfc == 0xdc { start += 2 }
      }
      watch(text: bytes, start..<range.upperBound)
      next += WatchedValues.pieceDistance
    }
  }

  /// Whether bytes are not ones that structure is full of: zeros and ones, and little else.
  private static func isTelling(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var count = 0
    for index in range where bytes[index] > 0x0f && bytes[index] != 0xff { count &+= 1 }
    return count >= 4
  }

  /// Whether a value in a column of bookkeeping stays: in a damaged store what is there may be another table's, so that only names of
  /// the schema do, and the model, as far as its pages are at hand.
  func isOwn(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool) -> Bool {
    guard isDamaged else { return true }
    guard !isText else { return isWord(bytes, range) }
    guard let model, range.count <= model.count else { return false }
    for (place, index) in range.enumerated() where bytes[index] != model[place] { return false }
    return true
  }

  /// Whether text is a name of the schema or of the model.
  func isWord(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count <= 1024, !words.isEmpty else { return false }
    var text: [UInt8] = []
    TextCoding.appendUTF8(bytes, range, encoding, to: &text)
    return words.contains(text)
  }

  /// Watches for text of four characters and more of which something can change.
  func watch(text bytes: Span<UInt8>, _ range: Range<Int>) {
    if encoding == .utf8, range.count >= 4, !TextCoding.isValid(bytes, beginning(of: bytes, range), encoding) {
      // Text in another encoding than the database's, which is replaced byte by byte.
      if (range.contains { bytes[$0] >= 0x80 || Self.isAlphanumeric(bytes[$0]) }) {
        watched.insert(bytes, range, isText: false)
      }
      return
    }
    if encoding == .utf8 { return watch(utf8: bytes, range) }
    var text: [UInt8] = []
    swap(&text, &canonical)
    text.removeAll(keepingCapacity: true)
    let end = min(range.upperBound, range.lowerBound &+ 2 &* WatchedValues.longest)
    TextCoding.appendUTF8(bytes, range.lowerBound..<end, encoding, to: &text)
    watch(utf8: text.span, 0..<text.count)
    swap(&text, &canonical)
  }

  /// As much of a text in UTF-8 as is replaced as a whole, up to the last character that is all in it: long text is looked
  /// at in many places, each time no further than this.
  private func beginning(of bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    guard range.count > Self.longestWhole else { return range }
    var end = range.lowerBound + Self.longestWhole
    while end > range.lowerBound + Self.longestWhole - 4, bytes[end] & 0xc0 == 0x80 { end -= 1 }
    return range.lowerBound..<end
  }

  /// The same, whatever the encoding of the database.
  func watch(utf8 bytes: Span<UInt8>, _ range: Range<Int>) {
    if Self.isChangeable(bytes, range) { watched.insert(bytes, range, isText: true) }
  }

  /// Whether UTF-8 text has four characters, and one among its first bytes that is ever replaced.
  private static func isChangeable(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count >= 4 else { return false }
    var characters = 0
    var isChangeable = false
    var index = range.lowerBound
    let end = min(range.upperBound, range.lowerBound &+ WatchedValues.longest)
    while index < end {
      if characters >= 4, isChangeable { return true }
      let character = TextCoding.read(bytes, at: index, before: range.upperBound, .utf8)
      guard let scalar = character.scalar else { return false }
      characters &+= 1
      // A character of which only a part is compared does not count.
      if index &+ character.length <= end, !isChangeable {
        isChangeable = scalar < 0x80 ? isAlphanumeric(UInt8(scalar)) : CharacterBlock.block(of: scalar) != nil
      }
      index &+= character.length
    }
    return characters >= 4 && isChangeable
  }

  /// Takes note of bytes that stay, so that finding them again is no fault.
  func keep(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    guard keptBytes.count + range.count < Self.keptLimit else { return }
    for index in range { keptBytes.append(bytes[index]) }
    keptBytes.append(0)
  }

  /// Takes note of words that are not the user's.
  func keep(word: String) {
    guard keptBytes.count + word.utf8.count < Self.keptLimit else { return }
    keptBytes.append(contentsOf: word.utf8)
    keptBytes.append(0)
  }
}
