import SQLiteFormat

/// Phase 2: attributes contested and misplaced overflow pages, and writes the rows that waited for it.
struct ChainSettlement {
  let context: RowContext

  private(set) var longRows: LongRows

  private var swaps: SwapSearch

  init(_ context: RowContext, _ longRows: LongRows) {
    self.context = context
    self.longRows = longRows
    swaps = SwapSearch(context)
  }

  /// Retries broken rows until a search finds no more swapped pages.
  mutating func run() throws(SalvageError) {
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
  private var isCoherent: Bool {
    context.isSound && context.reader.moved.isEmpty && longRows.pending.broken.isEmpty
  }

  private mutating func writeBroken() throws(SalvageError) {
    var buffer = context.reader.makeBuffer()
    var payload: [UInt8] = []
    var page: UInt32 = 0
    for row in longRows.pending.takeBroken() {
      guard try turn(to: row.page, from: &page, &buffer) else { continue }
      let isLive = try longRows.write(row, buffer.span, &payload)
      try noteDoubt(of: row, isLive: isLive)
    }
  }

  /// Reads a page unless it is current; false if missing.
  private func turn(to page: UInt32, from current: inout UInt32, _ buffer: inout [UInt8]) throws(SalvageError) -> Bool {
    guard page != current else { return true }
    guard try context.reader.readPlace(page, into: &buffer) else { return false }
    current = page
    return true
  }

  /// Notes the row's earlier doubts.
  private func noteDoubt(of row: FoundRow, isLive: Bool) throws(SalvageError) {
    guard isLive, let reason = row.doubtReason else { return }
    try context.tables.noteDoubt(reason, of: row)
  }

  // MARK: Rows that contend for pages

  private static let fitting = "other rows lead to the pages of its long value too; they fit this one"
  private static let disputed =
    "other rows lead to the pages of its long value too, and nothing tells whose they are"

  /// Attributes contested pages, and writes their rows.
  ///
  /// Without an intact rival a row is written normally: the other link is obsolete or of a row of another length. Among
  /// rivals, the only fitting one is live.
  private mutating func settleRivals() throws(SalvageError) {
    let rows = longRows.pending.takeRivals()
    guard !rows.isEmpty else { return }
    let evidence = RivalEvidence(context: context)
    var statistics: TextStatistics?
    for group in try evidence.groups(of: rows) {
      guard group.count > 1 else {
        for index in group { try write(rows[index], .none) }
        continue
      }
      if statistics == nil { statistics = try context.learnTexts(waiting: longRows.pending.waiting) }
      guard let statistics else { continue }
      let winner = try evidence.winner(of: group, rows, statistics)
      // The owner goes first, so that the others find the pages taken.
      for index in group.sorted(by: { ($0 == winner ? 0 : 1, $0) < ($1 == winner ? 0 : 1, $1) }) {
        try write(
          rows[index], index == winner ? .believed(remark: Self.fitting) : .disputed(reason: Self.disputed))
      }
    }
  }

  private mutating func write(_ row: FoundRow, _ verdict: LongRows.Verdict) throws(SalvageError) {
    var buffer = context.reader.makeBuffer()
    var payload: [UInt8] = []
    guard try context.reader.readPlace(row.page, into: &buffer) else { return }
    let isLive = try longRows.write(row, buffer.span, &payload, claim: .decided(tree: row.tree), verdict)
    try noteDoubt(of: row, isLive: isLive)
  }

  // MARK: Moved pages

  private static let exchanged = "pages of the store changed places; its long value is put together"

  private mutating func settleWaiting() throws(SalvageError) {
    guard !longRows.pending.waiting.isEmpty else { return }
    let waiting = longRows.pending.takeWaiting()
    let isChecked = context.chains.checksSwaps
    let rows = isChecked ? try ChainEndSearch(context).run(waiting) : waiting
    var buffer = context.reader.makeBuffer()
    var payload: [UInt8] = []
    var page: UInt32 = 0
    for waiting in rows {
      let row = waiting.row
      guard try turn(to: row.page, from: &page, &buffer) else { continue }
      let verdict: LongRows.Verdict =
        if let doubt = waiting.doubt {
          .disputed(reason: doubt)
        } else {
          isChecked ? .believed(remark: Self.exchanged) : .none
        }
      let isLive = try longRows.write(row, buffer.span, &payload, claim: .own(tree: row.tree), verdict)
      try noteDoubt(of: row, isLive: isLive)
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
  func groups(of rows: [FoundRow]) throws(SalvageError) -> [[Int]] {
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

  private func places(of rows: [FoundRow]) throws(SalvageError) -> [[UInt32]] {
    var places: [[UInt32]] = []
    for row in rows {
      var payload = [UInt8](repeating: 0, count: row.cell.local)
      if case .whole(let chain) = try context.complete(&payload, of: row.cell) {
        places.append(chain.places)
      } else {
        places.append([])
      }
    }
    return places
  }

  /// Returns the owner among rivals, if decidable.
  func winner(of group: [Int], _ rows: [FoundRow], _ statistics: TextStatistics) throws(SalvageError) -> Int? {
    var standings: [Int: Standing] = [:]
    for index in group { standings[index] = try standing(of: rows[index], statistics) }
    func known(_ index: Int) -> Standing { standings[index] ?? .open }
    guard let best = group.max(by: { known($0).rawValue < known($1).rawValue }) else { return nil }
    let isAlone = group.allSatisfy { $0 == best || known($0).isBeaten(by: known(best)) }
    return isAlone ? best : nil
  }

  private func standing(of row: FoundRow, _ statistics: TextStatistics) throws(SalvageError) -> Standing {
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
    let perPage = reader.usableSize - 4
    for (page, start) in [(cell.overflow, cell.local), (chain.lastPage, payload.count - chain.usedOnLast)] {
      guard
        let seam = ChainEnd(
          payload.span, page: page, start: start, used: min(perPage, payload.count - start),
          encoding: reader.layout.encoding),
        try reader.read(page, into: &buffer)
      else { continue }
      let judgement = seam.judge(buffer, statistics, traits(isLast: page == chain.lastPage))
      if judgement.isBad { return .contradicted }
      if judgement.isGood { isFitting = true }
    }
    return isFitting ? .fitting : .open
  }

  private func traits(isLast: Bool) -> ChainTraits {
    var traits = ChainTraits(usableSize: reader.usableSize)
    traits.isLastPage = isLast
    return traits
  }

  /// Whether the pointer maps assign a first overflow page to a leaf.
  private func isMapped(_ page: UInt32, to leaf: UInt32) throws(SalvageError) -> Bool? {
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
