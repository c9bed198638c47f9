/// What a full check of a database found.
public struct IntegrityReport: Sendable {
  /// What one b-tree holds.
  public struct Tree: Sendable, Hashable {
    /// The root page.
    public var root: UInt32

    /// The name in the schema.
    public var name: String

    /// Whether it is a table with rowids; else it is an index or a table WITHOUT ROWID.
    public var isTable: Bool

    /// The pages of the tree without overflow pages.
    public var pages = 0

    /// The pages of its overflow chains.
    public var overflowPages = 0

    /// The rows or entries.
    public var rows = 0

    /// The levels from the root to the leaves.
    public var depth = 0

    /// The rows for each integer in a column, where that was asked for; those with anything else there under nil.
    public var counts: [Int64?: Int]?
  }

  /// Everything that was found, header and sizes included.
  public var findings: Findings

  /// What each page is used for.
  public var ownership: PageOwnership

  /// The b-trees in the schema's order, after the schema's own.
  public var trees: [Tree]

  /// The number of pages in the freelist.
  public var freelistCount: Int

  /// The schema that was read on the way.
  public var schema: Schema

  /// Leaves that are the same byte for byte in two tables, as they can be in a sound database.
  package var copies: [LeafCopy] = []

  /// Whether nothing is damaged.
  public var isSound: Bool { !findings.hasDamage }
}

/// What each page of a database is used for: five bytes for each page.
public struct PageOwnership: Sendable {
  /// What a page is used for.
  public enum Use: UInt8, Sendable, Hashable {
    case none = 0

    /// A page of a b-tree that is not a leaf.
    case interior = 1

    /// A leaf of a b-tree.
    case leaf = 2

    /// A page of an overflow chain.
    case overflow = 3

    /// A trunk of the freelist.
    case freelistTrunk = 4

    /// A leaf of the freelist.
    case freelistLeaf = 5

    /// A page of the pointer map.
    case pointerMap = 6

    /// The page of the lock bytes.
    case lockBytes = 7

    /// A page that something leads to and that is damaged.
    case damaged = 8
  }

  private var uses: [UInt8]
  private var roots: [UInt32]

  init(pageCount: UInt32) {
    uses = [UInt8](repeating: 0, count: Int(pageCount))
    roots = [UInt32](repeating: 0, count: Int(pageCount))
  }

  /// The number of pages told of.
  public var pageCount: UInt32 { UInt32(uses.count) }

  /// What a page is used for.
  public func use(of page: UInt32) -> Use {
    guard page >= 1, page <= pageCount else { return .none }
    return Use(rawValue: uses[Int(page) - 1]) ?? .none
  }

  /// The root of the b-tree that a page belongs to, as a page of the tree or of an overflow chain; nil for others.
  public func root(of page: UInt32) -> UInt32? {
    guard page >= 1, page <= pageCount, roots[Int(page) - 1] != 0 else { return nil }
    return roots[Int(page) - 1]
  }

  /// How many pages have a use.
  public func count(of use: Use) -> Int {
    uses.count { $0 == use.rawValue }
  }

  /// Gives a page its use; false where it has one already, which it keeps.
  mutating func claim(_ page: UInt32, as use: Use, root: UInt32) -> Bool {
    let index = Int(page) - 1
    guard index >= 0, index < uses.count, uses[index] == 0 else { return false }
    uses[index] = use.rawValue
    roots[index] = root
    return true
  }

  /// Gives a page another use.
  mutating func mark(_ page: UInt32, as use: Use) {
    let index = Int(page) - 1
    guard index >= 0, index < uses.count else { return }
    uses[index] = use.rawValue
  }
}
