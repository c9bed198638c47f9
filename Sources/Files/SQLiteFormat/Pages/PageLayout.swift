/// The places of a database's pages whose number alone says what they are: pointer maps and the lock-byte page.
public struct PageLayout: Sendable, Hashable {
  /// The page size in bytes.
  public let pageSize: Int

  /// The usable bytes of a page.
  public let usableSize: Int

  /// A layout for pages of the given size.
  public init(pageSize: Int, usableSize: Int) {
    self.pageSize = max(512, pageSize)
    self.usableSize = max(480, usableSize)
  }

  /// The page that holds the lock bytes at 1 GiB, and nothing else.
  public var lockBytePage: UInt32 { UInt32((1 << 30) / pageSize) + 1 }

  /// How many pages one pointer-map page tells of.
  public var pointerMapEntries: Int { usableSize / 5 }

  /// The pointer-map page that tells of a page, in an auto-vacuum database; nil for page 1.
  public func pointerMapPage(for page: UInt32) -> UInt32? {
    guard page >= 2 else { return nil }
    let group = UInt32(pointerMapEntries) + 1
    let map = (page - 2) / group * group + 2
    return map == lockBytePage ? map + 1 : map
  }

  /// Whether a page is a pointer-map page, in an auto-vacuum database.
  public func isPointerMap(_ page: UInt32) -> Bool { pointerMapPage(for: page) == page }
}
