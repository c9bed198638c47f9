/// The four kinds of b-tree page, by the first byte of their header.
public enum PageKind: UInt8, Sendable, Hashable {
  /// An inner page of an index or of a table WITHOUT ROWID.
  case indexInterior = 2

  /// An inner page of a table.
  case tableInterior = 5

  /// A leaf of an index or of a table WITHOUT ROWID.
  case indexLeaf = 10

  /// A leaf of a table.
  case tableLeaf = 13

  /// Whether it is a leaf.
  public var isLeaf: Bool { rawValue & 8 != 0 }

  /// Whether it belongs to a table with rowids.
  public var isTable: Bool { rawValue & 1 != 0 }

  /// The number of bytes of the page's header: 8 on leaves, 12 on inner pages.
  public var headerLength: Int { isLeaf ? 8 : 12 }
}
