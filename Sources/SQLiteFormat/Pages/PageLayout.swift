/// The pages with fixed numbers: pointer maps and the lock-byte page.
public struct PageLayout: Sendable, Hashable {
  /// The page size in bytes.
  public let pageSize: Int

  /// The usable bytes of a page.
  public let usableSize: Int

  /// Creates a layout.
  public init(pageSize: Int, usableSize: Int) {
    self.pageSize = max(512, pageSize)
    self.usableSize = max(480, usableSize)
  }

  /// The page of the lock bytes at 1 GiB.
  public var lockBytePage: UInt32 { UInt32((1 << 30) / pageSize) + 1 }

  /// The entries of one pointer-map page.
  public var pointerMapEntries: Int { usableSize / 5 }

  /// Returns the pointer-map page for a page in an auto-vacuum database; nil for page 1.
  public func pointerMapPage(for page: UInt32) -> UInt32? {
    guard page >= 2 else { return nil }
    let group = UInt32(pointerMapEntries) + 1
    let map = (page - 2) / group * group + 2
    return map == lockBytePage ? map + 1 : map
  }

  /// Whether a page is a pointer-map page in an auto-vacuum database.
  public func isPointerMap(_ page: UInt32) -> Bool { pointerMapPage(for: page) == page }
}

/// A pointer map's entry for a page: kind and parent (SQLite file format, "Pointer Map or Ptrmap Pages").
public struct PointerMapEntry: Sendable, Hashable {
  /// The kind of a page.
  public enum Kind: UInt8, Sendable, Hashable {
    case root = 1

    case free = 2

    /// The parent has the cell.
    case overflowFirst = 3

    /// The parent is the chain's previous page.
    case overflowNext = 4

    /// The parent is the b-tree page above.
    case child = 5
  }

  /// The page's kind; nil for an unknown code.
  public var kind: Kind?

  /// The parent page, or 0.
  public var parent: UInt32

  /// Reads a page's entry from its pointer-map page.
  public init?(for page: UInt32, in map: Span<UInt8>, mapPage: UInt32) {
    guard page > mapPage else { return nil }
    let offset = 5 * (Int(page) - Int(mapPage) - 1)
    guard offset < map.count, let parent = map.uint32(at: offset + 1) else { return nil }
    kind = Kind(rawValue: map[offset])
    self.parent = parent
  }

  init(_ kind: Kind, parent: UInt32) {
    self.kind = kind
    self.parent = parent
  }
}

package struct PageSet: Sendable {
  private var words: [UInt64] = []

  package private(set) var count = 0

  package init() {}

  package func contains(_ page: UInt32) -> Bool {
    let word = Int(page >> 6)
    guard word < words.count else { return false }
    return words[word] & (1 << UInt64(page & 63)) != 0
  }

  /// Inserts a page; returns whether it was new.
  ///
  /// Memory is an eighth of a byte per page number, so callers first check that the page exists.
  package mutating func insert(_ page: UInt32) -> Bool {
    let word = Int(page >> 6)
    if word >= words.count {
      words.append(contentsOf: repeatElement(0, count: max(word + 1, words.count &* 2) - words.count))
    }
    let bit: UInt64 = 1 << UInt64(page & 63)
    guard words[word] & bit == 0 else { return false }
    words[word] |= bit
    count += 1
    return true
  }
}
