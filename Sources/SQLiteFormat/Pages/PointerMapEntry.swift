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
