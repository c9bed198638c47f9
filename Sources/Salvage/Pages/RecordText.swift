internal import SQLiteFormat

/// Validates text in records.
enum RecordText {
  /// Validates a record's text, up to where an overflow page continues it.
  static func isValid(_ bytes: Span<UInt8>, at start: Int, before end: Int, encoding: TextEncoding) -> Bool {
    var offset = start
    let end = min(end, bytes.count)
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end &- start) else {
      return false
    }
    let headerEnd = start &+ Int(header)
    var body = headerEnd
    while offset < headerEnd, body < end {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code)
      else {
        return false
      }
      if code >= 13, code & 1 == 1 {
        // A damaged record can claim a width that would overflow a sum.
        let isWhole = width <= end &- body
        let limit = isWhole ? body &+ width : end
        switch encoding {
        case .utf8:
          guard isUTF8(bytes, from: body, to: limit, mayBeCut: !isWhole) else { return false }
        case .utf16LittleEndian, .utf16BigEndian:
          guard
            isUTF16(bytes, from: body, to: limit, mayBeCut: !isWhole, isBigEndian: encoding == .utf16BigEndian)
          else { return false }
        }
      }
      guard width <= end &- body else { return true }
      body &+= width
    }
    return true
  }

  /// The record's length by its header, if readable.
  static func length(_ bytes: Span<UInt8>, at start: Int, before end: Int) -> Int? {
    var offset = start
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end &- start) else {
      return nil
    }
    let headerEnd = start &+ Int(header)
    var length = Int(header)
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength
      else { return nil }
      length &+= width
    }
    return length
  }

  /// Whether a piece of text is valid.
  ///
  /// - Parameters:
  ///   - isCutBefore: whether it may begin within a character.
  ///   - isCutBehind: whether it may end within one.
  static func isValid(
    _ bytes: Span<UInt8>, _ text: Range<Int>, isCutBefore: Bool, isCutBehind: Bool = false, _ encoding: TextEncoding
  ) -> Bool {
    var start = text.lowerBound
    switch encoding {
    case .utf8:
      if isCutBefore {
        let limit = min(start + 3, text.upperBound)
        while start < limit, bytes[start] & 0xc0 == 0x80 { start += 1 }
      }
      return isUTF8(bytes, from: start, to: text.upperBound, mayBeCut: isCutBehind)
    case .utf16LittleEndian, .utf16BigEndian:
      let isBigEndian = encoding == .utf16BigEndian
      if isCutBefore, start + 1 < text.upperBound {
        let unit = isBigEndian ? bytes[start] : bytes[start + 1]
        if unit >= 0xdc, unit <= 0xdf { start += 2 }
      }
      return isUTF16(bytes, from: start, to: text.upperBound, mayBeCut: isCutBehind, isBigEndian: isBigEndian)
    }
  }

  /// Whether bytes are UTF-8 (RFC 3629), with a possibly incomplete end.
  @inline(__always)
  private static func isUTF8(_ bytes: Span<UInt8>, from start: Int, to end: Int, mayBeCut: Bool) -> Bool {
    var all: UInt8 = 0
    let text = bytes.extracting(start..<end)
    for index in text.indices { all |= text[index] }
    guard all >= 0x80 else { return true }
    var index = start
    while index < end {
      let byte = bytes[index]
      if byte < 0x80 {
        index &+= 1
        continue
      }
      let length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      guard byte >= 0xc2, byte <= 0xf4 else { return false }
      guard index &+ length <= end else { return mayBeCut }
      let second = bytes[index &+ 1]
      guard second & 0xc0 == 0x80 else { return false }
      switch byte {
      case 0xe0 where second < 0xa0, 0xed where second > 0x9f, 0xf0 where second < 0x90, 0xf4 where second > 0x8f:
        return false
      default: break
      }
      if length > 2, bytes[index &+ 2] & 0xc0 != 0x80 { return false }
      if length > 3, bytes[index &+ 3] & 0xc0 != 0x80 { return false }
      index &+= length
    }
    return true
  }

  private static func isUTF16(
    _ bytes: Span<UInt8>, from start: Int, to end: Int, mayBeCut: Bool, isBigEndian: Bool
  ) -> Bool {
    guard mayBeCut || (end - start).isMultiple(of: 2) else { return false }
    var index = start
    var isHighBefore = false
    while index + 1 < end {
      let unit = isBigEndian ? bytes[index] : bytes[index + 1]
      let isHigh = unit >= 0xd8 && unit <= 0xdb
      let isLow = unit >= 0xdc && unit <= 0xdf
      if isLow != isHighBefore { return false }
      isHighBefore = isHigh
      index += 2
    }
    return mayBeCut || !isHighBefore
  }
}

/// The short character sequences in a store's texts, used to judge whether two pieces of text belong together.
///
/// Holds sequences of three to six characters, and of two to four at the ends of values. At a correct seam nearly all
/// occur elsewhere; at a wrong one most don't. The hashed 1 MB bitmap allows a few false positives.
struct TextStatistics {
  /// The most bytes to learn, as more would fill the table.
  static let maximumLength = 2 << 20

  private var bits = [UInt64](repeating: 0, count: 1 << 17)

  private(set) var length = 0

  /// The bytes of a code unit.
  private let unit: Int

  init(encoding: TextEncoding) { unit = encoding == .utf8 ? 1 : 2 }

  struct Tally {
    var seen = 0
    var total = 0

    /// The share found; nil with too few.
    var share: Double? { total < 6 ? nil : Double(seen) / Double(total) }
  }

  mutating func learn(_ bytes: Span<UInt8>, _ text: Range<Int>, isBeginning: Bool, isEnd: Bool) {
    guard length < Self.maximumLength, text.upperBound <= bytes.count else { return }
    length += text.count
    for count in 3...6 {
      var start = text.lowerBound
      while start + count * unit <= text.upperBound {
        set(Self.hash(bytes, start, count * unit, seed: UInt64(count)))
        start += unit
      }
    }
    for count in 2...4 where count * unit <= text.count {
      if isBeginning { set(Self.hash(bytes, text.lowerBound, count * unit, seed: 16 + UInt64(count))) }
      if isEnd { set(Self.hash(bytes, text.upperBound - count * unit, count * unit, seed: 32 + UInt64(count))) }
    }
  }

  /// Counts the sequences across a seam within a text.
  func compareSeam(_ bytes: Span<UInt8>, at seam: Int, in text: Range<Int>, _ tally: inout Tally) {
    // In UTF-16 the seam may split a code unit; align it to the text.
    let offset = (seam - text.lowerBound) % unit
    let place = seam - offset
    for count in 3...6 {
      for before in 1..<count {
        let start = place - before * unit
        guard start >= text.lowerBound, start + count * unit <= text.upperBound else { continue }
        tally.total += 1
        if has(Self.hash(bytes, start, count * unit, seed: UInt64(count))) { tally.seen += 1 }
      }
    }
  }

  func compareEnds(
    _ bytes: Span<UInt8>, _ text: Range<Int>, isBeginning: Bool, isEnd: Bool, _ tally: inout Tally
  ) {
    for count in 2...4 where count * unit <= text.count {
      if isBeginning {
        tally.total += 1
        if has(Self.hash(bytes, text.lowerBound, count * unit, seed: 16 + UInt64(count))) { tally.seen += 1 }
      }
      if isEnd {
        tally.total += 1
        if has(Self.hash(bytes, text.upperBound - count * unit, count * unit, seed: 32 + UInt64(count))) {
          tally.seen += 1
        }
      }
    }
  }

  private mutating func set(_ hash: UInt64) { bits[Int(hash >> 6) & (bits.count - 1)] |= 1 << (hash & 63) }

  private func has(_ hash: UInt64) -> Bool { bits[Int(hash >> 6) & (bits.count - 1)] & 1 << (hash & 63) != 0 }

  @inline(__always)
  private static func hash(_ bytes: Span<UInt8>, _ start: Int, _ count: Int, seed: UInt64) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325 ^ seed &* 0x9e37_79b9_7f4a_7c15
    for index in start..<(start + count) { hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01b3 }
    return (hash ^ hash >> 29) &* 0xbf58_476d_1ce4_e5b9 >> 20
  }
}

extension TextStatistics {
  mutating func learn(_ bytes: Span<UInt8>, _ record: Range<Int>, length: Int) {
    var offset = record.lowerBound
    guard let header = Varint.read(bytes, at: &offset, before: record.upperBound), header > 0,
      header <= Int64(record.count)
    else { return }
    let end = record.lowerBound + Int(header)
    var body = end
    while offset < end, body < record.upperBound {
      guard let code = Varint.read(bytes, at: &offset, before: end), let width = SerialType.length(of: code) else {
        return
      }
      if code >= 13, code & 1 == 1 {
        let stop = min(body + width, record.upperBound)
        learn(bytes, body..<stop, isBeginning: true, isEnd: stop == body + width)
      }
      body += width
    }
  }
}
