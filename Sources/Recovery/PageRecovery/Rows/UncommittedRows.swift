internal import SQLiteFormat

/// The fourth phase: keeps the rows apart that a transaction wrote which never ended.
///
/// In: the pages that such a transaction wrote. Out: rows set aside, and live rows from free space that the transaction had
/// moved.
struct UncommittedRows {
  let context: RowContext

  private var tables: RowTables { context.tables }

  /// Deals with the rows of pages behind the end of the database, where a transaction wrote them whose journal is gone.
  ///
  /// They are set aside. Where such a row was moved there from another page, its committed version may still stand in that
  /// page's free space; then that is the live one.
  ///
  /// - Parameter goBehindEnd: whether long values of rows go on there.
  /// - Returns: what is to be said of it in the report.
  func settleBehindEnd(goBehindEnd: Bool) throws(SalvageError) -> [String] {
    let pages = context.crawl.pagesBehindEnd
    var rowids: [Int: Set<Int64>] = [:]
    try forEachRow(in: pages, of: context.reader) { row, _ in
      guard rowids[row.tree, default: []].count < Crawl.maximumMissing else { return }
      rowids[row.tree, default: []].insert(row.cell.rowid)
    }
    for (tree, rowids) in rowids.sorted(by: { $0.key < $1.key }) where tables.trees[tree].isWalked {
      var absent: Set<Int64> = []
      for rowid in rowids where try tables.live[tree]?.hasRow(rowid) == false { absent.insert(rowid) }
      try context.recoverFromFreeSpace(
        of: tree, absent,
        reason: "a transaction that did not end moved it to another page; the free space of its own still has it")
    }
    guard !rowids.isEmpty || goBehindEnd else { return [] }
    try keepApart(
      in: pages, of: context.reader,
      reason: EvidenceNotes.uncommitted + "on a page that only a transaction without an end wrote")
    return [
      "the file is longer than the database: a transaction did not end, and its journal is gone; other rows may have"
        + " values of it too"
    ]
  }

  /// Keeps the rows apart in frames behind the last commit of the log, and those that the journal of an unfinished
  /// transaction put right.
  func keepApart() throws(SalvageError) {
    guard let overlay = context.reader.overlay else { return }
    switch overlay.source {
    case .log:
      try keepApart(
        in: overlay.uncommitted.keys.sorted(), of: PageReader(showing: .uncommitted, of: context.reader),
        reason: EvidenceNotes.uncommitted + "in a frame behind the log's last commit")
    case .journal:
      try keepApart(
        in: overlay.images.keys.sorted(), of: PageReader(showing: .main, of: context.reader),
        reason: EvidenceNotes.uncommitted + "the rollback journal has what was there before")
    }
  }

  private func keepApart(in pages: [UInt32], of reader: PageReader, reason: String) throws(SalvageError) {
    let chains = context.chains.reading(reader)
    try forEachRow(in: pages, of: reader) { row, bytes throws(SalvageError) in
      let cell = row.cell
      var payload = context.localPart(of: cell, bytes)
      var why = reason
      if cell.overflow != 0 {
        let outcome = try chains.follow(
          from: cell.overflow, length: cell.length, into: &payload, map: &context.crawl.map, claim: .own(tree: nil))
        if case .whole = outcome {} else { why += "; the rest of a long value cannot be found" }
      }
      guard
        try tables.live[row.tree]?.holds(payload.span, from: 0, length: payload.count, rowid: cell.rowid) != true
      else { return }
      try tables.keepApart(row, payload.span, source: tables.source(of: row.page), reason: why)
    }
  }

  private func forEachRow(
    in pages: [UInt32], of reader: PageReader, _ body: (FoundRow, Span<UInt8>) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    var buffer = reader.makeBuffer()
    var scan = LeafScan()
    for page in pages where page > 1 && page <= context.crawl.map.pageCount {
      guard try reader.readPlace(page, into: &buffer), buffer[0] == PageKind.tableLeaf.rawValue,
        let tree = try tree(of: page, buffer.span)
      else { continue }
      scan.read(
        buffer.span, start: 0, kind: .tableLeaf, shape: tables.trees[tree].shape, geometry: reader.geometry,
        carves: false)
      for cell in scan.cells where !cell.isOutOfOrder {
        try body(FoundRow(tree: tree, page: page, cell: cell), buffer.span)
      }
    }
  }

  /// The table of a page as an unfinished transaction had it.
  private func tree(of page: UInt32, _ bytes: Span<UInt8>) throws(SalvageError) -> Int? {
    if let owner = context.crawl.map.owner(page), tables.live[owner] != nil, tables.trees[owner].hasRowids,
      PageScore.fit(bytes, start: 0, tables.trees[owner].shape, geometry: context.reader.geometry) != nil
    {
      return owner
    }
    guard let choice = context.crawl.choice(of: bytes, start: 0, hasRowids: true, where: { tables.live[$0] != nil }),
      choice.isDecisive
    else { return nil }
    return choice.tree
  }
}
