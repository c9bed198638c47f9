package import PersistentStore
package import Platform
package import SQLiteFormat
package import SystemPackage

/// What the pages of a store are, damaged or not: where they lie, which table or index each belongs to, and where on them
/// deleted rows are left.
///
/// It is what a salvage finds out before it reads rows, for callers that have to treat each page as a salvage would. Not for use
/// from several threads at once.
package struct StoreSurvey {
  /// A table or an index.
  package struct TreeFacts {
    /// Its name.
    package let name: String

    /// Whether it is an index.
    package let isIndex: Bool

    /// The table's definition; nil for indexes and for `sqlite_schema`.
    package let definition: TableDefinition?

    /// For an index, the place of its table.
    package let table: Int?

    /// For an index, the names of its columns; nil stands for an expression.
    package let indexedColumns: [String?]

    /// For an index of a table without rowids, the columns of its key that each entry ends with.
    package let keyColumns: [String]

    /// Whether it is only known from a deleted row of the schema.
    package let isDropped: Bool
  }

  /// What became of a page.
  package enum Standing {
    /// A page of a tree, or one that was found to belong to it.
    case live

    /// On the list of free pages, its trunks included.
    case free

    /// A pointer map, or the page of the lock bytes.
    case special

    case other
  }

  /// A deleted or displaced row.
  package struct Remain {
    /// Where on the page it is.
    package let range: Range<Int>

    /// The offset on the page of the first byte of its record; before the range's fifth byte where that is overwritten.
    package let payload: Int

    /// The bytes of the record that are on the page, its header made whole.
    package let record: [UInt8]

    /// The bytes of the whole record.
    package let length: Int

    /// Whether the number of a row precedes the record: it is a cell of a table with rowids.
    package var hasRowid = true
  }

  /// The tables and indexes; the first is `sqlite_schema`.
  package let trees: [TreeFacts]

  /// The layout of the store's model; nil where that is not known.
  package let layout: StoreLayout?

  /// The entries of the schema, supplemented from the model.
  package let entries: [SchemaEntry]

  /// The store's metadata; nil where they are lost.
  package let metadata: StoreMetadata?

  /// The page with the model that the store carries; nil where none could be read.
  package let modelPage: UInt32?

  /// The bytes of that model, packed as they are in the store.
  package let modelBytes: [UInt8]?

  /// Whether anything is known to be wrong with the pages: then copies and strangers are looked out for.
  package let isDamaged: Bool

  private let crawl: Crawl
  private let apart: Set<CellPlace>

  /// The indexes that lead to pages whose rows look more like another's.
  private let leading: [UInt32: Int]

  init(
    crawl: Crawl, layout: StoreLayout?, entries: [SchemaEntry], metadata: StoreMetadata?, modelPage: UInt32?,
    modelBytes: [UInt8]?, isDamaged: Bool, apart: Set<CellPlace>
  ) {
    self.crawl = crawl
    self.isDamaged = isDamaged
    self.apart = apart
    self.modelPage = modelPage
    self.modelBytes = modelBytes
    var leading: [UInt32: Int] = [:]
    for (tree, facts) in crawl.trees.enumerated() where !facts.hasRowids && !facts.isDropped {
      for gap in facts.gaps where gap.page > 0 { leading[gap.page] = tree }
    }
    self.leading = leading
    self.layout = layout
    self.entries = entries
    self.metadata = metadata
    trees = crawl.trees.map {
      TreeFacts(
        name: $0.name, isIndex: $0.kind == .index, definition: $0.definition, table: $0.table,
        indexedColumns: $0.indexedColumns, keyColumns: $0.keyColumns, isDropped: $0.isDropped)
    }
  }

  /// Looks at every page of a store; nothing is written.
  ///
  /// - Throws: `SalvageError`: `nothing-to-salvage` where no page is found, and what the file system says.
  package static func of(
    _ path: FilePath, model: SalvageModel?, in fileSystem: FileSystem,
    progress: @escaping @Sendable (SalvagePhase, Int64, Int64) -> Bool
  ) throws(SalvageError) -> StoreSurvey {
    let options = Salvager.Options(findsDeleted: true, progress: progress)
    // Callers read the pages where they lie.
    let evidence = try Evidence(path, in: fileSystem, realigns: false)
    return try SalvageRun(evidence: evidence, model: model, options: options).survey()
  }

  /// The page size in bytes.
  package var pageSize: Int { crawl.reader.pageSize }

  /// The usable bytes of a page.
  package var usableSize: Int { crawl.reader.usableSize }

  /// The offset of page 1 in the file.
  package var base: Int64 { crawl.reader.layout.base }

  /// The pages of which any byte is in the main file.
  package var pageCount: UInt32 { crawl.reader.layout.pageCount }

  /// The encoding of text.
  package var encoding: TextEncoding { crawl.reader.layout.encoding }

  /// Whether there are pointer maps by the header.
  package var isAutoVacuum: Bool { crawl.reader.layout.header?.isAutoVacuum ?? false }

  /// Where pages with special numbers are.
  package var pageLayout: PageLayout { crawl.reader.layout.layout }

  /// What became of a page.
  package func standing(of page: UInt32) -> Standing {
    switch crawl.map.fate(page) {
    case .tree, .placed: .live
    case .free: .free
    case .special: .special
    case .unclaimed, .damaged, .overflow, .dead: .other
    }
  }

  /// Whether the root of a tree leads to a page, and to this image of it: the newest committed one.
  ///
  /// - Parameters:
  ///   - part: the file that the image is in.
  ///   - offset: where in it the image begins.
  package func isReached(_ page: UInt32, _ part: StoreFileSet.Part, at offset: Int64) -> Bool {
    guard crawl.map.fate(page) == .tree else { return false }
    guard let overlay = crawl.reader.overlay, let image = overlay.images[page] else { return part == .main }
    guard !overlay.isContradicted, !image.isDoubtful, image.offset == offset else { return false }
    return part == (overlay.source == .log ? .wal : .journal)
  }

  /// The tree that a page belongs to by its number; nil where that is not known.
  package func owner(ofPage page: UInt32) -> Int? {
    crawl.map.owner(page).flatMap { $0 < trees.count ? $0 : nil }
  }

  /// The page that the first one of the file is a copy of, which is then no table's; nil where it is none.
  package var twinOfFirstPage: UInt32? { crawl.map.twinOfFirst > 0 ? crawl.map.twinOfFirst : nil }

  /// Where in the file the page is that belongs at the place of another one.
  package func place(of page: UInt32) -> UInt32 { crawl.reader.moved.isEmpty ? page : crawl.reader.moved[page] ?? page }

  /// Whether a row's long value is not to be believed: its pages may be another row's.
  ///
  /// - Parameter payload: the offset on the page of the row's payload.
  package func isApart(page: UInt32, payload: Int) -> Bool {
    !apart.isEmpty && apart.contains(CellPlace(page: page, payload: payload))
  }

  /// Whether a page holds the list of free pages.
  package func isTrunk(_ page: UInt32) -> Bool { crawl.trunks.contains(page) }

  /// The tree that the bytes of a page belong to: that of its number where they fit it, else the one that they fit best.
  ///
  /// - Parameter start: where the page's header begins.
  package func owner(of bytes: Span<UInt8>, page: UInt32, kind: PageKind, start: Int) -> Int? {
    var known: Int?
    if let owner = crawl.map.owner(page), owner < trees.count {
      if kind == .tableInterior { return owner }
      if crawl.trees[owner].hasRowids == kind.isTable {
        let isLive = standing(of: page) == .live
        if isLive, !crawl.isThorough, crawl.reader.overlay == nil { return owner }
        if PageScore.fit(bytes, start: start, crawl.trees[owner].shape, geometry: crawl.reader.geometry) != nil {
          return owner
        }
        if isLive { known = owner }
      }
    }
    if page == 1, kind.isTable, start > 0 { return 0 }
    guard kind != .tableInterior else { return nil }
    // SQLite compares what is on a page with the table of the index that leads there, whatever it looks like.
    if !kind.isTable, let tree = leading[page],
      PageScore.fit(bytes, start: start, crawl.trees[tree].shape, geometry: crawl.reader.geometry) != nil
    {
      return tree
    }
    return crawl.choice(of: bytes, start: start, hasRowids: kind.isTable) { $0 != 0 }?.tree
      ?? crawl.choice(of: bytes, start: start, hasRowids: kind.isTable) { _ in true }?.tree ?? known
  }

  /// The rows that are left in the free space of a table's leaf.
  package func remains(_ bytes: Span<UInt8>, start: Int, tree: Int) -> [Remain] {
    guard let scan = scan(tree) else { return [] }
    return scan.deletedRecords(bytes, start: start).map(Self.remain)
  }

  /// The rows, whole or deleted, that are found in a range by their content alone.
  package func remains(_ bytes: Span<UInt8>, in range: Range<Int>, tree: Int) -> [Remain] {
    guard tree < crawl.trees.count, range.count > 4 else { return [] }
    guard let scan = scan(tree) else {
      let behind = range.upperBound < bytes.count ? [range.upperBound..<bytes.count] : []
      return cells(bytes, in: range, tree: tree, covered: behind)
    }
    var deletedRecords: [FreeSpaceScan.DeletedRecord] = []
    scan.search(bytes, in: range, into: &deletedRecords)
    return deletedRecords.map(Self.remain)
  }

  /// The rows of the table that finds most in a range of a page, and that table.
  package func remains(
    _ bytes: Span<UInt8>, in range: Range<Int>, page: UInt32
  ) -> (tree: Int, remains: [Remain])? {
    var best: (tree: Int, remains: [Remain])?
    var end = range.upperBound
    while end > range.lowerBound, bytes[end - 1] == 0 { end -= 1 }
    // Rows of the schema come last, as those of any table with as many columns look like them.
    for tree in [owner(ofPage: page)].compactMap(\.self) + Array(trees.indices.dropFirst()) + [0] {
      let found = carved(bytes, in: range, tree: tree)
      let covered = found.reduce(0) { $0 + $1.range.count }
      if covered > best?.remains.reduce(0, { $0 + $1.range.count }) ?? 0 { best = (tree, found) }
      // No other table has much more of it: what is left are the pointers of what was a page.
      if covered * 8 >= (end - range.lowerBound) * 7 { break }
    }
    return best
  }

  /// The cells of a table that lie side by side in a range, as a salvage carves them, and the rows that are found between them.
  private func carved(_ bytes: Span<UInt8>, in range: Range<Int>, tree: Int) -> [Remain] {
    guard tree < crawl.trees.count else { return [] }
    let cells = cells(bytes, in: range, tree: tree, covered: [])
    guard crawl.trees[tree].hasRowids else { return cells }
    var found: [Remain] = []
    var offset = range.lowerBound
    for cell in cells where cell.range.lowerBound >= offset {
      found += remains(bytes, in: offset..<cell.range.lowerBound, tree: tree)
      found.append(cell)
      offset = cell.range.upperBound
    }
    if offset < range.upperBound { found += remains(bytes, in: offset..<range.upperBound, tree: tree) }
    return found
  }

  /// The cells of a table's leaf that are found in a range by their content; none of an index that is no table.
  private func cells(_ bytes: Span<UInt8>, in range: Range<Int>, tree: Int, covered: [Range<Int>]) -> [Remain] {
    let facts = crawl.trees[tree]
    guard !trees[tree].isIndex else { return [] }
    let cells = Carving.cells(
      bytes, in: range, kind: facts.hasRowids ? .tableLeaf : .indexLeaf, shape: facts.shape,
      geometry: crawl.reader.geometry, covered: covered, encoding: encoding)
    return cells.map { cell in
      let record = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
      return Remain(
        range: cell.offset..<cell.end, payload: cell.payload, record: record, length: cell.length,
        hasRowid: facts.hasRowids)
    }
  }

  private func scan(_ tree: Int) -> FreeSpaceScan? {
    guard tree < crawl.trees.count, crawl.trees[tree].hasRowids else { return nil }
    return FreeSpaceScan(
      shape: crawl.trees[tree].shape, geometry: crawl.reader.geometry, encoding: encoding,
      hasAlias: crawl.trees[tree].definition?.rowidAlias == 0)
  }

  private static func remain(_ deleted: FreeSpaceScan.DeletedRecord) -> Remain {
    let end = deleted.range.upperBound - (deleted.overflow != 0 ? 4 : 0)
    return Remain(
      range: deleted.range, payload: end - deleted.record.count, record: deleted.record, length: deleted.length)
  }
}
