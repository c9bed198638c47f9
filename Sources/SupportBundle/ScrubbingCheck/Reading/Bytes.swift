/// SQLite's number formats, independent of other modules.
enum Bytes {
  @inline(__always)
  static func two(_ bytes: Span<UInt8>, _ offset: Int) -> Int? {
    guard offset >= 0, offset &+ 2 <= bytes.count else { return nil }
    return Int(bytes[offset]) << 8 | Int(bytes[offset &+ 1])
  }

  @inline(__always)
  static func four(_ bytes: Span<UInt8>, _ offset: Int) -> Int? {
    guard offset >= 0, offset &+ 4 <= bytes.count else { return nil }
    var value = 0
    for index in offset..<(offset &+ 4) { value = value << 8 | Int(bytes[index]) }
    return value
  }

  @inline(__always)
  static func signed(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int64 {
    guard let first = range.first else { return 0 }
    var value = Int64(Int8(bitPattern: bytes[first]))
    for index in range.dropFirst() { value = value << 8 | Int64(bytes[index]) }
    return value
  }

  /// Reads a varint and advances the offset; nil if too long.
  @inline(__always)
  static func varint(_ bytes: Span<UInt8>, _ offset: inout Int, before end: Int) -> Int64? {
    guard offset >= 0, end <= bytes.count else { return nil }
    var value: UInt64 = 0
    var index = offset
    var taken = 0
    while index < end {
      let byte = bytes[index]
      index &+= 1
      taken &+= 1
      if taken == 9 {
        offset = index
        return Int64(bitPattern: value << 8 | UInt64(byte))
      }
      value = value << 7 | UInt64(byte & 0x7f)
      if byte < 0x80 {
        offset = index
        return Int64(bitPattern: value)
      }
    }
    return nil
  }

  /// Returns a field's length; nil for the two reserved types.
  @inline(__always)
  static func length(ofType type: Int64) -> Int? {
    switch type {
    case 0, 8, 9: 0
    case 1...4: Int(type)
    case 5: 6
    case 6, 7: 8
    case 12...: Int((type - 12) / 2)
    default: nil
    }
  }
}
