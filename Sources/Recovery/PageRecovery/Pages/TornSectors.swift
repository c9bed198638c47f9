/// Sectors of a page that were lost and are zeros now.
///
/// A value of zeros is no loss. A lost sector begins and ends at a multiple of 512 bytes, and the bytes before and behind
/// it are those of other content; a value of zeros does so only by chance.
enum TornSectors {
  static let sector = 512

  /// How many zeros may stand before and behind a lost sector as part of other content.
  private static let slack = 16

  /// The lost ranges of a page, in ascending order.
  ///
  /// - Parameters:
  ///   - content: the bytes that hold content; zeros outside of it are no loss and tell nothing.
  static func ranges(_ bytes: Span<UInt8>, content: Range<Int>) -> [Range<Int>] {
    var ranges: [Range<Int>] = []
    var start = content.lowerBound / sector * sector
    while start + sector <= bytes.count, start < content.upperBound {
      guard isZero(bytes, start, start + sector) else {
        start += sector
        continue
      }
      var end = start + sector
      while end + sector <= bytes.count, isZero(bytes, end, end + sector) { end += sector }
      var before = start
      while before > content.lowerBound, bytes[before - 1] == 0 { before -= 1 }
      var behind = end
      while behind < content.upperBound, bytes[behind] == 0 { behind += 1 }
      let isSharpBefore = start - before < slack || before <= content.lowerBound
      let isSharpBehind = behind - end < slack || end >= content.upperBound
      if isSharpBefore, isSharpBehind { ranges.append(start..<end) }
      start = end
    }
    return ranges
  }

  @inline(__always)
  private static func isZero(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
    var index = start
    while index < end {
      if bytes[index] != 0 { return false }
      index &+= 1
    }
    return true
  }
}
