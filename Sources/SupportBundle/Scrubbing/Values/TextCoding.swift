internal import SQLiteFormat

/// Reads and writes characters in a database's encoding.
enum TextCoding {
  /// A character or invalid byte.
  struct Character {
    /// The code point; nil if invalid.
    var scalar: UInt32?

    var length: Int
  }

  @inline(__always)
  static func read(_ bytes: Span<UInt8>, at offset: Int, before end: Int, _ encoding: TextEncoding) -> Character {
    encoding == .utf8
      ? readUTF8(bytes, at: offset, before: end)
      : readUTF16(bytes, at: offset, before: end, isBigEndian: encoding == .utf16BigEndian)
  }

  @inline(__always)
  private static func readUTF8(_ bytes: Span<UInt8>, at offset: Int, before end: Int) -> Character {
    let first = bytes[offset]
    if first < 0x80 { return Character(scalar: UInt32(first), length: 1) }
    let length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2
    guard first >= 0xc2, first <= 0xf4, offset &+ length <= end else { return Character(scalar: nil, length: 1) }
    var scalar = UInt32(first) & (0x7f >> UInt32(length))
    for index in 1..<length {
      let next = bytes[offset &+ index]
      guard next & 0xc0 == 0x80 else { return Character(scalar: nil, length: 1) }
      scalar = scalar << 6 | UInt32(next & 0x3f)
    }
    let isShortest = length == 2 || length == 3 && scalar >= 0x800 || length == 4 && scalar >= 0x10000
    guard isShortest, scalar <= 0x10ffff, !(0xd800...0xdfff).contains(scalar) else {
      return Character(scalar: nil, length: 1)
    }
    return Character(scalar: scalar, length: length)
  }

  private static func readUTF16(_ bytes: Span<UInt8>, at offset: Int, before end: Int, isBigEndian: Bool) -> Character {
    func unit(_ place: Int) -> UInt32 {
      isBigEndian
        ? UInt32(bytes[place]) << 8 | UInt32(bytes[place + 1]) : UInt32(bytes[place + 1]) << 8 | UInt32(bytes[place])
    }
    guard offset + 2 <= end else { return Character(scalar: nil, length: 1) }
    let first = unit(offset)
    guard (0xd800...0xdfff).contains(first) else { return Character(scalar: first, length: 2) }
    guard first < 0xdc00, offset + 4 <= end else { return Character(scalar: nil, length: 2) }
    let second = unit(offset + 2)
    guard (0xdc00...0xdfff).contains(second) else { return Character(scalar: nil, length: 2) }
    return Character(scalar: 0x10000 + (first - 0xd800) << 10 + (second - 0xdc00), length: 4)
  }

  static func isValid(_ bytes: Span<UInt8>, _ range: Range<Int>, _ encoding: TextEncoding) -> Bool {
    var offset = range.lowerBound
    while offset < range.upperBound {
      if encoding == .utf8, bytes[offset] < 0x80 {
        offset &+= 1
        continue
      }
      let character = read(bytes, at: offset, before: range.upperBound, encoding)
      guard character.scalar != nil else { return false }
      offset += character.length
    }
    return true
  }

  /// Overwrites a character of the same length.
  @inline(__always)
  static func write(_ scalar: UInt32, length: Int, into bytes: inout [UInt8], at offset: Int, _ encoding: TextEncoding)
  {
    if encoding == .utf8 {
      switch length {
      case 1: bytes[offset] = UInt8(truncatingIfNeeded: scalar)
      case 2:
        bytes[offset] = UInt8(truncatingIfNeeded: 0xc0 | scalar >> 6)
        bytes[offset &+ 1] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3f)
      case 3:
        bytes[offset] = UInt8(truncatingIfNeeded: 0xe0 | scalar >> 12)
        bytes[offset &+ 1] = UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3f)
        bytes[offset &+ 2] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3f)
      default:
        bytes[offset] = UInt8(truncatingIfNeeded: 0xf0 | scalar >> 18)
        bytes[offset &+ 1] = UInt8(truncatingIfNeeded: 0x80 | scalar >> 12 & 0x3f)
        bytes[offset &+ 2] = UInt8(truncatingIfNeeded: 0x80 | scalar >> 6 & 0x3f)
        bytes[offset &+ 3] = UInt8(truncatingIfNeeded: 0x80 | scalar & 0x3f)
      }
      return
    }
    func put(_ unit: UInt32, _ place: Int) {
      let (high, low) = (UInt8(truncatingIfNeeded: unit >> 8), UInt8(truncatingIfNeeded: unit))
      bytes[place] = encoding == .utf16BigEndian ? high : low
      bytes[place + 1] = encoding == .utf16BigEndian ? low : high
    }
    if length == 2 {
      put(scalar, offset)
    } else {
      put(0xd800 + (scalar - 0x10000) >> 10, offset)
      put(0xdc00 + (scalar - 0x10000) & 0x3ff, offset + 2)
    }
  }

  /// Appends UTF-8; invalid parts become 0xff, which no text contains.
  static func appendUTF8(_ bytes: Span<UInt8>, _ range: Range<Int>, _ encoding: TextEncoding, to text: inout [UInt8]) {
    var offset = range.lowerBound
    var character: [UInt8] = [0, 0, 0, 0]
    while offset < range.upperBound {
      let next = read(bytes, at: offset, before: range.upperBound, encoding)
      offset += next.length
      guard let scalar = next.scalar else {
        text.append(0xff)
        continue
      }
      let length = scalar < 0x80 ? 1 : scalar < 0x800 ? 2 : scalar < 0x10000 ? 3 : 4
      write(scalar, length: length, into: &character, at: 0, .utf8)
      text.append(contentsOf: character[..<length])
    }
  }
}
