/// Pieces of a stream, each with the end of the one before, so that nothing that lies across two is missed.
struct ScanWindow {
  private(set) var bytes: [UInt8] = []

  /// How many bytes at the beginning were there before.
  private(set) var seen = 0

  /// The offset of the first byte.
  private(set) var offset: Int64 = 0

  /// Goes on to the next piece.
  mutating func append(_ piece: ArraySlice<UInt8>) {
    let keep = min(bytes.count, 2 * WatchedValues.longestForm)
    offset += Int64(bytes.count - keep)
    bytes.removeFirst(bytes.count - keep)
    bytes.append(contentsOf: piece)
    seen = keep
  }
}
