/// How a payload is divided between its page and overflow pages, for one usable page size (SQLite file format, "B-tree
/// Cell Format": U, X, M and K).
public struct PayloadGeometry: Sendable, Hashable {
  /// The usable bytes of a page: U.
  public let usableSize: Int

  /// The largest payload that stays whole on a table leaf: X = U − 35.
  public let maximumTableLocal: Int

  /// The largest payload that stays whole on an index page: X = (U − 12) × 64 ÷ 255 − 23.
  public let maximumIndexLocal: Int

  /// The fewest bytes of a divided payload that stay on the page: M = (U − 12) × 32 ÷ 255 − 23.
  public let minimumLocal: Int

  /// The geometry of pages with the given number of usable bytes, at least 480.
  public init(usableSize: Int) {
    let usable = max(480, min(65536, usableSize))
    self.usableSize = usable
    maximumTableLocal = usable - 35
    maximumIndexLocal = (usable - 12) * 64 / 255 - 23
    minimumLocal = (usable - 12) * 32 / 255 - 23
  }

  /// The bytes of a payload of `length` bytes that are on the page itself.
  @inline(__always)
  public func localLength(of length: Int, onTableLeaf: Bool) -> Int {
    let maximum = onTableLeaf ? maximumTableLocal : maximumIndexLocal
    if length <= maximum { return length }
    let surplus = minimumLocal &+ (length &- minimumLocal) % (usableSize &- 4)
    return surplus <= maximum ? surplus : minimumLocal
  }

  /// How many overflow pages a payload of `length` bytes needs.
  public func overflowPageCount(of length: Int, onTableLeaf: Bool) -> Int {
    let rest = length &- localLength(of: length, onTableLeaf: onTableLeaf)
    return rest <= 0 ? 0 : (rest &+ usableSize &- 5) / (usableSize &- 4)
  }
}
