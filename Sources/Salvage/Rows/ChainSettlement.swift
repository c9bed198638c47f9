import SQLiteFormat

/// Phase 2: attributes contested and misplaced overflow pages, and writes the rows that waited for it.
struct ChainSettlement {
  let context: RowContext

  private(set) var longRows: LongRows

  private var swaps: SwapSearch

  /// The page in the buffer.
  private var page: UInt32 = 0
  private var buffer: [UInt8]
  private var payload: [UInt8] = []

  init(_ context: RowContext, _ longRows: LongRows) {
    self.context = context
    self.longRows = longRows
    swaps = SwapSearch(context)
    buffer = context.reader.makeBuffer()
  }

  /// Retries broken rows until a search finds no more swapped pages.
  mutating func run() throws {
    if isCoherent { context.chains.checksSwaps = false }
    try settleRivals()
    for _ in 0..<8 where !longRows.pending.broken.isEmpty {
      guard try swaps.run(longRows.pending.broken) else { break }
      try writeBroken()
      try settleRivals()
    }
    try settleWaiting()
    longRows.pending.hasTriesLeft = false
    try writeBroken()
    try settleRivals()
    try settleWaiting()
  }

  /// Whether an undamaged store's long values are complete: then no page moved, and SQLite itself wrote crossing
  /// chains.
  private var isCoherent: Bool { context.isSound && context.reader.moved.isEmpty && longRows.pending.broken.isEmpty }

  private mutating func writeBroken() throws {
    for row in longRows.pending.take(\.broken) { try write(row) }
  }

  /// Writes a row, and notes its earlier doubts.
  private mutating func write(
    _ row: FoundRow, claim: OverflowChains.Claim? = nil, _ verdict: LongRows.Verdict = .none
  ) throws {
    if row.page != page {
      page = 0
      guard try context.reader.readPlace(row.page, into: &buffer) else { return }
      page = row.page
    }
    let bytes = buffer
    let isLive = try longRows.write(row, bytes.span, &payload, claim: claim, verdict)
    if isLive, let reason = row.doubtReason { try context.tables.noteDoubt(reason, of: row) }
  }

  // MARK: Rows that contend for pages

  private static let fitting = "other rows lead to the pages of its long value too; they fit this one"
  private static let disputed = "other rows lead to the pages of its long value too, and nothing tells whose they are"

  /// Attributes contested pages, and writes their rows.
  ///
  /// Without an intact rival a row is written normally: the other link is obsolete or of a row of another length. Among
  /// rivals, the only fitting one is live.
  private mutating func settleRivals() throws {
    let rows = longRows.pending.take(\.rivals)
    guard !rows.isEmpty else { return }
    let evidence = RivalEvidence(context: context)
    var statistics: TextStatistics?
    for group in try evidence.groups(of: rows) {
      guard group.count > 1 else {
        for index in group { try write(rows[index], claim: .decided(tree: rows[index].tree)) }
        continue
      }
      if statistics == nil { statistics = try context.learnTexts(waiting: longRows.pending.waiting) }
      guard let statistics else { continue }
      let winner = try evidence.winner(of: group, rows, statistics)
      // The owner goes first, so that the others find the pages taken.
      for index in group.sorted(by: { ($0 == winner ? 0 : 1, $0) < ($1 == winner ? 0 : 1, $1) }) {
        try write(
          rows[index], claim: .decided(tree: rows[index].tree),
          index == winner ? .believed(remark: Self.fitting) : .disputed(reason: Self.disputed))
      }
    }
  }

  // MARK: Moved pages

  private static let exchanged = "pages of the store changed places; its long value is put together"

  private mutating func settleWaiting() throws {
    guard !longRows.pending.waiting.isEmpty else { return }
    let waiting = longRows.pending.take(\.waiting)
    let isChecked = context.chains.checksSwaps
    let rows = isChecked ? try ChainEndSearch(context: context).run(waiting) : waiting
    for waiting in rows {
      let verdict =
        waiting.doubt.map(LongRows.Verdict.disputed) ?? (isChecked ? .believed(remark: Self.exchanged) : .none)
      try write(waiting.row, claim: .own(tree: waiting.row.tree), verdict)
    }
  }
}

/// Evidence on intact rows that share overflow pages.
struct RivalEvidence {
  let context: RowContext

  private var reader: PageReader { context.reader }

  /// The certainty of ownership.
  enum Standing: Int {
    case contradicted

    case open

    /// The content fits the end of the row's local part.
    case fitting

    /// Pointer maps or a recovery kit confirm it.
    case proved

    func isBeaten(by best: Standing) -> Bool {
      switch best {
      case .proved: self != .proved
      case .fitting: self == .contradicted
      case .contradicted, .open: false
      }
    }
  }

  /// Groups the rows by shared pages; most are alone.
  func groups(of rows: [FoundRow]) throws -> [[Int]] {
    let places = try places(of: rows)
    var group = Array(rows.indices)
    func top(_ index: Int) -> Int {
      var index = index
      while group[index] != index { index = group[index] }
      return index
    }
    var owners: [UInt32: Int] = [:]
    for index in rows.indices {
      for place in places[index] {
        if let other = owners[place] {
          let (mine, theirs) = (top(index), top(other))
          group[max(mine, theirs)] = min(mine, theirs)
        } else {
          owners[place] = index
        }
      }
    }
    var members: [Int: [Int]] = [:]
    for index in rows.indices { members[top(index), default: []].append(index) }
    return members.sorted { $0.key < $1.key }.map(\.value)
  }

  private func places(of rows: [FoundRow]) throws -> [[UInt32]] {
    try rows.map { row in
      var payload = [UInt8](repeating: 0, count: row.cell.local)
      guard case .whole(let chain) = try context.complete(&payload, of: row.cell) else { return [] }
      return chain.places
    }
  }

  /// Returns the owner among rivals, if decidable.
  func winner(of group: [Int], _ rows: [FoundRow], _ statistics: TextStatistics) throws -> Int? {
    var standings: [Int: Standing] = [:]
    for index in group { standings[index] = try standing(of: rows[index], statistics) }
    func known(_ index: Int) -> Standing { standings[index] ?? .open }
    guard let best = group.max(by: { known($0).rawValue < known($1).rawValue }) else { return nil }
    let isAlone = group.allSatisfy { $0 == best || known($0).isBeaten(by: known(best)) }
    return isAlone ? best : nil
  }

  private func standing(of row: FoundRow, _ statistics: TextStatistics) throws -> Standing {
    let cell = row.cell
    if let isOwn = try isMapped(cell.overflow, to: row.page) { return isOwn ? .proved : .contradicted }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(row.page, into: &buffer) else { return .open }
    if isNoted(row.page, buffer) { return .proved }
    var payload = Array(buffer[cell.payload..<(cell.payload + cell.local)])
    guard case .whole(let chain) = try context.complete(&payload, of: cell),
      RecordText.isValid(payload.span, at: 0, before: payload.count, encoding: reader.layout.encoding)
    else { return .contradicted }
    var isFitting = false
    var traits = ChainTraits(usableSize: reader.usableSize)
    let perPage = reader.usableSize - 4
    for (page, start) in [(cell.overflow, cell.local), (chain.lastPage, payload.count - chain.usedOnLast)] {
      guard
        let seam = ChainEnd(
          payload.span, page: page, start: start, used: min(perPage, payload.count - start),
          encoding: reader.layout.encoding),
        try reader.read(page, into: &buffer)
      else { continue }
      traits.isLastPage = page == chain.lastPage
      let judgement = seam.judge(buffer, statistics, traits)
      if judgement.isBad { return .contradicted }
      if judgement.isGood { isFitting = true }
    }
    return isFitting ? .fitting : .open
  }

  /// Whether the pointer maps assign a first overflow page to a leaf.
  private func isMapped(_ page: UInt32, to leaf: UInt32) throws -> Bool? {
    guard let entry = try PointerMaps(reader).entry(for: page) else { return nil }
    switch entry.kind {
    case .overflowFirst: return entry.parent == leaf
    case .overflowNext: return false
    case nil, .root?, .free?, .child?: return nil
    }
  }

  /// Whether a recovery kit has the identical page.
  private func isNoted(_ page: UInt32, _ bytes: [UInt8]) -> Bool {
    guard let kit = context.crawl.kit else { return false }
    for table in kit.tables {
      guard let place = table.leaves.firstIndex(of: page), table.sums.indices.contains(place) else { continue }
      return table.sums[place] == RecoveryKit.sum(of: bytes)
    }
    return false
  }
}

/// Finds swapped chain tails by content, since a chain's last page has no link.
///
/// The result has the rows assessed; `PageReader.moved` gets the exchanged pages.
struct ChainEndSearch {
  let context: RowContext

  private var reader: PageReader { context.reader }

  /// Restores swapped tails, and doubts rows whose tail fits nowhere.
  func run(_ waiting: [WaitingRow]) throws -> [WaitingRow] {
    var rows = waiting
    let exchange = ChainEndExchange(
      context: context, statistics: try context.learnTexts(waiting: rows), traits: try learnTraits(rows),
      copies: try copiedEnds())
    var buffer = reader.makeBuffer()
    for index in rows.indices {
      guard try reader.read(rows[index].end.page, into: &buffer) else { continue }
      rows[index].judgement = rows[index].end.judge(buffer, exchange.statistics, exchange.traits)
    }
    for _ in 0..<4 { guard try exchange.run(&rows) else { break } }
    for index in rows.indices where rows[index].judgement.isBad {
      rows[index].doubt =
        rows[index].judgement.isBroken
        ? "the end of a long value belongs to another row" : "the end of a long value may belong to another row"
    }
    try doubtCopies(&rows)
    return rows
  }

  private func learnTraits(_ rows: [WaitingRow]) throws -> ChainTraits {
    var traits = ChainTraits(usableSize: reader.usableSize)
    var buffer = reader.makeBuffer()
    for row in rows {
      guard try reader.read(row.end.page, into: &buffer) else { continue }
      traits.learn(buffer.span, used: row.end.used)
    }
    var scan = LeafCellScan()
    for number in Set(rows.map(\.row.tree)).sorted() {
      let tree = context.crawl.trees[number]
      for page in RowContext.sample(of: tree) {
        guard page > 1, try reader.readPlace(page, into: &buffer) else { continue }
        scan.read(
          buffer.span, start: 0, kind: tree.hasRowids ? .tableLeaf : .indexLeaf, shape: tree.shape,
          geometry: reader.geometry, carves: false)
        for cell in scan.cells { traits.learn(buffer.span, cell.payload..<(cell.payload + cell.local), tree: number) }
      }
    }
    return traits
  }

  /// Returns the digests of duplicate tails, which come from overwriting, not swapping.
  private func copiedEnds() throws -> Set<UInt64> {
    var seen: Set<UInt64> = []
    var copies: Set<UInt64> = []
    var buffer = reader.makeBuffer()
    let map = context.crawl.map
    guard map.pageCount >= 2 else { return [] }
    for page in 2...map.pageCount where map.look(page) == .linked && seen.count < DeletedDigests.limit {
      guard try reader.readPlace(page, into: &buffer), buffer.span.uint32(at: 0) == 0 else { continue }
      let digest = context.digest(ofPage: buffer)
      if !seen.insert(digest).inserted { copies.insert(digest) }
    }
    return copies
  }

  /// Doubts different rows with equal tails: a full page does not show which one is the copy.
  private func doubtCopies(_ waiting: inout [WaitingRow]) throws {
    var rows: [UInt64: [Int]] = [:]
    var buffer = reader.makeBuffer()
    for index in waiting.indices {
      guard try reader.read(waiting[index].end.page, into: &buffer) else { continue }
      rows[context.digest(ofPage: buffer), default: []].append(index)
    }
    for group in rows.values where group.count > 1 {
      let first = waiting[group[0]].end
      let isSame = group.allSatisfy { waiting[$0].end.before == first.before && waiting[$0].end.used == first.used }
      guard !isSame else { continue }
      let best = group.filter { waiting[$0].judgement.isGood }
      for index in group where waiting[index].doubt == nil && (best.count != 1 || best[0] != index) {
        waiting[index].doubt = "another long value ends with the same page, which may be that one's"
      }
    }
  }
}

extension RowContext {
  /// Returns up to about 256 leaves, spread over the tree.
  static func sample(of tree: Tree) -> [UInt32] {
    stride(from: 0, to: tree.leaves.count, by: max(1, tree.leaves.count / 256)).map { tree.leaves[$0] }
  }

  func digest(ofPage bytes: [UInt8]) -> UInt64 {
    DeletedDigests.digest(bytes.span.extracting(0..<min(bytes.count, reader.usableSize)))
  }

  /// Learns texts from certainly coherent parts of rows.
  ///
  /// - Parameter waiting: rows with uncertain tails.
  func learnTexts(waiting: [WaitingRow]) throws -> TextStatistics {
    var statistics = TextStatistics(encoding: reader.layout.encoding)
    var buffer = reader.makeBuffer()
    var scan = LeafCellScan()
    for tree in crawl.trees where tree.hasRowids && !tree.isInternal {
      for page in Self.sample(of: tree) {
        guard page > 1, try reader.readPlace(page, into: &buffer) else { continue }
        scan.read(buffer.span, start: 0, kind: .tableLeaf, shape: tree.shape, geometry: reader.geometry, carves: false)
        for cell in scan.cells {
          statistics.learn(buffer.span, cell.payload..<(cell.payload + cell.local), length: cell.length)
        }
      }
    }
    // The first overflow page of a long value is text from its middle.
    for row in waiting where statistics.length < TextStatistics.maximumLength {
      guard row.row.cell.overflow != row.end.page, try reader.read(row.row.cell.overflow, into: &buffer) else {
        continue
      }
      let isText = RecordText.isValid(
        buffer.span, 4..<reader.usableSize, isCutBefore: true, isCutBehind: true, reader.layout.encoding)
      if isText { statistics.learn(buffer.span, 4..<reader.usableSize, isBeginning: false, isEnd: false) }
    }
    return statistics
  }
}
