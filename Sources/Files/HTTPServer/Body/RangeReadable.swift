/// Bytes of a known number that can be read anywhere, from several threads.
package protocol RangeReadable: Sendable {
  var count: Int64 { get }

  /// Reads up to `length` bytes from an offset; fewer only at the end. An error breaks the connection.
  func read(at offset: Int64, length: Int) throws -> [UInt8]
}

/// A part of other bytes.
struct PartOfBytes: RangeReadable {
  let whole: any RangeReadable
  let range: Range<Int64>

  var count: Int64 { range.upperBound - range.lowerBound }

  func read(at offset: Int64, length: Int) throws -> [UInt8] {
    guard offset >= 0, offset < count, length > 0 else { return [] }
    return try whole.read(at: range.lowerBound + offset, length: Int(min(Int64(length), count - offset)))
  }
}
