/// What a pointer map says about a page: what it is, and which page leads to it (SQLite file format, "Pointer Map or
/// Ptrmap Pages").
public struct PointerMapEntry: Sendable, Hashable {
  /// What a page is.
  public enum Kind: UInt8, Sendable, Hashable {
    /// The root of a b-tree; no parent.
    case root = 1

    /// A page of the freelist; no parent.
    case free = 2

    /// The first page of an overflow chain; the parent is the page of the cell.
    case overflowFirst = 3

    /// A later page of an overflow chain; the parent is the page before it.
    case overflowNext = 4

    /// A page of a b-tree that is not its root; the parent is the page above it.
    case child = 5
  }

  /// What the page is; nil where the stored code is none of the five.
  public var kind: Kind?

  /// The page that leads to it, or 0.
  public var parent: UInt32

  /// The entry for a page, from the bytes of the pointer-map page that tells of it.
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
