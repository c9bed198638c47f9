internal import Platform

extension ByteSource {
  /// Fills a reused buffer with a range's bytes, cut off at the source's end.
  func fill(_ buffer: inout [UInt8], at offset: Int64, length: Int) throws(FileError) {
    let available = Int(max(0, min(Int64(length), count - offset)))
    if buffer.count < available {
      buffer.append(contentsOf: repeatElement(0, count: available - buffer.count))
    } else if buffer.count > available {
      buffer.removeLast(buffer.count - available)
    }
    guard available > 0 else { return }
    let got = try read(at: offset, length: available, into: &buffer)
    if got < available { buffer.removeLast(available - max(0, got)) }
  }
}

extension Span where Element == UInt8 {
  /// Returns a big-endian 16-bit number, or nil past the end.
  @inlinable @inline(__always) package func uint16(at offset: Int) -> Int? {
    guard offset >= 0, offset <= count &- 2 else { return nil }
    return Int(self[offset]) << 8 | Int(self[offset &+ 1])
  }

  /// Returns a big-endian 32-bit number, or nil past the end.
  @inlinable @inline(__always) package func uint32(at offset: Int) -> UInt32? {
    guard offset >= 0, offset <= count &- 4 else { return nil }
    return UInt32(self[offset]) << 24 | UInt32(self[offset &+ 1]) << 16 | UInt32(self[offset &+ 2]) << 8
      | UInt32(self[offset &+ 3])
  }

  /// Returns a big-endian 64-bit number, or nil past the end.
  @inline(__always)
  func uint64(at offset: Int) -> UInt64? {
    guard offset >= 0, offset <= count &- 8 else { return nil }
    var word: UInt64 = 0
    for index in 0..<8 { word = word << 8 | UInt64(self[offset &+ index]) }
    return word
  }

  /// Returns a big-endian signed number of 1 to 8 bytes, or nil past the end.
  @inlinable @inline(__always) package func signedInteger(at offset: Int, length: Int) -> Int64? {
    guard offset >= 0, length > 0, length <= 8, offset <= count &- length else { return nil }
    var value = Int64(Int8(bitPattern: self[offset]))
    var index = offset &+ 1
    let end = offset &+ length
    while index < end {
      value = value << 8 | Int64(self[index])
      index &+= 1
    }
    return value
  }
}

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

  @usableFromInline static func readLong(_ bytes: Span<UInt8>, at offset: inout Int, before limit: Int) -> Int64? {
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
