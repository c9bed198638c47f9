extension Span where Element == UInt8 {
  /// Returns a big-endian 16-bit number, or nil past the end.
  @inlinable
  @inline(__always)
  package func uint16(at offset: Int) -> Int? {
    guard offset >= 0, offset <= count &- 2 else { return nil }
    return Int(self[offset]) << 8 | Int(self[offset &+ 1])
  }

  /// Returns a big-endian 32-bit number, or nil past the end.
  @inlinable
  @inline(__always)
  package func uint32(at offset: Int) -> UInt32? {
    guard offset >= 0, offset <= count &- 4 else { return nil }
    return UInt32(self[offset]) << 24 | UInt32(self[offset &+ 1]) << 16 | UInt32(self[offset &+ 2]) << 8
      | UInt32(self[offset &+ 3])
  }

  /// Returns a big-endian signed number of 1 to 8 bytes, or nil past the end.
  @inlinable
  @inline(__always)
  package func signedInteger(at offset: Int, length: Int) -> Int64? {
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
