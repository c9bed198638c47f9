internal import SQLiteFormat

/// The last phase: finds deleted rows in free space, abandoned pages, and pages that the WAL replaces.
///
/// Former copies of lost rows are set aside.
struct DeletedRows {
  let context: RowContext

  private var tables: RowTables { context.tables }
  private var reader: PageReader { context.reader }

  private struct Found {
    enum Place {
      case freeSpace

      case freePage

      /// On a former leaf.
      case remains

      /// On a page that the WAL replaces.
      case replaced
    }

    var tree: Int
    var record: [UInt8]
    var rowid: Int64?
    var page: UInt32
    var place: Place

    var source: String { place == .replaced ? "main" : "freespace" }
  }

  private typealias Body = (Found) throws -> Void

  /// Called before the live rows are read, which strike out their own.
  func digests() throws -> DeletedDigests {
    var digests = DeletedDigests()
    try forEachRecord { found in
      digests.add(DeletedDigests.digest(found.record.span))
    }
    return digests
  }

  func write() throws {
    var written: Set<UInt64> = []
    let listed = try listedRows()
    try forEachRecord { found in
      let digest = DeletedDigests.digest(found.record.span)
      if tables.deletedDigests?.isStruck(digest) == true { return }
      if written.count < DeletedDigests.limit, !written.insert(digest &+ UInt64(found.tree)).inserted { return }
      if let reason = formerCopy(found, listed) {
        try tables.keepApart(
          FoundRow(tree: found.tree, page: found.page, cell: LeafCell(rowid: found.rowid ?? 0)), found.record.span,
          source: found.source, reason: reason)
        return
      }
      try tables.writeDeleted(
        found.record.span, rowid: found.rowid, of: found.tree,
        EvidenceNotes.Origin(page: found.page, cell: nil, source: found.source),
        reason: found.place == .freeSpace
          ? "deleted; in the free space of a page in use" : "deleted; on a page that is free")
    }
  }

  // MARK: Deleted, or a former copy

  /// Returns why a record is a former copy, not a deleted row.
  ///
  /// SQLite leaves a copy when it moves a row; if the new page is lost, the row need not be deleted.
  private func formerCopy(_ found: Found, _ listed: [Int: Set<Int64>]) -> String? {
    switch found.place {
    case .replaced: "an older version; the write-ahead log replaces its page"
    case .freeSpace where isMoved(found, listed):
      "in the free space of a page; the page that had it is lost, so that it may not have been deleted"
    case .freePage where isMoved(found, listed):
      "on a page that is free; the page that had it is lost, so that it may not have been deleted"
    case .freeSpace, .freePage, .remains: nil
    }
  }

  /// Returns listed but missing rows of tables with lost pages.
  private func listedRows() throws -> [Int: Set<Int64>] {
    var listed: [Int: Set<Int64>] = [:]
    let trees = tables.trees
    for table in trees.indices where tables.live[table] != nil && trees[table].hasRowids {
      guard !trees[table].gaps.isEmpty else { continue }
      for index in trees.indices where trees[index].table == table && trees[index].isWalked {
        listed[table, default: []].formUnion(try context.crawl.missingRowids(of: table, by: index, tables))
      }
    }
    return listed
  }

  /// Whether a record may be a lost live row: an index lists it, or without one, its key is in the lost range.
  private func isMoved(_ found: Found, _ listed: [Int: Set<Int64>]) -> Bool {
    guard let rowid = found.rowid else { return false }
    if let listed = listed[found.tree] { return listed.contains(rowid) }
    let tree = tables.trees[found.tree]
    guard tree.gaps.contains(where: { $0.page > 0 && $0.above < rowid && rowid <= $0.upTo }) else { return false }
    return !tree.leaves.contains { context.crawl.map.firstKey($0) <= rowid && rowid <= context.crawl.map.lastKey($0) }
  }

  // MARK: Where records are looked for

  private func forEachRecord(_ body: Body) throws {
    guard context.crawl.map.pageCount >= 1 else { return }
    var buffer = reader.makeBuffer()
    var unplaced = PageSet()
    for page in context.crawl.unplaced { _ = unplaced.insert(page) }
    for page in 1...context.crawl.map.pageCount {
      switch context.crawl.map.fate(page) {
      // A row without a clear table may be live.
      case .unclaimed where unplaced.contains(page): continue
      case .tree, .placed:
        guard context.crawl.map.look(page) == .tableLeaf, let tree = context.crawl.map.owner(page),
          tables.live[tree] != nil, try reader.readPlace(page, into: &buffer)
        else { continue }
        try freeSpace(of: page, tree: tree, buffer.span, body)
      case .free, .dead, .unclaimed: try abandoned(page, &buffer, body)
      case .damaged, .overflow, .special: continue
      }
    }
    try superseded(&buffer, body)
  }

  private func hasDeleted(_ tree: Int) -> Bool { tables.live[tree] != nil || tables.trees[tree].isDropped }

  private func scanner(_ tree: Int) -> FreeSpaceScan {
    let definition = tables.trees[tree].definition
    let first = definition?.storedColumns.first
    return FreeSpaceScan(
      shape: tables.trees[tree].shape, geometry: reader.geometry, encoding: reader.layout.encoding,
      hasAlias: first != nil && first == definition?.rowidAlias)
  }

  private func freeSpace(of page: UInt32, tree: Int, _ bytes: Span<UInt8>, _ body: Body) throws {
    for deleted in scanner(tree).deletedRecords(bytes, start: context.start(of: page, bytes)) {
      try give(deleted, tree: tree, page: page, .freeSpace, body)
    }
  }

  private func give(
    _ deleted: FreeSpaceScan.DeletedRecord, tree: Int, page: UInt32, _ place: Found.Place, _ body: Body
  ) throws {
    guard let record = try context.complete(deleted) else { return }
    try body(Found(tree: tree, record: record, rowid: deleted.rowid, page: page, place: place))
  }

  /// Reads a free, replaced or forgotten page.
  private func abandoned(_ page: UInt32, _ buffer: inout [UInt8], _ body: Body) throws {
    switch context.crawl.map.look(page) {
    case .tableLeaf where context.crawl.map.fieldCount(page) > 0:
      guard let choice = try context.crawl.choice(for: page, &buffer, where: { tables.trees[$0].definition != nil }),
        let tree = try table(of: page, choice, &buffer), hasDeleted(tree)
      else { return }
      try cells(of: page, tree: tree, buffer.span, body)
      try freeSpace(of: page, tree: tree, buffer.span, body)
    case .linked where context.crawl.map.fate(page) == .free, .tableLeaf, .broken, .unknown:
      guard try reader.readPlace(page, into: &buffer) else { return }
      try remains(on: page, buffer.span, body)
    case .missing, .zero, .tableInterior, .indexLeaf, .indexInterior, .linked: return
    }
  }

  /// Returns the dropped table with this root; nil for several.
  private func droppedTree(of page: UInt32) -> Int? {
    let named = tables.trees.indices.filter { tables.trees[$0].isDropped && tables.trees[$0].droppedRoot == page }
    return named.count == 1 ? named.first : nil
  }

  /// Returns the most similar table; on a tie the dropped one with this root, if any.
  private func table(of page: UInt32, _ choice: Crawl.Choice, _ buffer: inout [UInt8]) throws -> Int? {
    if choice.isDecisive { return choice.tree }
    guard let dropped = droppedTree(of: page),
      let own = try context.crawl.choice(for: page, &buffer, where: { $0 == dropped }), own.score >= choice.score
    else { return nil }
    return dropped
  }

  private func cells(of page: UInt32, tree: Int, _ bytes: Span<UInt8>, _ body: Body) throws {
    var scan = LeafCellScan()
    scan.read(
      bytes, start: 0, kind: .tableLeaf, shape: tables.trees[tree].shape, geometry: reader.geometry, carves: false)
    for cell in scan.cells where !cell.isOutOfOrder && !cell.isOfUnknownEntity {
      let deleted = FreeSpaceScan.DeletedRecord(
        record: context.localPart(of: cell, bytes), length: cell.length, rowid: cell.rowid, overflow: cell.overflow,
        range: cell.offset..<cell.end)
      try give(deleted, tree: tree, page: page, .freePage, body)
    }
  }

  /// Reads the best-matching table's rows from a former leaf.
  ///
  /// Dropping a table clears its root's pointers; a freelist trunk page overwrites only the beginning.
  private func remains(on page: UInt32, _ bytes: Span<UInt8>, _ body: Body) throws {
    let dropped = droppedTree(of: page)
    var best: (tree: Int, deletedRecords: [FreeSpaceScan.DeletedRecord])?
    for tree in tables.trees.indices
    where hasDeleted(tree) && tables.trees[tree].hasRowids && tables.trees[tree].shape.fields.count >= 4 {
      var deletedRecords: [FreeSpaceScan.DeletedRecord] = []
      scanner(tree).search(bytes, in: 8..<reader.usableSize, into: &deletedRecords)
      let isMore = deletedRecords.count > best?.deletedRecords.count ?? 0
      let isDropped = tree == dropped && !deletedRecords.isEmpty && deletedRecords.count == best?.deletedRecords.count
      if isMore || isDropped { best = (tree, deletedRecords) }
    }
    guard let best else { return }
    for deleted in best.deletedRecords { try give(deleted, tree: best.tree, page: page, .remains, body) }
  }

  private func superseded(_ buffer: inout [UInt8], _ body: Body) throws {
    guard let overlay = reader.overlay, overlay.source == .log else { return }
    var scan = LeafCellScan()
    for page in overlay.images.keys.sorted() {
      guard let tree = context.crawl.map.owner(page), tables.live[tree] != nil, tables.trees[tree].hasRowids,
        try reader.readMain(page, into: &buffer), buffer[0] == PageKind.tableLeaf.rawValue
      else { continue }
      let bytes = buffer.span
      scan.read(
        bytes, start: 0, kind: .tableLeaf, shape: tables.trees[tree].shape, geometry: reader.geometry, carves: false)
      for cell in scan.cells where cell.overflow == 0 && !cell.isOutOfOrder {
        try body(
          Found(
            tree: tree, record: context.localPart(of: cell, bytes), rowid: cell.rowid, page: page, place: .replaced))
      }
    }
  }
}

/// Digests of apparently deleted records, to exclude live ones.
struct DeletedDigests {
  /// The limit at 16 bytes each.
  static let limit = 1 << 20

  private var digests: Set<UInt64> = []
  private var struck: Set<UInt64> = []

  mutating func add(_ digest: UInt64) {
    if digests.count < Self.limit { digests.insert(digest) }
  }

  mutating func strike(_ record: Span<UInt8>) {
    guard !digests.isEmpty else { return }
    let digest = Self.digest(record)
    if digests.contains(digest) { struck.insert(digest) }
  }

  func isStruck(_ digest: UInt64) -> Bool { struck.contains(digest) }

  /// Returns the FNV-1a digest (64 bits) of a record without its rowid.
  static func digest(_ bytes: Span<UInt8>) -> UInt64 {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for index in bytes.indices { hash = (hash ^ UInt64(bytes[index])) &* 0x100_0000_01b3 }
    return hash
  }
}
