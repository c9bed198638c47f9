internal import SQLiteFormat

/// Which short sequences of characters occur in the texts of a store, so that it can be told whether two pieces of text
/// that were put together belong together.
///
/// Sequences of three to six characters are noted, and those of two to four at the beginning and the end of a value. At a
/// seam in the right place nearly all of them have been seen elsewhere; at one in the wrong place most have not. The
/// sequences are kept as bits of a table of 1 MB, so that a few are taken for seen that were not.
struct TextStatistics {
  /// How many bytes of text are learnt at most: with more the table would fill up.
  static let maximumLength = 2 << 20

  private var bits = [UInt64](repeating: 0, count: 1 << 17)

  /// The bytes learnt so far.
  private(set) var length = 0

  /// The bytes of a character, or of half of one.
  private let unit: Int

  init(encoding: TextEncoding) { unit = encoding == .utf8 ? 1 : 2 }

  /// Sequences looked for and found.
  struct Tally {
    var seen = 0
    var total = 0

    /// The share of sequences that were seen; nil where there are too few to tell.
    var share: Double? { total < 6 ? nil : Double(seen) / Double(total) }
  }

  /// Learns a value, or a piece of one.
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

  /// Looks for the sequences that lie across a seam within a text.
  func compareSeam(_ bytes: Span<UInt8>, at seam: Int, in text: Range<Int>, _ tally: inout Tally) {
    // Within UTF-16 the seam lies between two characters, or within one; the grid is that of the text.
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

  /// Looks for the sequences at the beginning and the end of a text.
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
  /// Learns the texts of a record as far as it is at hand.
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
