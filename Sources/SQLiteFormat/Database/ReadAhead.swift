/// A stretch of the file, read ahead for sequential pages.
struct ReadAhead {
  static let length = 262_144

  var bytes: [UInt8] = []

  var offset: Int64 = 0

  var lastPage: UInt32 = 0

  /// Returns a page wholly in the stretch.
  func page(at pageOffset: Int64, size: Int) -> [UInt8]? {
    let start = pageOffset &- offset
    guard start >= 0, start <= Int64(bytes.count &- size) else { return nil }
    return Array(bytes[Int(start)..<(Int(start) &+ size)])
  }
}
