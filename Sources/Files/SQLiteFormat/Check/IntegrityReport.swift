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
