extension Database {
  /// What a scan of a whole database read.
  public struct ScanResult: Sendable, Hashable {
    /// The table leaves that were read.
    public var leaves = 0

    /// The bytes of those leaves.
    public var leafBytes = 0

    /// The rows that were read.
    public var rows = 0

    /// The columns that were read.
    public var columns = 0

    /// The bytes of text and blobs that were read.
    public var contentBytes = 0

    /// The cells that could not be read.
    public var badCells = 0

    /// A sum over everything that was read; it is the same for the same content.
    public var checksum: UInt64 = 0
  }

  /// Reads every row of every table with rowids: each rowid, record header, number, text and blob on the leaf itself.
  ///
  /// It is the fastest way through a database, for measuring and for warming caches; overflow pages are not followed.
  public func scanTables() throws(FormatError) -> ScanResult {
    var scan = LeafScan()
    var result = ScanResult()
    var roots = PageSet()
    for entry in try schema().entries where entry.kind == .table && entry.rootPage > 0 && roots.insert(entry.rootPage) {
      var walk = try BTreeWalk(database: self, root: entry.rootPage, isTable: true)
      while let page = try walk.nextPage() {
        scan.add(page)
        result.leaves += 1
        result.leafBytes += pageSize
      }
    }
    result.rows = scan.rows
    result.columns = scan.columns
    result.contentBytes = scan.contentBytes
    result.badCells = scan.badCells
    result.checksum = scan.checksum
    return result
  }
}
