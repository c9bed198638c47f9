/// Bytes in memory, for `Response.ranges`.
package struct BytesInMemory: RangeReadable {
  /// All of them.
  package let bytes: [UInt8]

  /// Takes the bytes.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var count: Int64 { Int64(bytes.count) }

  package func read(at offset: Int64, length: Int) -> [UInt8] {
    guard offset >= 0, offset < count, length > 0 else { return [] }
    return Array(bytes[Int(offset)..<min(bytes.count, Int(offset) + min(length, bytes.count))])
  }
}
