internal import Platform
internal import SQLiteFormat

/// Recovers and writes rows in phases.
struct RowRecovery {
  private let context: RowContext
  private var deleted: DeletedRows { DeletedRows(context: context) }
  private var uncommitted: UncommittedRows { UncommittedRows(context: context) }

  init(_ crawl: Crawl, into tables: RowTables) { context = RowContext(crawl, tables) }

  /// Runs all phases but the last.
  ///
  /// - Parameters:
  ///   - findsDeleted: whether that one follows.
  ///   - progress: called with the pages since the last call, 0 between phases.
  func run(findsDeleted: Bool, progress: (Int) throws -> Void) throws -> RowOutcome {
    if findsDeleted { context.tables.deletedDigests = try deleted.digests() }
    let (wounds, goBehindEnd) = try live(progress: progress)
    try progress(0)
    try IndexRowRecovery(context: context).run()
    try progress(0)
    var remarks = try uncommitted.settleBehindEnd(goBehindEnd: goBehindEnd)
    if !context.crawl.exchanged.isEmpty {
      let names = context.crawl.exchanged.map { printable(context.crawl.trees[$0].name) }.joined(separator: ", ")
      remarks.append("the roots of the tables \(names) were exchanged; each table got the one that its indexes have")
    }
    let unplaced = try UnplacedRows(context: context).write()
    return RowOutcome(
      crawl: context.crawl, tables: context.tables, wounds: wounds, unplacedRows: unplaced.rows,
      unplacedEntries: unplaced.entries, remarks: remarks + remarksOnKeys(wounds))
  }

  /// Returns a remark if highest keys of `AUTOINCREMENT` tables are lost.
  private func remarksOnKeys(_ wounds: PageDamage) -> [String] {
    let crawl = context.crawl
    guard let index = crawl.trees.firstIndex(where: { $0.isSequence && $0.isListed }) else { return [] }
    let tree = crawl.trees[index]
    let isLost = tree.gaps.contains { gap in
      crawl.reader.moved[gap.page] == nil && crawl.map.fate(gap.page) != .placed
        && !wounds.accountedFor.contains(gap.page)
    }
    guard isLost || !tree.isWalked || context.tables.tallies[index].destroyed > 0 else { return [] }
    return ["the list of the highest keys is damaged: keys of deleted rows may be used again"]
  }

  /// Runs the last phase: deleted and uncommitted rows.
  func addDeleted() throws {
    try deleted.write()
    try uncommitted.keepApart()
  }

  func claims(progress: (Int) throws -> Void) throws -> RowOutcome {
    let (wounds, _) = try live(progress: progress)
    return RowOutcome(
      crawl: context.crawl, tables: context.tables, wounds: wounds, unplacedRows: 0, unplacedEntries: 0, remarks: [])
  }

  /// Runs the first two phases: live rows, long ones last.
  private func live(progress: (Int) throws -> Void) throws -> (wounds: PageDamage, goBehindEnd: Bool) {
    context.crawl.contradictions = try ContradictionSearch.run(context, progress: progress)
    var reading = PageReading(context)
    try reading.run(progress: progress)
    var settlement = ChainSettlement(context, reading.longRows)
    try settlement.run()
    try context.tables.settleTexts(isSound: context.isSound && reading.wounds.pages.isEmpty)
    return (reading.wounds, settlement.longRows.goBehindEnd)
  }
}

struct RowOutcome {
  /// The pages and owners, including overflow pages.
  let crawl: Crawl

  let tables: RowTables

  let wounds: PageDamage

  let unplacedRows: Int64

  /// Entries of stray index pages, or rows of unknown tables without rowids.
  let unplacedEntries: Int64

  /// Remarks for the report; each means a possible loss.
  let remarks: [String]

  var reader: PageReader { crawl.reader }

  var tallies: [TableTally] { tables.tallies }

  var live: [OutputTable?] { tables.live }

  var database: OutputDatabase { tables.database }
}

/// The damage of pages, recorded while reading.
struct PageDamage {
  struct Wound {
    var badPointers: Int

    /// Those that led to a record of another table.
    var unfitting: Int

    var pointers: Int

    /// Whether a sector is lost.
    var isTorn: Bool

    /// Rows with keys that contradict their neighbors.
    var outOfOrder: Int
  }

  /// The limit of recorded pages.
  static let limit = 1 << 18

  /// Damage of pages with sound headers.
  private(set) var pages: [UInt32: Wound] = [:]

  /// Unusable pages without further rows.
  private(set) var accountedFor: Set<UInt32> = []

  /// The rows found on unusable pages, and the most that their other bytes have room for.
  private(set) var found: [UInt32: (rows: Int, room: Int)] = [:]

  mutating func noteUnusable(_ page: UInt32, _ scan: LeafCellScan, usableSize: Int) {
    guard found.count < Self.limit else { return }
    // A cell has a 2-byte pointer.
    let used = scan.cells.reduce(0) { $0 + $1.end - $1.offset + 2 }
    let room = used == 0 ? usableSize : max(0, usableSize - 8 - used) * scan.cells.count / used
    found[page] = (scan.cells.count, room)
    if scan.isMended || scan.isCarvedWhole, scan.torn.isEmpty { accountedFor.insert(page) }
  }

  @inline(__always)
  mutating func note(_ page: UInt32, _ scan: LeafCellScan) {
    guard scan.isDamaged || scan.isOutOfOrder else { return }
    add(page, scan)
  }

  private mutating func add(_ page: UInt32, _ scan: LeafCellScan) {
    guard pages.count < Self.limit else { return }
    pages[page] = Wound(
      badPointers: scan.badPointers, unfitting: scan.unfitting,
      pointers: scan.cells.count - scan.carved + scan.badPointers + scan.tornCells,
      isTorn: !scan.torn.isEmpty, outOfOrder: scan.cells.count { $0.isOutOfOrder })
  }
}

/// Phase 4: sets aside rows of unfinished transactions, and restores live rows that they moved.
struct UncommittedRows {
  let context: RowContext

  private var tables: RowTables { context.tables }

  /// Sets aside rows beyond the database's end, written by a transaction without its journal.
  ///
  /// A moved row's committed version may remain in the old page's free space, and becomes live.
  ///
  /// - Parameter goBehindEnd: whether long values extend there.
  /// - Returns: remarks for the report.
  func settleBehindEnd(goBehindEnd: Bool) throws -> [String] {
    let pages = context.crawl.pagesBehindEnd
    var rowids: [Int: Set<Int64>] = [:]
    try forEachRow(in: pages, of: context.reader) { row, _ in
      guard rowids[row.tree, default: []].count < Crawl.maximumMissing else { return }
      rowids[row.tree, default: []].insert(row.cell.rowid)
    }
    for (tree, rowids) in rowids.sorted(by: { $0.key < $1.key }) where tables.trees[tree].isWalked {
      let absent = try rowids.filter { try tables.live[tree]?.hasRow($0) == false }
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

  /// Sets aside rows of WAL frames after the last commit, and those that a journal undid.
  func keepApart() throws {
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

  private func keepApart(in pages: [UInt32], of reader: PageReader, reason: String) throws {
    let chains = context.chains.reading(reader)
    try forEachRow(in: pages, of: reader) { row, bytes in
      let cell = row.cell
      var payload = context.localPart(of: cell, bytes)
      var why = reason
      if cell.overflow != 0 {
        let outcome = try chains.follow(
          from: cell.overflow, length: cell.length, into: &payload, map: &context.crawl.map, claim: .own(tree: nil))
        if case .whole = outcome {} else { why += "; the rest of a long value cannot be found" }
      }
      guard try tables.live[row.tree]?.holds(payload.span, rowid: cell.rowid) != true
      else { return }
      try tables.keepApart(row, payload.span, reason: why)
    }
  }

  private func forEachRow(
    in pages: [UInt32], of reader: PageReader, _ body: (FoundRow, Span<UInt8>) throws -> Void
  ) throws {
    var buffer = reader.makeBuffer()
    var scan = LeafCellScan()
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

  /// Returns the table of a page in an unfinished transaction.
  private func tree(of page: UInt32, _ bytes: Span<UInt8>) throws -> Int? {
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

/// Phase 5: writes unattributed and alien rows into `lazaret_lost_and_found`, with the columns of SQLite's own such
/// table.
///
/// Entries of stray index pages are written too and counted separately, since tables without rowids look alike.
struct UnplacedRows {
  private static let maximumFields = 500

  /// The most candidates named for a page.
  private static let namedCandidates = 8

  private static let table = "lazaret_lost_and_found"

  let context: RowContext

  func write() throws -> (rows: Int64, entries: Int64) {
    let pages = context.crawl.unplaced
    guard !pages.isEmpty || !context.misfits.isEmpty else { return (0, 0) }
    var width = 1
    for page in pages { width = max(width, min(Self.maximumFields, context.crawl.map.fieldCount(page))) }
    for misfit in context.misfits { width = max(width, min(Self.maximumFields, misfit.fields)) }
    let insertion = try makeTable(width: width)
    var count: (rows: Int64, entries: Int64) = (0, 0)
    try forEachRow(on: pages, width: width) { cell, page, kind, isEntry, payload in
      try insertion.run(payload.span, firstParameter: 4, fields: width) { bound in
        insertion.bind(Int64(page), at: 1)
        insertion.bind(Int64(bound), at: 2)
        if kind == .tableLeaf { insertion.bind(cell.rowid, at: 3) } else { insertion.bindNull(at: 3) }
        if bound < width { for field in bound..<width { insertion.bindNull(at: 4 + field) } }
      }
      if isEntry { count.entries += 1 } else { count.rows += 1 }
    }
    return count
  }

  /// Reads the rows of stray pages, then alien rows.
  ///
  /// - Parameter body: takes the cell, its page and kind, whether it is an index entry, and the record.
  private func forEachRow(
    on pages: [UInt32], width: Int, _ body: (LeafCell, UInt32, PageKind, Bool, [UInt8]) throws -> Void
  ) throws {
    let any = RecordShape(
      fields: [RecordShape.Field](repeating: .init(allowed: .any, usual: .any), count: width), minimumFields: 1)
    var buffer = context.reader.makeBuffer()
    var scan = LeafCellScan()
    for page in pages {
      let candidates = try context.crawl.ties(for: page, &buffer) { index in
        !context.crawl.trees[index].isInternal && context.crawl.trees[index].kind != .index
      }
      guard try context.reader.readPlace(page, into: &buffer) else { continue }
      let kind = context.kind(of: page, hasRowids: context.crawl.map.look(page) == .tableLeaf)
      scan.read(
        buffer.span, start: 0, kind: kind, shape: any, geometry: context.reader.geometry, carves: false,
        admission: .all)
      let isIndex = kind != .tableLeaf && candidates.isEmpty
      try note(page, scan, candidates, isIndex: isIndex)
      for cell in scan.cells + scan.misfits.map(\.cell) {
        try body(cell, page, kind, isIndex, payload(of: cell, buffer))
      }
    }
    var current: UInt32 = 0
    for misfit in context.misfits {
      if misfit.page != current {
        guard try context.reader.readPlace(misfit.page, into: &buffer) else { continue }
        current = misfit.page
      }
      let owner = context.crawl.map.owner(misfit.page)
      let hasRowids = owner.map { context.tables.trees[$0].hasRowids } ?? true
      try body(
        misfit.cell, misfit.page, context.kind(of: misfit.page, hasRowids: hasRowids), false,
        payload(of: misfit.cell, buffer))
    }
  }

  private func payload(of cell: LeafCell, _ page: [UInt8]) throws -> [UInt8] {
    var payload = context.localPart(of: cell, page.span)
    if cell.overflow != 0 { _ = try context.complete(&payload, of: cell) }
    RecordShape.clearReservedTypes(&payload)
    return payload
  }

  /// - Parameter candidates: indexes in the list of trees.
  private func note(_ page: UInt32, _ scan: LeafCellScan, _ candidates: [Int], isIndex: Bool) throws {
    guard let first = scan.cells.map(\.rowid).min(), let last = scan.cells.map(\.rowid).max() else { return }
    let names = candidates.map { context.crawl.trees[$0].name }
    let list =
      names.prefix(Self.namedCandidates).joined(separator: ", ") + (names.count > Self.namedCandidates ? ", …" : "")
    try context.tables.notes.notePage(
      page, of: Self.table, source: context.tables.source(of: page), foundBy: "content", keys: first...last,
      rows: scan.cells.count, certainty: .doubtful, doubt: nil,
      reason: isIndex
        ? "no root leads to it; it is like the page of an index, or of a table without rowids that nothing tells of"
        : names.isEmpty
          ? "no root leads to it, and it fits no table that is known"
          : "no root leads to it, and nothing tells which table it is of; it fits \(list)")
  }

  private func makeTable(width: Int) throws -> OutputStatement {
    let columns = (0..<width).map { "c\($0)" }.joined(separator: ", ")
    try context.tables.database.execute(
      "CREATE TABLE \(Self.table) (rootpgno INTEGER, pgno INTEGER, nfield INTEGER, id INTEGER, \(columns))")
    let values = (1...(width + 3)).map { "?\($0)" }.joined(separator: ", ")
    return try context.tables.database.prepare(
      "INSERT INTO \(Self.table) (pgno, nfield, id, \(columns)) VALUES (\(values))")
  }
}
