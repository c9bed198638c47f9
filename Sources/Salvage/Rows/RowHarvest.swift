internal import SQLiteFormat
internal import StoreFiles

/// Where a cell is.
struct CellPlace: Hashable {
  /// The page.
  var page: UInt32

  /// The offset of its payload on it.
  var payload: Int
}

/// Takes the rows from the pages of each table and writes them into the result.
final class RowHarvest {
  let reader: PageReader
  var crawl: Crawl
  let database: OutputDatabase
  let notes: EvidenceNotes
  let chains: OverflowChains
  var tallies: [TableTally]
  var liveTables: [OutputTable?]
  var otherTables: [OutputTable?]
  var deletedTables: [OutputTable?]

  /// What was wrong with pages that rows were read from.
  var wounds = PageWounds()

  /// Rows that fit no table, written so far.
  var unplacedRows: Int64 = 0

  /// Rows whose long values could not be put together yet.
  var broken: [BrokenRow] = []

  /// Whether rows with broken chains are put off, because swapped pages may still be found.
  var isDeferring = true

  /// Rows with long values that are looked at together before they are written, because pages changed places.
  var waiting: [WaitingRow] = []

  /// Which overflow page follows which, by the pointer maps.
  var successors: [UInt32: UInt32] = [:]

  /// Rows with a page that something else leads to as well, and of which it is not decided yet whose it is.
  var rivals: [RivalRow] = []

  /// What is to be noted of the row that is being written, where it is to be believed; nil for nothing.
  var remark: String?

  /// Whether the rows that waited are being written.
  var isSettled = false

  /// Why the row that is being written is not to be believed, so that it is no live one; nil where it is.
  var doubt: String?

  /// Whether a row's long value goes on behind the end of the database, where only a transaction that did not end can
  /// have put it.
  var goesBehindEnd = false

  /// What is to be said of the files, in words for the report; each means that something may be missing.
  var remarks: [String] = []

  /// The live rows that have a note of their own on why they are doubtful, by table; only where a recovery kit may find
  /// more that is wrong with them.
  var doubtedRows: [Int: Set<Int64>] = [:]

  /// The rows that indexes list and that are not there, by table; only of tables that have indexes.
  var listedRows: [Int: Set<Int64>] = [:]

  /// Whether rows in free space are told from those that were only moved: once the live rows are known.
  var isNotingMoves = false

  /// Where the cells are whose long values were not put together, or have pages of another row; nil where nobody asks.
  var apartChains: Set<CellPlace>?

  /// Whether no place of a tree lacks its page, so that the trees decide which rows are a table's.
  let isSound: Bool

  /// The digests of deleted candidates; live rows that are the same strike them out.
  var ghosts: GhostList?

  init(_ crawl: Crawl, database: OutputDatabase) throws(SalvageError) {
    self.crawl = crawl
    self.database = database
    isSound = crawl.damage == 0
    reader = crawl.reader
    chains = OverflowChains(crawl.reader)
    chains.overwritten = crawl.trunks
    chains.endOfDatabase = crawl.endOfDatabase
    chains.checksSwaps = !crawl.reader.moved.isEmpty || crawl.map.hasCrossedLinks
    notes = try EvidenceNotes(database)
    tallies = crawl.trees.map { TableTally(name: $0.name) }
    liveTables = [OutputTable?](repeating: nil, count: crawl.trees.count)
    otherTables = liveTables
    deletedTables = liveTables
  }

  /// Makes the tables that live rows go into.
  ///
  /// - Parameter store: the new store that takes the rows it can; nil where all go into the database.
  func makeTables(in store: NewStore? = nil) throws(SalvageError) {
    for index in crawl.trees.indices {
      let tree = crawl.trees[index]
      guard !tree.isInternal, !tree.isDropped, tree.kind != .index, let definition = tree.definition else { continue }
      liveTables[index] = try OutputTable(
        definition, role: .live, in: database, direct: store?.table(for: definition))
    }
  }

  /// Harvests all tables.
  ///
  /// - Parameter progress: called with the number of pages done since the last call.
  func harvest(progress: (Int) throws(SalvageError) -> Void) throws(SalvageError) {
    for index in crawl.trees.indices where liveTables[index] != nil {
      try harvest(tree: index, progress: progress)
    }
  }

  private func harvest(tree index: Int, progress: (Int) throws(SalvageError) -> Void) throws(SalvageError) {
    let tree = crawl.trees[index]
    var pages = tree.leaves
    let damaged = damagedPages(of: index)
    if tree.hasRowids {
      if !damaged.isEmpty { pages += damaged }
      pages = crawl.map.sorted(pages)
    } else {
      pages += tree.innerPages + damaged
    }
    // What a tree claims goes before what was placed by evidence, so that it wins where both have a row.
    if !pages.allSatisfy({ crawl.map.fate($0) == .tree }) {
      let fates: [PageMap.Fate] = [.tree, .placed, .damaged]
      pages = fates.flatMap { fate in pages.filter { crawl.map.fate($0) == fate } }
    }
    var buffer = reader.makeBuffer()
    var payload: [UInt8] = []
    var scan = LeafScan()
    var done = 0
    for page in pages {
      try harvest(page: page, tree: index, &buffer, &payload, &scan)
      done += 1
      if done & 255 == 0 { try progress(256) }
    }
    try progress(done & 255)
    estimateLoss(of: index)
  }

  private func damagedPages(of tree: Int) -> [UInt32] {
    crawl.trees[tree].gaps.compactMap { gap in
      gap.page > 0 && crawl.map.fate(gap.page) == .damaged && crawl.map.owner(gap.page) == tree ? gap.page : nil
    }
  }

  // MARK: One page

  private func harvest(
    page: UInt32, tree index: Int, _ buffer: inout [UInt8], _ payload: inout [UInt8], _ scan: inout LeafScan
  ) throws(SalvageError) {
    guard try reader.readPlace(page, into: &buffer) else { return }
    let tree = crawl.trees[index]
    let kindByte = buffer[0]
    let start = page == 1 && kindByte != 13 && kindByte != 10 && kindByte != 2 ? DatabaseHeader.length : 0
    let fate = crawl.map.fate(page)
    let kind: PageKind =
      tree.hasRowids ? .tableLeaf : crawl.map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
    var keys = Int64.min...Int64.max
    if fate == .damaged, let gap = tree.gaps.first(where: { $0.page == page }), gap.above < gap.upTo {
      keys = gap.above.addingClamped(1)...gap.upTo
    }
    scan.read(
      buffer.span, start: start, kind: kind, shape: tree.shape, geometry: reader.geometry, keys: keys,
      admits: isSound && fate == .tree && tree.hasRowids && tree.shape.isStrict, encoding: reader.layout.encoding,
      present: reader.presentCount(page))
    if fate != .damaged { wounds.note(page, scan) }
    let pageDoubt = doubtReason(ofPage: page, tree: index)
    let source = source(of: page)
    var confused: [LeafCell] = []
    // Rows that were found by their content come in any order.
    var first = Int64.max
    var last = Int64.min
    var written = 0
    for cell in scan.cells {
      let reason = pageDoubt ?? doubtReason(of: cell, buffer.span, tree: index)
      guard
        try write(cell, buffer.span, &payload, page: page, tree: index, source: source, doubtReason: reason)
      else { continue }
      if pageDoubt == nil, reason != nil { confused.append(cell) }
      first = min(first, cell.rowid)
      last = max(last, cell.rowid)
      written += 1
    }
    tallies[index].destroyed += Int64(max(0, scan.badPointers - scan.carved) + scan.tornCells)
    guard written > 0 else { return }
    // A page all of whose rows are doubtful is one note, and no row has one of its own.
    let doubtReason = pageDoubt ?? (confused.count == written ? .columnOrder : nil)
    if let doubtReason { tallies[index].doubts[doubtReason, default: 0] += Int64(written) }
    try notes.notePage(
      tree.name, page: page, source: source, foundBy: foundBy(fate), first: first, last: last, rows: written,
      fate == .placed ? .probable : .certain, doubtReason,
      reason: doubtReason.map { words(of: $0, tree: index) }
        ?? (fate == .placed ? "no page leads to it; it fits this table and a gap in it" : nil))
    guard doubtReason == nil else { return }
    for cell in confused {
      try noteDoubt(.columnOrder, row: cell.rowid, page: page, cell: cell.index, tree: index, source: source)
    }
  }

  func source(of page: UInt32) -> String {
    guard let overlay = reader.overlay, overlay.images[page] != nil else { return "main" }
    return overlay.source.rawValue
  }

  private func foundBy(_ fate: PageMap.Fate) -> String {
    switch fate {
    case .tree: "tree"
    case .placed: "content"
    default: "carving"
    }
  }

  /// Writes a row; false where it did not become a live one.
  ///
  /// - Parameter doubtReason: why it is doubtful; the caller counts and notes that.
  @inline(__always)
  func write(
    _ cell: LeafCell, _ bytes: Span<UInt8>, _ payload: inout [UInt8], page: UInt32, tree index: Int, source: String,
    doubtReason: DoubtReason?
  ) throws(SalvageError) -> Bool {
    guard let live = liveTables[index] else { return false }
    var reason: String?
    if cell.isOfUnknownEntity, !isOfSoleEntity(cell, bytes, tree: index) {
      try keepUnknown(cell, bytes, page: page, tree: index, source: source)
      return false
    }
    if cell.isOutOfOrder { reason = "its key contradicts those of the rows beside it" }
    if cell.overflow == 0 {
      if reason == nil,
        try live.insert(bytes, from: cell.payload, length: cell.length, rowid: cell.rowid)
      {
        ghosts?.strike(bytes, from: cell.payload, length: cell.length)
        let isValid = RecordText.isValid(
          bytes, at: cell.payload, before: cell.payload &+ cell.length, encoding: reader.layout.encoding)
        try noteLive(
          cell, page: page, tree: index, source: source, doubtReason: doubtReason, isTextValid: isValid)
        return true
      }
      if reason == nil {
        if try live.holds(bytes, from: cell.payload, length: cell.length, rowid: cell.rowid) { return false }
        reason = "another version of the row is the live one"
      }
      try keepApart(
        bytes, from: cell.payload, length: cell.length, cell, page: page, tree: index, source: source,
        reason: reason ?? "")
      return false
    }
    payload.removeAll(keepingCapacity: true)
    for place in cell.payload..<(cell.payload + cell.local) { payload.append(bytes[place]) }
    switch try chains.follow(
      from: cell.overflow, length: cell.length, into: &payload, map: &crawl.map,
      owner: cell.isOutOfOrder ? nil : index, isOwn: isSettled)
    {
    case .whole: break
    case .broken: reason = reason ?? "the rest of a long value cannot be found"
    case .torn: reason = reason ?? "a part of a long value is lost"
    case .behindEnd:
      reason = reason ?? "not committed; its long value goes on behind the end of the database"
      goesBehindEnd = true
    case .shared: reason = reason ?? "the rest of a long value belongs to another row too"
    case .contested:
      rivals.append(RivalRow(row: BrokenRow(tree: index, page: page, cell: cell, doubtReason: doubtReason)))
      chains.isDecided = rivals.count >= BrokenRow.limit
      return false
    }
    if reason != nil, !cell.isOutOfOrder, isDeferring, broken.count < BrokenRow.limit {
      broken.append(BrokenRow(tree: index, page: page, cell: cell, doubtReason: doubtReason))
      return false
    }
    if reason == nil, !isSettled, doubt == nil, remark == nil,
      isWaiting(cell, payload, page: page, tree: index, doubtReason: doubtReason)
    {
      return false
    }
    if reason == nil { reason = doubt }
    if reason == nil, try live.insert(payload.span, from: 0, length: payload.count, rowid: cell.rowid) {
      ghosts?.strike(payload.span, from: 0, length: payload.count)
      let isValid = RecordText.isValid(payload.span, at: 0, before: payload.count, encoding: reader.layout.encoding)
      if let remark, isValid, cell.index >= 0, !cell.isUnusual {
        tallies[index].recovered += 1
        try notes.noteRow(
          crawl.trees[index].name, row: cell.rowid, key: cell.rowid, page: page, cell: cell.index, source: source,
          .probable, reason: remark)
        return true
      }
      try noteLive(cell, page: page, tree: index, source: source, doubtReason: doubtReason, isTextValid: isValid)
      return true
    }
    if reason == nil {
      if try live.holds(payload.span, from: 0, length: payload.count, rowid: cell.rowid) { return false }
      reason = "another version of the row is the live one"
    } else if !cell.isOutOfOrder {
      tallies[index].destroyed += 1
    }
    try keepApart(
      payload.span, from: 0, length: payload.count, cell, page: page, tree: index, source: source,
      reason: reason ?? "")
    return false
  }

  private func noteLive(
    _ cell: LeafCell, page: UInt32, tree index: Int, source: String, doubtReason: DoubtReason?, isTextValid: Bool
  ) throws(SalvageError) {
    tallies[index].recovered += 1
    guard doubtReason == nil, cell.index < 0 || !isTextValid || cell.isUnusual else { return }
    try noteDoubt(
      cell.index < 0 ? .foundByContent : isTextValid ? .unusualValue : .invalidText, row: cell.rowid, page: page,
      cell: cell.index, tree: index, source: source)
  }

  /// Writes a row into the table of those that are not live.
  func keepApart(
    _ bytes: Span<UInt8>, from start: Int, length: Int, _ cell: LeafCell, page: UInt32, tree index: Int,
    source: String, reason: String
  ) throws(SalvageError) {
    guard let definition = crawl.trees[index].definition else { return }
    if cell.overflow != 0 { apartChains?.insert(CellPlace(page: page, payload: cell.payload)) }
    if otherTables[index] == nil {
      otherTables[index] = try OutputTable(definition, role: .other, in: database)
    }
    guard let table = otherTables[index], try table.insert(bytes, from: start, length: length, rowid: cell.rowid) else {
      return
    }
    tallies[index].keptApart += 1
    try notes.noteRow(
      table.name, row: table.count, key: crawl.trees[index].hasRowids ? cell.rowid : nil, page: page,
      cell: cell.index < 0 ? nil : cell.index, source: source, .doubtful, reason: reason)
  }
}
