/// A trunk page of the freelist: the next trunk, and leaves that are free (SQLite file format, "The Freelist").
public struct FreelistTrunk: Sendable, Hashable {
  /// The next trunk page, or 0 behind the last.
  public var next: UInt32

  /// The leaves, as many as can be on the page.
  public var leaves: [UInt32]

  /// The number of leaves that the page claims.
  public var storedLeafCount: UInt32

  /// Whether all claimed leaves fit on the page.
  public var isSound: Bool { Int(storedLeafCount) == leaves.count }

  /// Reads a trunk page's bytes; nil where there are fewer than eight.
  public init?(_ bytes: [UInt8], usableSize: Int) {
    let span = bytes.span
    guard let next = span.uint32(at: 0), let count = span.uint32(at: 4) else { return nil }
    self.next = next
    storedLeafCount = count
    let room = max(0, min(usableSize, bytes.count) / 4 - 2)
    leaves = (0..<min(Int(count), room)).map { span.uint32(at: 8 + 4 * $0) ?? 0 }
  }
}
