/// SQLite's variable-length integer of 1 to 9 big-endian bytes.
///
/// The first eight have seven bits each, the ninth eight (SQLite file format, "Variable-length integer").
package enum Varint {
  /// Reads a varint and advances `offset`; returns nil and leaves it if the varint passes `end`.
  @inlinable
  @inline(__always)
  package static func read(_ bytes: Span<UInt8>, at offset: inout Int, before end: Int) -> Int64? {
    let limit = end < bytes.count ? end : bytes.count
    guard offset >= 0, offset < limit else { return nil }
    let first = bytes[offset]
    if first < 0x80 {
      offset &+= 1
      return Int64(first)
    }
    return readLong(bytes, at: &offset, before: limit)
  }

  @usableFromInline
  static func readLong(_ bytes: Span<UInt8>, at offset: inout Int, before limit: Int) -> Int64? {
    var value: UInt64 = 0
    var index = offset
    let eighth = offset &+ 8
    while index < limit {
      let byte = bytes[index]
      if index == eighth {
        offset = index &+ 1
        return Int64(bitPattern: value << 8 | UInt64(byte))
      }
      value = value << 7 | UInt64(byte & 0x7f)
      index &+= 1
      if byte < 0x80 {
        offset = index
        return Int64(bitPattern: value)
      }
    }
    return nil
  }

  package static func length(of value: Int64) -> Int {
    let bits = UInt64(bitPattern: value)
    if bits >> 56 != 0 { return 9 }
    var length = 1
    var rest = bits >> 7
    while rest != 0 {
      length += 1
      rest >>= 7
    }
    return length
  }
}
