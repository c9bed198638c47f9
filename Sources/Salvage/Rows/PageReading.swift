internal import SQLiteFormat

/// Phase 1: reads each table's pages, writes their rows, keeps undecided long rows, and records page damage.
struct PageReading {
  let context: RowContext

  private(set) var longRows: LongRows

  private(set) var wounds = PageDamage()

  /// The values one bit flip away from usual ones.
  private var flippable = FlippableValues()

  private var tables: RowTables { context.tables }
  private var reader: PageReader { context.reader }

  init(_ context: RowContext) {
    self.context = context
    longRows = LongRows(context)
  }

  /// - Parameter progress: called with the number of pages since the last call.
  mutating func run(progress: (Int) throws -> Void) throws {
    for index in tables.trees.indices where tables.live[index] != nil {
      try read(tree: index, progress: progress)
      context.estimateLoss(of: index, wounds)
    }
  }

  private mutating func read(tree index: Int, progress: (Int) throws -> Void) throws {
    var buffer = reader.makeBuffer()
    var payload: [UInt8] = []
    var scan = LeafCellScan()
    var done = 0
    for page in pages(of: index) {
      if try reader.readPlace(page, into: &buffer) {
        read(buffer.span, page: page, tree: index, &scan)
        try write(scan, buffer.span, page: page, tree: index, &payload)
      }
      done += 1
      if done & 255 == 0 { try progress(256) }
    }
    try progress(done & 255)
    for row in flippable.takeSingle() { try tables.noteDoubt(.unusualValue, of: row) }
  }

  /// Returns a table's pages in reading order.
  ///
  /// Pages of the tree precede placed ones, and win for duplicate rows.
  private func pages(of index: Int) -> [UInt32] {
    let tree = context.crawl.trees[index]
    let map = context.crawl.map
    let damaged = tree.gaps.map(\.page).filter { page in
      page > 0 && map.fate(page) == .damaged && map.owner(page) == index
    }
    let leaves = damaged.isEmpty ? tree.leaves : tree.leaves + damaged
    let pages = tree.hasRowids ? map.sorted(leaves) : tree.leaves + tree.innerPages + damaged
    guard !pages.allSatisfy({ map.fate($0) == .tree }) else { return pages }
    let fates: [PageMap.Fate] = [.tree, .placed, .damaged]
    return fates.flatMap { fate in pages.filter { map.fate($0) == fate } }
  }

  // MARK: One page

  /// Whether most rows violate the declaration and fit another table.
  private var isLikeAnother = false

  private struct Taken {
    var rows = 0

    // Rows found by content come in any order.
    var first = Int64.max
    var last = Int64.min

    /// The doubtful rows, unless the whole page is.
    var doubtful: [FoundRow] = []

    /// The reason shared by all rows, if any.
    var commonDoubt: DoubtReason? {
      guard doubtful.count == rows, let reason = doubtful.first?.doubtReason else { return nil }
      return doubtful.allSatisfy { $0.doubtReason == reason } ? reason : nil
    }

    mutating func add(_ row: FoundRow, isSingled: Bool) {
      rows += 1
      first = min(first, row.cell.rowid)
      last = max(last, row.cell.rowid)
      if isSingled { doubtful.append(row) }
    }
  }

  private mutating func read(_ bytes: Span<UInt8>, page: UInt32, tree index: Int, _ scan: inout LeafCellScan) {
    isLikeAnother = false
    let tree = context.crawl.trees[index]
    let fate = context.crawl.map.fate(page)
    let kindByte = bytes[0]
    let start = page == 1 && kindByte != 13 && kindByte != 10 && kindByte != 2 ? DatabaseHeader.length : 0
    var keys = Int64.min...Int64.max
    if fate == .damaged, let gap = tree.gaps.first(where: { $0.page == page }), gap.above < gap.upTo {
      keys = gap.above.addingClamped(1)...gap.upTo
    }
    func read(_ admission: LeafCellScan.Admission) {
      scan.read(
        bytes, start: start, kind: context.kind(of: page, hasRowids: tree.hasRowids), shape: tree.shape,
        geometry: reader.geometry, keys: keys, admission: admission, encoding: reader.layout.encoding,
        hole: reader.hole(in: page), uncertain: reader.uncertainBytes(of: page))
    }
    read(admission(ofPage: page, tree))
    if scan.mostlyStrange * 2 > scan.cells.count {
      isLikeAnother = isLike(anotherTreeThan: index, bytes, start: start)
      if isLikeAnother, !context.isSound { read(.mostlyUsual) }
    }
    if fate == .damaged {
      wounds.noteUnusable(page, scan, usableSize: reader.usableSize)
    } else {
      wounds.note(page, scan)
    }
  }

  /// Returns the treatment of misfit rows.
  ///
  /// A tree's own page belongs to the table. Misfits on a page attributed by likeness are not the table's; on one found
  /// by content they are not believed.
  private func admission(ofPage page: UInt32, _ tree: Tree) -> LeafCellScan.Admission {
    switch context.crawl.map.fate(page) {
    case .tree: context.isSound || tree.hasRowids && tree.isComplete ? .all : tree.hasRowids ? .mostlyUsual : .misfits
    case .placed: .misfits
    case .unclaimed, .damaged, .overflow, .free, .special, .dead: .none
    }
  }

  /// Whether a page's storage classes suit another table much better.
  private func isLike(anotherTreeThan index: Int, _ bytes: Span<UInt8>, start: Int) -> Bool {
    let tree = tables.trees[index]
    let other = context.crawl.choice(of: bytes, start: start, hasRowids: tree.hasRowids) { place in
      place != index && tables.live[place] != nil && !tables.trees[place].shape.isUntyped
    }
    guard let other else { return false }
    let own = PageScore.fit(bytes, start: start, tree.shape.admittingAll(), geometry: reader.geometry)
    return own.map { other.fit.score - $0.score >= 1 } ?? true
  }

  private mutating func write(
    _ scan: LeafCellScan, _ bytes: Span<UInt8>, page: UInt32, tree index: Int, _ payload: inout [UInt8]
  ) throws {
    let pageDoubt = context.crawl.doubtReason(ofPage: page, tree: index) ?? (isLikeAnother ? .unusualValue : nil)
    // In an entirely doubtful page, other reasons do not matter.
    let columns = pageDoubt == nil ? context.crawl.trees[index].doubt : nil
    // SQLite allows any value in any column; that alone is no doubt.
    let areBelieved =
      context.isSound && pageDoubt == nil && scan.isWholeWithStrangers && !scan.isDamaged && !scan.isOutOfOrder
    let contradicted = pageDoubt == nil ? context.crawl.contradictions.rows[page] : nil
    var taken = Taken()
    for cell in scan.cells {
      var row = FoundRow(tree: index, page: page, cell: cell, doubtReason: pageDoubt)
      var suspects: [RecordShape.Flippable] = []
      if cell.isUnusual, areBelieved, !cell.hasReservedTypes {
        suspects = tables.trees[index].shape.flippable(bytes, cell)
        // Whether a row with a long value becomes live is still unknown.
        row.cell.isUnusual = cell.overflow != 0 && !suspects.isEmpty
      }
      let isConfused = columns?.concerns(cell, bytes, encoding: reader.layout.encoding) ?? false
      if isConfused { row.doubtReason = .columnOrder }
      if pageDoubt == nil, cell.isBesideDamage { row.doubtReason = .besideDamage }
      if let contradicted, contradicted.contains(cell.rowid) { row.doubtReason = .contradicted }
      let isSingled = pageDoubt == nil && row.doubtReason != nil
      guard try write(row, bytes, &payload) else { continue }
      taken.add(row, isSingled: isSingled)
      if !suspects.isEmpty, !row.cell.isUnusual, !isSingled { flippable.note(suspects, of: row) }
    }
    let kept = context.keep(scan.misfits, of: page)
    tables.tallies[index].destroyed += Int64(max(0, scan.badPointers - kept - scan.carved) + scan.tornCells)
    try note(taken, page: page, tree: index, pageDoubt)
  }

  /// Notes the origin and doubts of a page's rows, once for an entirely doubtful page.
  private func note(_ taken: Taken, page: UInt32, tree index: Int, _ pageDoubt: DoubtReason?) throws {
    guard taken.rows > 0 else { return }
    let doubt = pageDoubt ?? taken.commonDoubt
    if let doubt { tables.tallies[index].doubts[doubt, default: 0] += Int64(taken.rows) }
    let tree = tables.trees[index]
    let fate = context.crawl.map.fate(page)
    let isByContent = context.crawl.isByContent(page)
    try tables.notes.notePage(
      page, of: tables.name(of: index), source: tables.source(of: page),
      foundBy: isByContent ? "content" : Self.foundBy(fate), keys: taken.first...taken.last, rows: taken.rows,
      certainty: isByContent ? .probable : .certain, doubt: doubt,
      reason: doubt?.words(ofTable: tree)
        ?? (isByContent ? "no root leads to it; it fits this table and a gap in it" : nil))
    guard doubt == nil else { return }
    for row in taken.doubtful {
      if let reason = row.doubtReason { try tables.noteDoubt(reason, of: row) }
    }
  }

  private static func foundBy(_ fate: PageMap.Fate) -> String {
    switch fate {
    case .tree: "tree"
    case .placed: "content"
    case .unclaimed, .damaged, .overflow, .free, .special, .dead: "carving"
    }
  }

  // MARK: One row

  @inline(__always)
  private mutating func write(_ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8]) throws -> Bool {
    let cell = row.cell
    if cell.isOfUnknownEntity, !isOfSoleEntity(row, bytes) {
      try keepUnknown(row, bytes)
      return false
    }
    if cell.isOutOfOrder {
      let reason = "its key contradicts those of the rows beside it"
      if cell.overflow == 0 {
        try tables.keepApart(row, bytes.extracting(cell.payload..<(cell.payload &+ cell.length)), reason: reason)
      } else {
        try longRows.keepOutOfOrder(row, bytes, &payload, reason: reason)
      }
      return false
    }
    guard cell.overflow == 0 else { return try longRows.write(row, bytes, &payload) }
    if cell.hasReservedTypes {
      payload = context.localPart(of: cell, bytes)
      RecordShape.clearReservedTypes(&payload)
      return try tables.write(row, payload.span)
    }
    return try tables.write(row, bytes.extracting(cell.payload..<(cell.payload &+ cell.length)))
  }

  /// Whether a row with an invalid entity number belongs to its table: all trees are sound and the table has one
  /// entity, as Core Data reads it.
  private func isOfSoleEntity(_ row: FoundRow, _ bytes: Span<UInt8>) -> Bool {
    let tree = tables.trees[row.tree]
    guard context.isSound, tree.isListed, let others = tree.otherNumbers else { return false }
    return tree.shape.entityNumber(bytes, row.cell).map { !others.contains($0) } ?? true
  }

  /// Sets aside a row with an invalid entity number.
  private func keepUnknown(_ row: FoundRow, _ bytes: Span<UInt8>) throws {
    var payload = context.localPart(of: row.cell, bytes)
    var isWhole = true
    if row.cell.overflow != 0 {
      let outcome = try context.complete(&payload, of: row.cell, claim: longRows.firstClaim(of: row.tree))
      isWhole = if case .whole = outcome { true } else { false }
    }
    // An intact row is not lost.
    if isWhole, tables.trees[row.tree].hasRowids {
      tables.tallies[row.tree].ofUnknownEntity.insert(row.cell.rowid)
    } else {
      tables.tallies[row.tree].destroyed += 1
    }
    try tables.keepApart(row, payload.span, reason: "its entity number is none of its table's")
  }
}

/// Values one bit flip away from usual ones: doubtful if unique in the column, else the app's own.
private struct FlippableValues {
  /// The only row with a value; nil for several.
  private var rows: [RecordShape.Flippable: FoundRow?] = [:]

  mutating func note(_ values: [RecordShape.Flippable], of row: FoundRow) {
    for value in values {
      if rows[value] == nil { rows[value] = .some(row) } else { rows[value] = .some(nil) }
    }
  }

  /// Returns and forgets the rows with a unique such value.
  mutating func takeSingle() -> [FoundRow] {
    defer { rows = [:] }
    var seen: Set<Int64> = []
    return rows.values.compactMap(\.self).sorted { $0.cell.rowid < $1.cell.rowid }
      .filter { seen.insert($0.cell.rowid).inserted }
  }
}
