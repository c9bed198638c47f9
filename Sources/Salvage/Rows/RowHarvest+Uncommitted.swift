internal import SQLiteFormat

extension RowHarvest {
  /// Deals with the rows of pages behind the end of the database: a transaction wrote them that never ended, and its
  /// journal is gone.
  ///
  /// They are kept apart. Where such a row was moved there from another page, its committed version may still stand in that
  /// page's free space; then that is the live one.
  func harvestBehindEnd() throws(SalvageError) {
    var rowids: [Int: Set<Int64>] = [:]
    try forEachUncommitted(in: crawl.pagesBehindEnd) { tree, cell, _, _ in
      guard rowids[tree, default: []].count < Self.maximumMissing else { return }
      rowids[tree, default: []].insert(cell.rowid)
    }
    for (tree, missing) in rowids.sorted(by: { $0.key < $1.key }) where crawl.trees[tree].isWalked {
      var absent: Set<Int64> = []
      for rowid in missing where try liveTables[tree]?.hasRow(rowid) == false { absent.insert(rowid) }
      try recoverFromFreeSpace(
        of: tree, absent,
        reason: "a transaction that did not end moved it to another page; the free space of its own still has it")
    }
    guard !rowids.isEmpty || goesBehindEnd else { return }
    try keepUncommitted(
      in: crawl.pagesBehindEnd, reason: "not committed; on a page that only a transaction without an end wrote")
    remarks.append(
      "the file is longer than the database: a transaction did not end, and its journal is gone; other rows may have"
        + " values of it too")
  }

  /// Keeps the rows apart that a transaction wrote which never ended: frames behind the last commit of the log, and what
  /// the journal of an unfinished transaction put right.
  func harvestUncommitted() throws(SalvageError) {
    guard let overlay = reader.overlay else { return }
    switch overlay.source {
    case .log:
      reader.showsUncommitted = true
      defer { reader.showsUncommitted = false }
      try keepUncommitted(
        in: overlay.uncommitted.keys.sorted(), reason: "not committed; in a frame behind the log's last commit")
    case .journal:
      reader.showsMain = true
      defer { reader.showsMain = false }
      try keepUncommitted(
        in: overlay.images.keys.sorted(), reason: "not committed; the rollback journal has what was there before")
    }
  }

  private func keepUncommitted(in pages: [UInt32], reason: String) throws(SalvageError) {
    try forEachUncommitted(in: pages) { tree, cell, bytes, page throws(SalvageError) in
      var payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
      var why = reason
      if cell.overflow != 0 {
        let outcome = try chains.follow(
          from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map, owner: nil, isOwn: true)
        if case .whole = outcome {} else { why += "; the rest of a long value cannot be found" }
      }
      guard try liveTables[tree]?.holds(payload.span, from: 0, length: payload.count, rowid: cell.rowid) != true else {
        return
      }
      try keepApart(
        payload.span, from: 0, length: payload.count, cell, page: page, tree: tree, source: source(of: page),
        reason: why)
    }
  }

  private func forEachUncommitted(
    in pages: [UInt32], _ body: (Int, LeafCell, Span<UInt8>, UInt32) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    var buffer = reader.makeBuffer()
    var scan = LeafScan()
    for page in pages where page > 1 && page <= crawl.map.pageCount {
      guard try reader.readPlace(page, into: &buffer), buffer[0] == PageKind.tableLeaf.rawValue else { continue }
      let content = buffer.span
      guard let tree = try uncommittedTree(of: page, content) else { continue }
      scan.read(
        content, start: 0, kind: .tableLeaf, shape: crawl.trees[tree].shape, geometry: reader.geometry,
        carves: false)
      for cell in scan.cells where !cell.isOutOfOrder { try body(tree, cell, content, page) }
    }
  }

  /// The table of a page as an unfinished transaction had it.
  private func uncommittedTree(of page: UInt32, _ bytes: Span<UInt8>) throws(SalvageError) -> Int? {
    if let owner = crawl.map.owner(page), liveTables[owner] != nil, crawl.trees[owner].hasRowids,
      PageScore.score(bytes, start: 0, crawl.trees[owner].shape, geometry: reader.geometry) != nil
    {
      return owner
    }
    guard let choice = crawl.choice(of: bytes, start: 0, hasRowids: true, where: { liveTables[$0] != nil }),
      choice.isDecisive
    else { return nil }
    return choice.tree
  }
}
