internal import SQLiteFormat

extension Pseudonyms {
  func replaceWholeText(_ bytes: inout [UInt8], _ range: Range<Int>) -> Outcome {
    let seed = seed(bytes.span, range, isText: true)
    if let ordered = orderedTexts.pseudonym(seed: seed) {
      if range.count > ordered.count { replaceText(&bytes, range, from: ordered.count, seed: seed) }
      for (index, byte) in ordered.enumerated() { bytes[range.lowerBound + index] = byte }
      return .ordered
    }
    replaceText(&bytes, range, from: 0, seed: seed)
    return .replaced
  }

  /// Replaces text from an offset on.
  func replaceText(_ bytes: inout [UInt8], _ range: Range<Int>, from: Int, seed: UInt64) {
    let start = range.lowerBound + from
    let unit = encoding == .utf8 ? 1 : 2
    if from == 0, BlobForm.isIdentifierText(bytes.span, range, encoding) {
      replaceIdentifierText(&bytes, range, seed: seed)
      return
    }
    if range.count <= Self.longestWhole * unit {
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
      } else if isNarrow, byte < 0xc0, index == range.lowerBound || bytes[index - 1] < 0xc0 {
        // A byte that continues nothing: any other continues nothing either.
        bytes[index] = 0x80 | UInt8(stream.below(64))
      }
      index &+= character.length
    }
  }

  static func block(of scalar: UInt32) -> ClosedRange<UInt32>? {
    switch scalar {
    case 0x30...0x39: 0x30...0x39
    case 0x41...0x5a: 0x41...0x5a
    case 0x61...0x7a: 0x61...0x7a
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
      if isNarrow { return bytes[place] >= 0x80 || Self.isAlphanumeric(bytes[place]) }
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
      var stream = KeyStream(function, seed: function(bytes.span, index..<next, tweak: 0x77_6f72))
      replaceCharacters(&bytes, index..<next, &stream)
      index = next
    }
  }

  private func replaceIdentifierText(_ bytes: inout [UInt8], _ range: Range<Int>, seed: UInt64) {
    var stream = KeyStream(function, seed: seed)
    let unit = encoding == .utf8 ? 1 : 2
    for index in 0..<36 where index != 14 {
      let place = range.lowerBound + index * unit + (encoding == .utf16BigEndian ? 1 : 0)
      let byte = bytes[place]
      if index == 19 {
        // The variant's digit is one of 8, 9, a and b.
        if byte == 0x38 || byte == 0x39 { bytes[place] = 0x38 + UInt8(stream.below(2)) }
      } else if byte >= 0x30, byte <= 0x39 {
        bytes[place] = 0x30 + UInt8(stream.below(10))
      } else if byte != 0x2d {
        bytes[place] = byte & 0x60 | UInt8(1 + stream.below(6))
      }
    }
  }
}
