internal import SQLiteFormat

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
      // A short one may be itself by chance.
      if before.isEmpty || !bytes[range].elementsEqual(before) { break }
    }
    return .replaced
  }

  /// The most bytes of a text that can be its own pseudonym by chance.
  private static let longestShort = 16

  /// Replaces text from an offset on.
  func replaceText(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    let start = range.lowerBound + from
    let unit = encoding == .utf8 ? 1 : 2
    if from == 0, BlobForm.isIdentifierText(bytes.span, range, encoding) {
      replaceIdentifierText(&bytes, range)
      return
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

  /// Replaces what is no character: in UTF-8 a byte by one of its class, in UTF-16 half of a pair by another one.
  private func replaceInvalid(_ bytes: inout [UInt8], _ range: Range<Int>, _ stream: inout KeyStream) {
    if encoding != .utf8, range.count == 2 {
      // The lower ten bits of the unit.
      let (high, low) =
        encoding == .utf16BigEndian
        ? (range.lowerBound, range.lowerBound + 1)
        : (range.lowerBound + 1, range.lowerBound)
      bytes[high] = bytes[high] & 0xfc | UInt8(stream.below(4))
      bytes[low] = UInt8(stream.below(256))
      return
    }
    for index in range { bytes[index] = Self.ofClass(bytes[index], &stream) }
  }

  /// The first byte of a class of bytes that begin or continue characters alike, and how many there are; nil where a byte stays.
  static func byteClass(_ byte: UInt8) -> ClosedRange<UInt8>? {
    switch byte {
    case 0x30...0x39: 0x30...0x39
    case 0x41...0x5a: 0x41...0x5a
    case 0x61...0x7a: 0x61...0x7a
    // Control characters are what text in UTF-16 seems to be where the encoding is not known.
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

  /// Replaces text that is not in the database's encoding, byte by byte.
  private func replaceBytes(_ bytes: inout [UInt8], _ range: Range<Int>, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    for index in range { bytes[index] = Self.ofClass(bytes[index], &stream) }
  }

  static func block(of scalar: UInt32) -> ClosedRange<UInt32>? {
    switch scalar {
    case 0x30...0x39: 0x30...0x39
    case 0x41...0x5a: 0x41...0x5a
    case 0x61...0x7a: 0x61...0x7a
    case 0x01...0x08: 0x01...0x08
    case 0x0e...0x1f: 0x0e...0x1f
    case 0..<0x80: nil
    default: CharacterBlock.block(of: scalar)
    }
  }

  /// Replaces text of which neither beginning nor end need be known, word by word.
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
      // Numbers within words are words of their own, so that what is common in a text stays so.
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

  /// Replaces an identifier as text, alike in every encoding.
  private func replaceIdentifierText(_ bytes: inout [UInt8], _ range: Range<Int>) {
    let unit = encoding == .utf8 ? 1 : 2
    let low = encoding == .utf16BigEndian ? 1 : 0
    let text = (0..<36).map { bytes[range.lowerBound + $0 * unit + low] }
    for (index, byte) in identifier(for: text).enumerated() { bytes[range.lowerBound + index * unit + low] = byte }
  }

  /// Replaces the identifier in a reference to a file.
  func replaceIdentifier(ofReference bytes: inout [UInt8], _ range: Range<Int>) {
    let text = Array(bytes[(range.lowerBound + 1)..<(range.upperBound - 1)])
    for (index, byte) in identifier(for: text).enumerated() { bytes[range.lowerBound + 1 + index] = byte }
  }

  /// The pseudonym of an identifier of 36 characters of ASCII.
  func identifier(for original: [UInt8]) -> [UInt8] {
    var text = original
    let folded = original.map { $0 | 0x20 }
    var stream = KeyStream(function, seed: seed(folded.span, 0..<folded.count, isText: true))
    for index in text.indices where index != 14 {
      let byte = text[index]
      if index == 19 {
        // The variant's digit is one of 8, 9, a and b.
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
