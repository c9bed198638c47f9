/// A stretch of the database file that was read at once, because its pages are asked for one after the other.
struct ReadAhead {
  /// The number of bytes read at once.
  static let length = 262_144

  var bytes: [UInt8] = []

  /// The offset in the file of the first byte.
  var offset: Int64 = 0

  /// The page of the file that was read last.
  var lastPage: UInt32 = 0

  /// A page's bytes, where the whole page is in the stretch.
  func page(at pageOffset: Int64, size: Int) -> [UInt8]? {
    let start = pageOffset &- offset
    guard start >= 0, start <= Int64(bytes.count &- size) else { return nil }
    return Array(bytes[Int(start)..<(Int(start) &+ size)])
  }
}
