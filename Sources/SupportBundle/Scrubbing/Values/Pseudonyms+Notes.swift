import SQLiteFormat

extension Pseudonyms {
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
      if rule.kind == .key { return domains.note(key: number, rule.domain) }
      if rule.kind == .date, !ranksDates {
        let bits = 8 * range.count - 1
        dates.note(Double(number), limit: Double(sign: .plus, exponent: bits, significand: 1))
      }
      guard NumberRegion.isLong(number) else { return domains.note(short: number, rule.domain, isCopy: rule.isCopy) }
      if rule.isOrdered || rule.kind == .date && (ranksDates || DateShift.isStuck(Double(number))) {
        orderedNumbers.insert(number)
      }
      guard watched.insert(number: UInt64(bitPattern: number)) else { return }
      watch(digits: "\(number.magnitude)")
      watch(bytes, range, of: number)
    case 7:
      guard let stored = bytes.signedInteger(at: range.lowerBound, length: 8), rule.kind != .keep, rule.kind != .own
      else { return }
      noteReal(Double(bitPattern: UInt64(bitPattern: stored)), bytes, range, rule)
    default:
      guard code >= 12, !range.isEmpty else { return }
      noteBytes(isText: code & 1 == 1, bytes, range, rule)
    }
  }

  /// Watches an integer of more than six digits.
  func watch(_ number: Int64) {
    guard watched.insert(number: UInt64(bitPattern: number)) else { return }
    watch(digits: "\(number.magnitude)")
    let width = NumberRegion.width(number)
    guard width >= 6 else { return }
    watch(Self.bytes(of: number, width).span, 0..<width, of: number)
  }

  /// Watches the stored form of an integer, from six bytes on.
  private func watch(_ bytes: Span<UInt8>, _ range: Range<Int>, of number: Int64) {
    guard range.count >= 6, Self.isTelling(bytes, range) else { return }
    if range.count == 8 {
      watched.insert(bytesOfNumber: UInt64(bitPattern: number))
    } else {
      watched.insert(bytes, range, isText: false)
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
    guard rule.kind != .metadata else { return MetadataScrub.note(bytes, range, self) }
    if stays(bytes, range, isText: isText, rule) { return keep(bytes, range) }
    let isReference = !isText && BlobForm.isReference(bytes, range)
    if rule.isOrdered, !isReference {
      orderedTexts.insert(bytes, range, isBlob: !isText, seed: seed(bytes, range, isText: isText))
    }
    guard !isText else {
      watch(text: bytes, range)
      return watchPieces(ofText: bytes, range)
    }
    if isReference { return watched.insert(bytes, (range.lowerBound + 1)..<(range.upperBound - 1), isText: true) }
    let kept = BlobForm.keptPrefix(bytes, range)
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

  /// Watches pieces after the beginning.
  private func watchPieces(of bytes: Span<UInt8>, _ range: Range<Int>) {
    var next = range.lowerBound + WatchedValues.pieceDistance
    while next + WatchedValues.longest <= range.upperBound {
      // Zeros stay.
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
      // A word boundary lets equal words match in other text.
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

  /// Whether bytes are uncommon in structure.
  private static func isTelling(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    range.count { bytes[$0] > 0x0f && bytes[$0] != 0xff } >= 4
  }

  /// Whether text or a blob stays; in a damaged store other bookkeeping may be another table's.
  func stays(_ bytes: Span<UInt8>, _ range: Range<Int>, isText: Bool, _ rule: FieldRule) -> Bool {
    switch rule.kind {
    case .keep: true
    case .own where !isDamaged: true
    case .own, .word: isText && isWord(bytes, range)
    case .model: !isText && isModel(bytes, range)
    case .replace, .key, .date, .drop, .metadata: false
    }
  }

  /// Whether a blob is the model, or in a damaged store begins as it.
  private func isModel(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard let model, range.count == model.count || isDamaged && range.count < model.count else { return false }
    for (place, index) in range.enumerated() where bytes[index] != model[place] { return false }
    return true
  }

  /// Whether text is a name of the schema or model.
  private func isWord(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count <= 1024, !words.isEmpty else { return false }
    var text: [UInt8] = []
    TextCoding.appendUTF8(bytes, range, encoding, to: &text)
    return words.contains(text)
  }

  /// Watches changeable text of at least four characters.
  func watch(text bytes: Span<UInt8>, _ range: Range<Int>) {
    if encoding == .utf8, range.count >= 4, !TextCoding.isValid(bytes, beginning(of: bytes, range), encoding) {
      // Invalid text is replaced by bytes.
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

  /// Returns the whole characters replaced together, which bounds repeated reads.
  private func beginning(of bytes: Span<UInt8>, _ range: Range<Int>) -> Range<Int> {
    guard range.count > Self.longestWhole else { return range }
    var end = range.lowerBound + Self.longestWhole
    while end > range.lowerBound + Self.longestWhole - 4, bytes[end] & 0xc0 == 0x80 { end -= 1 }
    return range.lowerBound..<end
  }

  /// Watches UTF-8 text, whatever the database's encoding.
  func watch(utf8 bytes: Span<UInt8>, _ range: Range<Int>) {
    if Self.isChangeable(bytes, range) { watched.insert(bytes, range, isText: true) }
  }

  /// Whether UTF-8 text has four characters, one of them changeable and compared.
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
      // Partly compared characters do not count.
      if index &+ character.length <= end, !isChangeable {
        isChangeable = scalar < 0x80 ? isAlphanumeric(UInt8(scalar)) : CharacterBlock.block(of: scalar) != nil
      }
      index &+= character.length
    }
    return characters >= 4 && isChangeable
  }

  /// Notes kept bytes, which may be found.
  func keep(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    guard keptBytes.count + range.count < Self.keptLimit else { return }
    for index in range { keptBytes.append(bytes[index]) }
    keptBytes.append(0)
  }

  /// Notes words that are not user data.
  func keep(word: String) {
    let bytes = Array(word.utf8)
    keep(bytes.span, bytes.indices)
  }
}
