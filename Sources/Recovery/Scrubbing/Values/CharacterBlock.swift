/// The characters that a character may be replaced by: neighbours of its own kind, all of the same number of bytes.
///
/// Blocks do not overlap and each is a run of code points, so that characters of different blocks keep their order.
enum CharacterBlock {
  /// The blocks of letters and ideographs that are known by name, and of characters that are not seen and could spell a
  /// text; others are runs of 64 code points.
  private static let known: [ClosedRange<UInt32>] = [
    0xc0...0xd6, 0xd8...0xde, 0xdf...0xf6, 0xf8...0xff, 0x100...0x17f, 0x180...0x24f, 0x250...0x2af, 0x391...0x3a1,
    0x3a3...0x3a9, 0x3b1...0x3c9, 0x410...0x42f, 0x430...0x44f, 0x5d0...0x5ea, 0x621...0x63a, 0x641...0x64a,
    0x660...0x669, 0x904...0x939, 0xe01...0xe2e, 0x1e00...0x1eff, 0x200b...0x200f,
    0x202a...0x202e, 0x2060...0x2064, 0x3041...0x3096, 0x30a1...0x30fa, 0x4e00...0x9fa5,
    0xac00...0xd7a3, 0xfe00...0xfe0f, 0x1f300...0x1f3fa, 0x1f3fb...0x1f3ff, 0x1f400...0x1f5ff, 0x1f600...0x1f64f,
    0x1f680...0x1f6c5, 0x1f900...0x1f9ff, 0x20000...0x2a6d6,
    0xe0020...0xe007f, 0xe0100...0xe01ef,
  ]

  /// Ranges that are kept as they are: marks, spaces, punctuation, byte order marks.
  private static func isKept(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x80...0xbf, 0xd7, 0xf7, 0x300...0x36f, 0x2000...0x200a, 0x2010...0x2029, 0x202f...0x205f, 0x2065...0x206f,
      0x20d0...0x20ff, 0x3000...0x3040, 0xfeff, 0xfff0...0xffff, 0xe0000...0xe001f, 0xe0080...0xe00ff,
      0xe01f0...0xe0fff:
      true
    default: false
    }
  }

  /// The block of a character outside of ASCII; nil where it is kept.
  static func block(of scalar: UInt32) -> ClosedRange<UInt32>? {
    if isKept(scalar) { return nil }
    var low = 0
    var high = known.count
    while low < high {
      let middle = (low + high) / 2
      if known[middle].upperBound < scalar { low = middle + 1 } else { high = middle }
    }
    if low < known.count, known[low].contains(scalar) { return known[low] }
    // Between known blocks the runs of 64 are cut off where those begin; a run never leaves its number of bytes.
    var start = scalar & ~63
    var end = scalar | 63
    if low > 0 { start = max(start, known[low - 1].upperBound + 1) }
    if low < known.count { end = min(end, known[low].lowerBound - 1) }
    while start < scalar, isKept(start) { start += 1 }
    while end > scalar, isKept(end) { end -= 1 }
    for inner in start...end where isKept(inner) { return scalar...scalar }
    return start...end
  }
}
