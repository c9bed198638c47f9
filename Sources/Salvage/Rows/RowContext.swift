internal import SQLiteFormat

/// What all phases of recovering rows work on: the pages, whose they are, and the tables that the rows go into.
///
/// The phases change two things in it: which pages rows claim for their long values, and what is written. Nothing in it
/// tells a phase how to work.
final class RowContext {
  /// The pages and the trees; rows claim overflow pages in its map.
  var crawl: Crawl

  let reader: PageReader

  /// The overflow pages of rows.
  let chains: OverflowChains

  let tables: RowTables

  /// Whether no place of a tree lacks its page, so that the trees decide which rows are a table's.
  let isSound: Bool

  /// Well-formed records on the pages of tables that cannot be rows of those.
  private(set) var misfits: [Misfit] = []

  /// A record on the page of a table that cannot be a row of it.
  struct Misfit {
    var page: UInt32

    var cell: LeafCell

    /// The fields of its record.
    var fields: Int
  }

  private static let misfitLimit = 1 << 16

  init(_ crawl: Crawl, _ tables: RowTables) {
    isSound = crawl.damage == 0
    reader = crawl.reader
    chains = OverflowChains(crawl.reader)
    chains.overwritten = crawl.trunks
    chains.endOfDatabase = crawl.endOfDatabase
    chains.checksSwaps = !crawl.reader.moved.isEmpty || crawl.map.hasCrossedLinks
    self.tables = tables
    self.crawl = crawl
  }

  /// Keeps records of a page that cannot be rows of its table; returns how many there was room for.
  func keep(_ found: [LeafScan.Misfit], of page: UInt32) -> Int {
    let kept = found.prefix(Self.misfitLimit - misfits.count)
    misfits += kept.map { Misfit(page: page, cell: $0.cell, fields: $0.fields) }
    return kept.count
  }

  /// Where the header of a page of rows begins: behind that of the database on page 1, unless page 1 is a copy of another.
  func start(of page: UInt32, _ bytes: Span<UInt8>) -> Int {
    page == 1 && bytes[0] != PageKind.tableLeaf.rawValue ? DatabaseHeader.length : 0
  }

  /// The kind that a page of rows or entries has by the survey of pages.
  func kind(of page: UInt32, hasRowids: Bool) -> PageKind {
    hasRowids ? .tableLeaf : crawl.map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
  }

  /// The pages that look like overflow and belong to no one.
  func abandonedPages() -> [UInt32] {
    guard crawl.map.pageCount >= 2 else { return [] }
    var pages: [UInt32] = []
    for page in 2...crawl.map.pageCount where crawl.map.look(page) == .linked {
      switch crawl.map.fate(page) {
      case .unclaimed, .damaged: pages.append(page)
      case .tree, .placed, .overflow, .free, .special, .dead: continue
      }
      if pages.count >= PendingRows.limit { break }
    }
    return pages
  }

  /// The part of a row that is on its page.
  func localPart(of cell: LeafCell, _ bytes: Span<UInt8>) -> [UInt8] {
    Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
  }

  /// Puts the rest of a row behind the part that is on its page.
  func complete(
    _ payload: inout [UInt8], of cell: LeafCell, claim: OverflowChains.Claim = .none
  ) throws(SalvageError) -> OverflowChains.Outcome {
    try chains.follow(from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, claim: claim)
  }
}

extension RowContext {
  /// Takes rows from the free space of a table's pages that are known to exist: cells that were moved to a page which was
  /// never written, or is lost.
  ///
  /// - Parameters:
  ///   - missing: their rowids.
  ///   - reason: how it is known, in words for the notes.
  func recoverFromFreeSpace(of table: Int, _ missing: Set<Int64>, reason: String) throws(SalvageError) {
    guard !missing.isEmpty, let live = tables.live[table] else { return }
    let tree = tables.trees[table]
    let scanner = FreeSpaceScan(
      shape: tree.shape, geometry: reader.geometry, encoding: reader.layout.encoding,
      hasAlias: tree.definition?.rowidAlias != nil)
    var buffer = reader.makeBuffer()
    for page in tree.leaves {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      for deleted in scanner.deletedRecords(buffer.span, start: start(of: page, buffer.span)) {
        guard let rowid = deleted.rowid, missing.contains(rowid),
          let record = try complete(deleted, claim: .decided(tree: table)),
          try live.insert(record.span, from: 0, length: record.count, rowid: rowid)
        else { continue }
        tables.tallies[table].recovered += 1
        tables.deletedDigests?.strike(record.span, from: 0, length: record.count)
        try tables.noteDoubt(
          .freeSpace, row: rowid, of: table, EvidenceNotes.Origin(page: page, cell: nil, source: "freespace"),
          words: reason)
      }
    }
  }

  /// The whole record of a row in free space; nil where its rest cannot be read.
  func complete(
    _ deleted: FreeSpaceScan.DeletedRecord, claim: OverflowChains.Claim = .none
  ) throws(SalvageError) -> [UInt8]? {
    var record = deleted.record
    if deleted.overflow != 0 {
      let outcome = try chains.follow(
        from: deleted.overflow, length: deleted.length, into: &record, map: &crawl.map, claim: claim)
      guard case .whole = outcome else { return nil }
    }
    return record.count == deleted.length ? record : nil
  }
}

extension RowContext {
  /// Estimates the rows of a table's pages that are gone, by the mean of those that are there and the width of the gap.
  func estimateLoss(of index: Int) {
    let tree = crawl.trees[index]
    guard tree.hasRowids || !tree.gaps.isEmpty else { return }
    let pageCount = max(1, tree.leaves.count)
    if !tree.hasRowids, let rows = rowsInLostInnerPages(of: tree) {
      tables.tallies[index].onLostPages += rows
      return
    }
    let mean = max(1, (tables.tallies[index].recovered + Int64(pageCount) - 1) / Int64(pageCount))
    for gap in tree.gaps where gap.page > 0 {
      // A gap into which a page was placed is filled.
      let isFilled = reader.moved[gap.page] != nil || crawl.map.fate(gap.page) == .placed
      guard !isFilled, crawl.map.fate(gap.page) != .damaged || crawl.map.look(gap.page) != .broken else { continue }
      let (width, overflow) = gap.upTo.subtractingReportingOverflow(gap.above)
      // Only rowids bound how many rows there was room for.
      tables.tallies[index].onLostPages += overflow || !tree.hasRowids ? mean : min(mean, max(0, width))
    }
  }

  /// The rows of lost inner pages of a tree without rowids, where the pages below them were found: one less than those are.
  private func rowsInLostInnerPages(of tree: Tree) -> Int64? {
    let found = tree.innerPages.filter { crawl.map.fate($0) == .placed }.count
    let leaves = tree.leaves.filter { crawl.map.fate($0) == .placed }.count
    let lost = tree.gaps.filter { $0.page > 0 }.count
    guard lost > 0, found + leaves > lost else { return nil }
    return Int64(max(1, (found > 0 ? found : leaves) - 1))
  }
}
