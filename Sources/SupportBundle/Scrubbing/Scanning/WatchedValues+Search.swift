internal import SQLiteFormat

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
      for place in block.places {
        if let hit = hit(bytes, at: Int(place), before: end) { return hit }
      }
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
    let table = PackedDigits.kinds
    let kinds = table.span
    if index > 0, kinds[Int(bytes[index &- 1])] & PackedDigits.otherMark == 0 { return nil }
    let count = bytes[index &+ 6] == PackedDigits.padding ? 4 : 5
    var text = [UInt8](repeating: 0, count: 32)
    var span = text.mutableSpan
    guard PackedDigits.decode(bytes, from: index, before: index &+ 8, bits: 6, count: 8, into: &span) == count else {
      return nil
    }
    let key = Self.shortKey(Self.word(text.span, 0, count), count)
    return shortValues.contains(key) && !exempt.contains(key) ? Hit(range: index..<(index &+ 8), key: key) : nil
  }

  /// Swaps the bytes of four units.
  @inline(__always)
  static func swappedUnits(_ word: UInt64) -> UInt64 {
    (word & 0x00ff_00ff_00ff_00ff) << 8 | (word & 0xff00_ff00_ff00_ff00) >> 8
  }

  private func shortHit(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ word: UInt64) -> Hit? {
    for length in 4...7 where offset &+ length <= end {
      let key = Self.shortKey(word, length)
      if members.mayContain(key), shortValues.contains(key), !exempt.contains(key) {
        return Hit(range: offset..<(offset &+ length), key: key)
      }
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
