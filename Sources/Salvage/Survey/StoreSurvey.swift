package import PersistentStore
package import Platform
package import SQLiteFormat
package import SystemPackage

/// A store's pages, damaged or not: locations, tables and indexes, and deleted rows; not thread-safe.
///
/// It covers a salvage up to the reading of rows, for callers that must treat pages the same way.
package struct StoreSurvey {
  package struct TreeFacts {
    package let name: String

    package let isIndex: Bool

    package let definition: TableDefinition?

    /// An index's table, by position in `trees`.
    package let table: Int?

    /// An index's column names; nil for expressions.
    package let indexedColumns: [String?]

    /// The key columns at the end of entries, for an index of a WITHOUT ROWID table.
    package let keyColumns: [String]

    /// Whether only a deleted schema row defines it.
    let isDropped: Bool

    /// Whether only a row outside the schema's tree names it, and it has no page.
    package let isGuess: Bool
  }

  package enum Standing {
    case live

    case free

    /// A pointer map or the lock-byte page.
    case special

    case other
  }

  /// A deleted or displaced row.
  package struct Remain {
    package let range: Range<Int>

    /// The record's offset; before the range's fifth byte if overwritten.
    package let payload: Int

    /// The record's bytes on the page, with its header restored.
    package let record: [UInt8]

    /// The full record length.
    package let length: Int

    /// Whether a rowid precedes the record.
    package var hasRowid = true
  }

  /// The trees, beginning with `sqlite_schema`.
  package let trees: [TreeFacts]

  package let layout: StoreLayout?

  /// The schema, supplemented from the model; of rows outside its tree, those that make a tree with pages.
  package let entries: [SchemaEntry]

  package let metadata: StoreMetadata?

  /// The page with the store's own model.
  package let modelPage: UInt32?

  /// The store's own model, compressed.
  package let modelBytes: [UInt8]?

  /// Whether known damage calls for a search for copies and misplaced pages.
  package let isDamaged: Bool

  private let crawl: Crawl
  private let apart: Set<CellPlace>

  /// The indexes that lead to pages with rows more like another's.
  private let leading: [UInt32: Int]

  init(
    crawl: Crawl, layout: StoreLayout?, entries: [SchemaEntry], guesses: Set<String>, metadata: StoreMetadata?,
    modelPage: UInt32?, modelBytes: [UInt8]?, isDamaged: Bool, apart: Set<CellPlace>
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
    self.entries = entries.filter { !guesses.contains("\($0.kind.rawValue) \($0.name)") }
    self.metadata = metadata
    trees = crawl.trees.map {
      TreeFacts(
        name: $0.name, isIndex: $0.kind == .index, definition: $0.definition, table: $0.table,
        indexedColumns: $0.indexedColumns, keyColumns: $0.keyColumns, isDropped: $0.isDropped,
        isGuess: guesses.contains($0.key))
    }
  }

  /// Surveys a store without writing.
  ///
  /// - Throws: `SalvageError`: `nothing-to-salvage` if no page is found, or a file system error.
  package static func of(
    _ path: FilePath, model: SalvageModel?, in fileSystem: FileSystem,
    progress: @escaping @Sendable (SalvagePhase, Int64, Int64) -> Bool
  ) throws(SalvageError) -> StoreSurvey {
    let options = Salvager.Options(findsDeleted: true, progress: progress)
    do {
      // Callers read pages at their offsets in the file.
      let evidence = try Evidence(path, in: fileSystem, realigns: false)
      return try SalvageRun(evidence: evidence, model: model, options: options).survey()
    } catch {
      throw SalvageError(any: error)
    }
  }

  package var pageSize: Int { crawl.reader.pageSize }

  package var usableSize: Int { crawl.reader.usableSize }

  /// The offset of page 1 in the file.
  package var base: Int64 { crawl.reader.layout.base }

  /// The number of pages in the main file, including a partial last one.
  package var pageCount: UInt32 { crawl.reader.layout.pageCount }

  package var encoding: TextEncoding { crawl.reader.layout.encoding }

  package var isAutoVacuum: Bool { crawl.reader.layout.header?.isAutoVacuum ?? false }

  package var pageLayout: PageLayout { crawl.reader.layout.layout }

  package func standing(of page: UInt32) -> Standing {
    switch crawl.map.fate(page) {
    case .tree, .placed: .live
    case .free: .free
    case .special: .special
    case .unclaimed, .damaged, .overflow, .dead: .other
    }
  }

  /// Whether a tree's root leads to this page, in its newest committed image.
  package func isReached(_ page: UInt32, _ part: StoreFileSet.Part, at offset: Int64) -> Bool {
    guard crawl.map.fate(page) == .tree else { return false }
    guard let overlay = crawl.reader.overlay, let image = overlay.images[page] else { return part == .main }
    guard !overlay.isContradicted, !image.isDoubtful, image.offset == offset else { return false }
    return part == (overlay.source == .log ? .wal : .journal)
  }

  /// The tree that owns a page number, if known.
  package func owner(ofPage page: UInt32) -> Int? {
    crawl.map.owner(page).flatMap { $0 < trees.count ? $0 : nil }
  }

  /// The page duplicated at page 1, if any; page 1 is then void.
  package var twinOfFirstPage: UInt32? { crawl.map.twinOfFirst > 0 ? crawl.map.twinOfFirst : nil }

  /// The actual place of a page's content.
  package func place(of page: UInt32) -> UInt32 { crawl.reader.moved.isEmpty ? page : crawl.reader.moved[page] ?? page }

  /// Whether a row's overflow chain may include another row's pages.
  ///
  /// - Parameter payload: the payload's offset on the page.
  package func isApart(page: UInt32, payload: Int) -> Bool {
    !apart.isEmpty && apart.contains(CellPlace(page: page, payload: payload))
  }

  package func isTrunk(_ page: UInt32) -> Bool { crawl.trunks.contains(page) }

  /// The tree for a page's bytes: the page number's owner if they fit, else the best fit.
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
    // SQLite checks the page against the index that leads there.
    if !kind.isTable, let tree = leading[page],
      PageScore.fit(bytes, start: start, crawl.trees[tree].shape, geometry: crawl.reader.geometry) != nil
    {
      return tree
    }
    return crawl.choice(of: bytes, start: start, hasRowids: kind.isTable) { $0 != 0 }?.tree
      ?? crawl.choice(of: bytes, start: start, hasRowids: kind.isTable) { _ in true }?.tree ?? known
  }

  package func remains(_ bytes: Span<UInt8>, start: Int, tree: Int) -> [Remain] {
    guard let scan = scan(tree) else { return [] }
    return scan.deletedRecords(bytes, start: start).map(Self.remain)
  }

  /// Finds whole or deleted rows in a range by content alone.
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

  /// Finds the table with the most rows in a range, and these rows.
  ///
  /// - Parameter tables: those to try; all if nil.
  package func remains(
    _ bytes: Span<UInt8>, in range: Range<Int>, page: UInt32, of tables: Range<Int>? = nil
  ) -> (tree: Int, remains: [Remain])? {
    var best: (tree: Int, remains: [Remain])?
    var end = range.upperBound
    while end > range.lowerBound, bytes[end - 1] == 0 { end -= 1 }
    // The schema comes last, as rows of any table with as many columns resemble its rows.
    let all = [owner(ofPage: page)].compactMap(\.self) + Array(trees.indices.dropFirst()) + [0]
    for tree in tables.map(Array.init) ?? all {
      let found = carved(bytes, in: range, tree: tree)
      let covered = found.reduce(0) { $0 + $1.range.count }
      if covered > best?.remains.reduce(0, { $0 + $1.range.count }) ?? 0 { best = (tree, found) }
      // No other table can cover much more: the rest is a former page's pointers.
      if covered * 8 >= (end - range.lowerBound) * 7 { break }
    }
    return best
  }

  /// Carves contiguous cells like a salvage, and finds rows between them.
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
