import Platform
import SQLiteFormat

extension Pseudonyms {
  func replaceWholeText(_ bytes: inout [UInt8], _ range: Range<Int>) -> Outcome {
    let seed = seed(bytes.span, range, isText: true)
    if let ordered = orderedTexts.pseudonym(seed: seed) {
      if range.count > ordered.count { replaceText(&bytes, range, from: ordered.count, seed: seed) }
      for (index, byte) in ordered.enumerated() { bytes[range.lowerBound + index] = byte }
      return .ordered
    }
    let before = range.count <= Self.longestShort ? Array(bytes[range]) : []
    for attempt in UInt64(0)..<8 {
      replaceText(&bytes, range, from: 0, seed: seed &+ attempt)
      // A short text may be unchanged by chance.
      if before.isEmpty || !bytes[range].elementsEqual(before) { break }
    }
    return .replaced
  }

  /// The longest such text in bytes.
  private static let longestShort = 16

  func replaceText(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    let start = range.lowerBound + from
    let unit = encoding == .utf8 ? 1 : 2
    if from == 0, BlobForm.isIdentifierText(bytes.span, range, encoding) {
      return replaceIdentifierText(&bytes, range)
    }
    if encoding == .utf8, from == 0, range.count <= Self.longestWhole, !TextCoding.isValid(bytes.span, range, encoding)
    {
      replaceBytes(&bytes, range, seed: seed)
    } else if range.count <= Self.longestWhole * unit {
      var stream = KeyStream(function, seed: seed)
      replaceCharacters(&bytes, start..<range.upperBound, &stream)
    } else {
      replaceWords(&bytes, start..<range.upperBound)
    }
  }

  @inline(__always)
  static func isAlphanumeric(_ byte: UInt8) -> Bool {
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
        } else if byte < 0x20 {
          bytes[index] = Self.ofClass(byte, &stream)
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
      } else {
        replaceInvalid(&bytes, index..<min(end, index &+ character.length), &stream)
      }
      index &+= character.length
    }
  }

  /// Replaces invalid text: UTF-8 bytes by their class, UTF-16 surrogates by others.
  private func replaceInvalid(_ bytes: inout [UInt8], _ range: Range<Int>, _ stream: inout KeyStream) {
    if encoding != .utf8, range.count == 2 {
      let (high, low) =
        encoding == .utf16BigEndian
        ? (range.lowerBound, range.lowerBound + 1) : (range.lowerBound + 1, range.lowerBound)
      bytes[high] = bytes[high] & 0xfc | UInt8(stream.below(4))
      bytes[low] = UInt8(stream.below(256))
      return
    }
    for index in range { bytes[index] = Self.ofClass(bytes[index], &stream) }
  }

  /// Returns the bytes with an equal role; nil if a byte stays.
  static func byteClass(_ byte: UInt8) -> ClosedRange<UInt8>? {
    switch byte {
    case 0x30...0x39: 0x30...0x39
    case 0x41...0x5a: 0x41...0x5a
    case 0x61...0x7a: 0x61...0x7a
    // UTF-16 of unknown encoding looks like these.
    case 0x01...0x08: 0x01...0x08
    case 0x0e...0x1f: 0x0e...0x1f
    case 0..<0x80: nil
    case 0x80...0xbf: 0x80...0xbf
    case 0xc0...0xdf: 0xc0...0xdf
    case 0xe0...0xef: 0xe0...0xef
    default: 0xf0...0xff
    }
  }

  private static func ofClass(_ byte: UInt8, _ stream: inout KeyStream) -> UInt8 {
    guard let range = byteClass(byte) else { return byte }
    return range.lowerBound + UInt8(stream.below(range.count))
  }

  /// Replaces invalid text by bytes.
  private func replaceBytes(_ bytes: inout [UInt8], _ range: Range<Int>, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    for index in range { bytes[index] = Self.ofClass(bytes[index], &stream) }
  }

  static func block(of scalar: UInt32) -> ClosedRange<UInt32>? {
    guard scalar < 0x80 else { return CharacterBlock.block(of: scalar) }
    return byteClass(UInt8(scalar)).map { UInt32($0.lowerBound)...UInt32($0.upperBound) }
  }

  /// Replaces text of unknown boundaries by words.
  func replaceWords(_ bytes: inout [UInt8], _ range: Range<Int>) {
    var index = range.lowerBound
    let end = range.upperBound
    let isNarrow = encoding == .utf8
    func isWord(_ bytes: Span<UInt8>, _ place: Int) -> Bool {
      if isNarrow { return Self.byteClass(bytes[place]) != nil }
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
      // Numbers count as words, so that common parts stay common.
      let isNumber = isDigit(bytes.span, index)
      var next = index &+ unit
      while next < end, isWord(bytes.span, next), isDigit(bytes.span, next) == isNumber { next &+= unit }
      next = min(next, end)
      let seed = function(bytes.span, index..<next, tweak: 0x77_6f72)
      if isNarrow, !TextCoding.isValid(bytes.span, index..<next, encoding) {
        replaceBytes(&bytes, index..<next, seed: seed)
      } else {
        var stream = KeyStream(function, seed: seed)
        replaceCharacters(&bytes, index..<next, &stream)
      }
      index = next
    }
  }

  /// Replaces a text identifier, alike in every encoding.
  private func replaceIdentifierText(_ bytes: inout [UInt8], _ range: Range<Int>) {
    let unit = encoding == .utf8 ? 1 : 2
    let low = encoding == .utf16BigEndian ? 1 : 0
    replaceIdentifier(&bytes, at: range.lowerBound + low, unit: unit)
  }

  /// Replaces the 36 ASCII characters of an identifier, at every unit.
  func replaceIdentifier(_ bytes: inout [UInt8], at start: Int, unit: Int = 1) {
    let text = (0..<36).map { bytes[start + $0 * unit] }
    for (index, byte) in identifier(for: text).enumerated() { bytes[start + index * unit] = byte }
  }

  /// Returns the pseudonym of an ASCII identifier.
  func identifier(for original: [UInt8]) -> [UInt8] {
    var text = original
    let folded = original.map { $0 | 0x20 }
    var stream = KeyStream(function, seed: seed(folded.span, 0..<folded.count, isText: true))
    for index in text.indices where index != 14 {
      let byte = text[index]
      if index == 19 {
        // The variant digit is 8, 9, a or b.
        if byte == 0x38 || byte == 0x39 { text[index] = 0x38 + UInt8(stream.below(2)) }
      } else if byte >= 0x30, byte <= 0x39 {
        text[index] = 0x30 + UInt8(stream.below(10))
      } else if byte != 0x2d {
        text[index] = byte & 0x60 | UInt8(1 + stream.below(6))
      }
    }
    return text
  }
}

/// The replacements of a character: neighbours of its kind and byte length.
///
/// Blocks are disjoint ranges, so their characters keep their order.
enum CharacterBlock {
  /// Blocks of letters, ideographs, and invisible characters that could encode text; others are runs of 64 code points.
  private static let known: [ClosedRange<UInt32>] = [
    0xc0...0xd6, 0xd8...0xde, 0xdf...0xf6, 0xf8...0xff, 0x100...0x17f, 0x180...0x24f, 0x250...0x2af, 0x391...0x3a1,
    0x3a3...0x3a9, 0x3b1...0x3c9, 0x410...0x42f, 0x430...0x44f, 0x5d0...0x5ea, 0x621...0x63a, 0x641...0x64a,
    0x660...0x669, 0x904...0x939, 0xe01...0xe2e, 0x1e00...0x1eff, 0x200b...0x200f, 0x202a...0x202e, 0x2060...0x2064,
    0x3041...0x3096, 0x30a1...0x30fa, 0x4e00...0x9fa5, 0xac00...0xd7a3, 0xfe00...0xfe0f, 0x1f300...0x1f3fa,
    0x1f3fb...0x1f3ff, 0x1f400...0x1f5ff, 0x1f600...0x1f64f, 0x1f680...0x1f6c5, 0x1f900...0x1f9ff, 0x20000...0x2a6d6,
    0xe0020...0xe007f, 0xe0100...0xe01ef,
  ]

  /// Whether a character stays: marks, spaces, punctuation, byte order marks.
  private static func isKept(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x80...0xbf, 0xd7, 0xf7, 0x300...0x36f, 0x2000...0x200a, 0x2010...0x2029, 0x202f...0x205f, 0x2065...0x206f,
      0x20d0...0x20ff, 0x3000...0x3040, 0xfeff, 0xfff0...0xffff, 0xe0000...0xe001f, 0xe0080...0xe00ff,
      0xe01f0...0xe0fff:
      true
    default: false
    }
  }

  /// Returns a non-ASCII character's block; nil if it stays.
  static func block(of scalar: UInt32) -> ClosedRange<UInt32>? {
    if isKept(scalar) { return nil }
    let low = known.partitioningIndex { $0.upperBound >= scalar }
    if low < known.count, known[low].contains(scalar) { return known[low] }
    // Runs end at known blocks and keep the byte length.
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
