internal import SQLiteFormat

/// The shared state of all recovery phases: pages, owners and output tables.
final class RowContext {
  /// Its map records claims on overflow pages.
  var crawl: Crawl

  let reader: PageReader

  let chains: OverflowChains

  let tables: RowTables

  /// Whether every tree is complete.
  let isSound: Bool

  /// Well-formed records alien to their table.
  private(set) var misfits: [(page: UInt32, cell: LeafCell, fields: Int)] = []

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

  /// Returns the number kept.
  func keep(_ found: [LeafCellScan.Misfit], of page: UInt32) -> Int {
    let kept = found.prefix(Self.misfitLimit - misfits.count)
    misfits += kept.map { (page, $0.cell, $0.fields) }
    return kept.count
  }

  /// Returns the offset after the database header on page 1, unless that is a copy of another page.
  func start(of page: UInt32, _ bytes: Span<UInt8>) -> Int {
    page == 1 && bytes[0] != PageKind.tableLeaf.rawValue ? DatabaseHeader.length : 0
  }

  func kind(of page: UInt32, hasRowids: Bool) -> PageKind {
    hasRowids ? .tableLeaf : crawl.map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
  }

  /// Returns overflow-like pages without an owner.
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

  func localPart(of cell: LeafCell, _ bytes: Span<UInt8>) -> [UInt8] {
    Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
  }

  /// Appends the overflow chain of a row to its local part.
  func complete(
    _ payload: inout [UInt8], of cell: LeafCell, claim: OverflowChains.Claim = .none
  ) throws -> OverflowChains.Outcome {
    try chains.follow(from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, claim: claim)
  }
}

extension RowContext {
  /// Recovers known missing rows from free space, moved to a page that is lost or was never written.
  ///
  /// - Parameter reason: the evidence, for the notes.
  func recoverFromFreeSpace(of table: Int, _ missing: Set<Int64>, reason: String) throws {
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
          try live.insert(record.span, rowid: rowid)
        else { continue }
        tables.tallies[table].recovered += 1
        tables.deletedDigests?.strike(record.span)
        try tables.noteDoubt(
          .freeSpace, row: rowid, of: table, EvidenceNotes.Origin(page: page, cell: nil, source: "freespace"),
          words: reason)
      }
    }
  }

  /// Returns a free-space row's record; nil if incomplete.
  func complete(_ deleted: FreeSpaceScan.DeletedRecord, claim: OverflowChains.Claim = .none) throws -> [UInt8]? {
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
  /// Estimates lost rows by the mean per page, the gap's width, and the rows found on the page.
  func estimateLoss(of index: Int, _ wounds: PageDamage) {
    let tree = crawl.trees[index]
    guard tree.hasRowids || !tree.gaps.isEmpty else { return }
    let pageCount = max(1, tree.leaves.count + tree.gaps.count { wounds.found[$0.page] != nil })
    if !tree.hasRowids, let rows = rowsInLostInnerPages(of: tree) {
      tables.tallies[index].onLostPages += rows
      return
    }
    let mean = max(1, (tables.tallies[index].recovered + Int64(pageCount) - 1) / Int64(pageCount))
    for gap in tree.gaps where gap.page > 0 && !wounds.accountedFor.contains(gap.page) {
      // A placed page fills the gap.
      let isFilled = reader.moved[gap.page] != nil || crawl.map.fate(gap.page) == .placed
      guard !isFilled, crawl.map.fate(gap.page) != .damaged || crawl.map.look(gap.page) != .broken else { continue }
      let (width, overflow) = gap.upTo.subtractingReportingOverflow(gap.above)
      // Only rowids bound the number of rows.
      let rows = overflow || !tree.hasRowids ? mean : min(mean, max(0, width))
      let found = wounds.found[gap.page].map { max(0, min(rows - Int64($0.rows), Int64($0.room))) }
      tables.tallies[index].onLostPages += found ?? rows
    }
  }

  /// Returns the rows of lost interior pages without rowids: one less than the found children.
  private func rowsInLostInnerPages(of tree: Tree) -> Int64? {
    let found = tree.innerPages.filter { crawl.map.fate($0) == .placed }.count
    let leaves = tree.leaves.filter { crawl.map.fate($0) == .placed }.count
    let lost = tree.gaps.filter { $0.page > 0 }.count
    guard lost > 0, found + leaves > lost else { return nil }
    return Int64(max(1, (found > 0 ? found : leaves) - 1))
  }
}
