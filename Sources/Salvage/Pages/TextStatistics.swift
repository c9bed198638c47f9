internal import SQLiteFormat

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
