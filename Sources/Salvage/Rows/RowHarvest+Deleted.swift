internal import SQLiteFormat

extension RowHarvest {
  /// A deleted row that was found.
  private struct Found {
    var tree: Int
    var record: [UInt8]
    var rowid: Int64?
    var page: UInt32
    var source: String
    var reason: String
    var isOlderVersion = false
  }

  /// Notes the digests of everything that looks deleted, before the live rows are read.
  func listGhosts() throws(SalvageError) {
    var list = GhostList()
    try forEachDeleted { found throws(SalvageError) in
      list.add(GhostList.digest(found.record.span, from: 0, length: found.record.count))
    }
    ghosts = list
  }

  /// Writes the deleted rows that are no live rows.
  func writeDeleted() throws(SalvageError) {
    var written: Set<UInt64> = []
    try noteListedRows()
    isNotingMoves = true
    defer { isNotingMoves = false }
    try forEachDeleted { found throws(SalvageError) in
      let digest = GhostList.digest(found.record.span, from: 0, length: found.record.count)
      if ghosts?.isStruck(digest) == true { return }
      if written.count < GhostList.limit, !written.insert(digest &+ UInt64(found.tree)).inserted { return }
      guard let definition = crawl.trees[found.tree].definition else { return }
      if found.isOlderVersion {
        let cell = LeafCell(rowid: found.rowid ?? 0)
        try keepApart(
          found.record.span, from: 0, length: found.record.count, cell, page: found.page, tree: found.tree,
          source: found.source, reason: found.reason)
        return
      }
      if deletedTables[found.tree] == nil {
        deletedTables[found.tree] = try OutputTable(definition, role: .deleted, in: database)
      }
      guard let table = deletedTables[found.tree],
        try table.insert(found.record.span, from: 0, length: found.record.count, rowid: 0)
      else { return }
      tallies[found.tree].deleted += 1
      try notes.noteRow(
        table.name, row: table.count, key: found.rowid, page: found.page, cell: nil, source: found.source, .probable,
        reason: found.reason)
    }
  }

  private func forEachDeleted(_ body: (Found) throws(SalvageError) -> Void) throws(SalvageError) {
    guard crawl.map.pageCount >= 1 else { return }
    var buffer = reader.makeBuffer()
    for page in 1...crawl.map.pageCount {
      switch crawl.map.fate(page) {
      case .tree, .placed:
        guard crawl.map.look(page) == .tableLeaf, let tree = crawl.map.owner(page), liveTables[tree] != nil,
          try reader.readPlace(page, into: &buffer)
        else { continue }
        try freeSpace(of: page, tree: tree, buffer.span, body)
      case .free, .dead, .unclaimed:
        try abandoned(page, &buffer, body)
      case .damaged, .overflow, .special: continue
      }
    }
    try superseded(&buffer, body)
  }

  /// Whether deleted rows of a table are looked for.
  private func hasDeleted(_ tree: Int) -> Bool { liveTables[tree] != nil || crawl.trees[tree].isDropped }

  private func scanner(_ tree: Int) -> FreeSpaceScan {
    let definition = crawl.trees[tree].definition
    let first = definition?.storedColumns.first
    return FreeSpaceScan(
      shape: crawl.trees[tree].shape, geometry: reader.geometry,
      encoding: reader.layout.encoding, hasAlias: first != nil && first == definition?.rowidAlias)
  }

  private func freeSpace(
    of page: UInt32, tree: Int, _ bytes: Span<UInt8>, _ body: (Found) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    let start = page == 1 && bytes[0] != 13 ? DatabaseHeader.length : 0
    for ghost in scanner(tree).ghosts(bytes, start: start) {
      // SQLite leaves a copy where it moves a row to another page; with that page lost, this one need not be deleted.
      let isMoved = isMoved(ghost.rowid, of: tree)
      try report(
        ghost, tree: tree, page: page,
        reason: isMoved
          ? "in the free space of a page; the page that had it is lost, so that it may not have been deleted"
          : "deleted; in the free space of a page in use", isOlderVersion: isMoved, body)
    }
  }

  private func report(
    _ ghost: FreeSpaceScan.Ghost, tree: Int, page: UInt32, reason: String, isOlderVersion: Bool = false,
    _ body: (Found) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    var record = ghost.record
    if ghost.overflow != 0 {
      let outcome = try chains.follow(
        from: ghost.overflow, length: ghost.length, into: &record, map: &crawl.map, owner: nil)
      guard case .whole = outcome else { return }
    }
    guard record.count == ghost.length else { return }
    try body(
      Found(
        tree: tree, record: record, rowid: ghost.rowid, page: page, source: "freespace", reason: reason,
        isOlderVersion: isOlderVersion))
  }

  /// A page that no tree has any more: free, replaced, or forgotten.
  private func abandoned(
    _ page: UInt32, _ buffer: inout [UInt8], _ body: (Found) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    switch crawl.map.look(page) {
    case .tableLeaf where crawl.map.fieldCount(page) > 0:
      guard let choice = try crawl.choice(for: page, &buffer, where: { crawl.trees[$0].definition != nil }),
        choice.isDecisive, hasDeleted(choice.tree)
      else { return }
      let tree = choice.tree
      var scan = LeafScan()
      scan.read(
        buffer.span, start: 0, kind: .tableLeaf, shape: crawl.trees[tree].shape, geometry: reader.geometry,
        carves: false)
      for cell in scan.cells where !cell.isOutOfOrder && !cell.isOfUnknownEntity {
        let record = Array(buffer[cell.payload..<(cell.payload + cell.local)])
        let ghost = FreeSpaceScan.Ghost(
          record: record, length: cell.length, rowid: cell.rowid, overflow: cell.overflow,
          range: cell.offset..<cell.end)
        let isMoved = isMoved(cell.rowid, of: tree)
        try report(
          ghost, tree: tree, page: page,
          reason: isMoved
            ? "on a page that is free; the page that had it is lost, so that it may not have been deleted"
            : "deleted; on a page that is free", isOlderVersion: isMoved, body)
      }
      try freeSpace(of: page, tree: tree, buffer.span, body)
    case .linked where crawl.map.fate(page) == .free, .tableLeaf, .broken, .unknown:
      // A table's root loses its pointers when the table is dropped. The beginning of a trunk page of the freelist is overwritten; what lies behind may be old cells.
      guard try reader.readPlace(page, into: &buffer) else { return }
      var best: (tree: Int, ghosts: [FreeSpaceScan.Ghost])?
      for tree in crawl.trees.indices
      where hasDeleted(tree) && crawl.trees[tree].hasRowids && crawl.trees[tree].shape.fields.count >= 4 {
        var ghosts: [FreeSpaceScan.Ghost] = []
        scanner(tree).search(buffer.span, in: 8..<reader.usableSize, into: &ghosts)
        if ghosts.count > best?.ghosts.count ?? 0 { best = (tree, ghosts) }
      }
      for ghost in best?.ghosts ?? [] {
        try report(ghost, tree: best?.tree ?? 0, page: page, reason: "deleted; on a page that is free", body)
      }
    default: return
    }
  }

  /// Pages of the file that the log or the journal replaces: older versions of rows, and rows that were deleted since.
  private func superseded(
    _ buffer: inout [UInt8], _ body: (Found) throws(SalvageError) -> Void
  ) throws(SalvageError) {
    guard let overlay = reader.overlay, overlay.source == .log else { return }
    var scan = LeafScan()
    for page in overlay.images.keys.sorted() {
      guard let tree = crawl.map.owner(page), liveTables[tree] != nil, crawl.trees[tree].hasRowids,
        try reader.readMain(page, into: &buffer), buffer[0] == 13
      else { continue }
      scan.read(
        buffer.span, start: 0, kind: .tableLeaf, shape: crawl.trees[tree].shape, geometry: reader.geometry,
        carves: false)
      for cell in scan.cells where cell.overflow == 0 && !cell.isOutOfOrder {
        let record = Array(buffer[cell.payload..<(cell.payload + cell.local)])
        try body(
          Found(
            tree: tree, record: record, rowid: cell.rowid, page: page, source: "main",
            reason: "an older version; the write-ahead log replaces its page", isOlderVersion: true))
      }
    }
  }
}
