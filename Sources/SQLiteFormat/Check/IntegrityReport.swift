/// The result of a full database check.
public struct IntegrityReport: Sendable {
  /// The contents of one b-tree.
  public struct Tree: Sendable, Hashable {
    /// The root page.
    public var root: UInt32

    /// The name in the schema.
    public var name: String

    /// Whether it is a table with rowids.
    public var isTable: Bool

    /// The pages of the tree without overflow pages.
    public var pages = 0

    /// The pages of its overflow chains.
    public var overflowPages = 0

    /// The rows or entries.
    public var rows = 0

    /// The levels from the root to the leaves.
    public var depth = 0

    /// The rows per integer in a column, if requested; nil for other values.
    public var counts: [Int64?: Int]?
  }

  /// All findings, including those of header and sizes.
  public var findings: Findings

  /// The use of each page.
  public var ownership: PageOwnership

  /// The b-trees in schema order, after the schema's own.
  public var trees: [Tree]

  /// The number of freelist pages.
  public var freelistCount: Int

  /// The schema.
  public var schema: Schema

  /// Identical leaves of two tables, which a sound database can have.
  package var copies: [LeafCopy] = []

  /// Whether there is no damage.
  public var isSound: Bool { !findings.hasDamage }
}

/// The use of each page, in five bytes per page.
public struct PageOwnership: Sendable {
  /// The use of a page.
  public enum Use: UInt8, Sendable, Hashable {
    case none = 0

    case interior = 1

    case leaf = 2

    case overflow = 3

    case freelistTrunk = 4

    case freelistLeaf = 5

    case pointerMap = 6

    case lockBytes = 7

    /// Damaged, with a parent.
    case damaged = 8
  }

  private var uses: [UInt8]
  private var roots: [UInt32]

  init(pageCount: UInt32) {
    uses = [UInt8](repeating: 0, count: Int(pageCount))
    roots = [UInt32](repeating: 0, count: Int(pageCount))
  }

  /// The number of pages covered.
  public var pageCount: UInt32 { UInt32(uses.count) }

  /// Returns a page's use.
  public func use(of page: UInt32) -> Use {
    guard page >= 1, page <= pageCount else { return .none }
    return Use(rawValue: uses[Int(page) - 1]) ?? .none
  }

  /// Returns the root of the b-tree that owns a tree or overflow page; nil for others.
  public func root(of page: UInt32) -> UInt32? {
    guard page >= 1, page <= pageCount, roots[Int(page) - 1] != 0 else { return nil }
    return roots[Int(page) - 1]
  }

  /// Returns the number of pages with a use.
  public func count(of use: Use) -> Int { uses.count { $0 == use.rawValue } }

  /// Assigns a page's first use; returns false if it has one.
  mutating func claim(_ page: UInt32, as use: Use, root: UInt32) -> Bool {
    let index = Int(page) - 1
    guard index >= 0, index < uses.count, uses[index] == 0 else { return false }
    uses[index] = use.rawValue
    roots[index] = root
    return true
  }

  mutating func mark(_ page: UInt32, as use: Use) {
    let index = Int(page) - 1
    guard index >= 0, index < uses.count else { return }
    uses[index] = use.rawValue
  }
}
