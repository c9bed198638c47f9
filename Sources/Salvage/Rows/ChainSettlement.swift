import SQLiteFormat

/// The second phase: decides whose overflow pages are that rows contend for or that stand in wrong places, and writes the
/// rows that waited for that.
///
/// In: the rows with long values that the first phase left. Out: all of them written, live or apart.
struct ChainSettlement {
  let context: RowContext

  /// The rows with long values.
  private(set) var longRows: LongRows

  private var swaps: SwapSearch

  init(_ context: RowContext, _ longRows: LongRows) {
    self.context = context
    self.longRows = longRows
    swaps = SwapSearch(context)
  }

  /// Tries rows again whose long values could not be put together, after looking for overflow pages that stand at each
  /// other's places, until nothing more is found.
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

  /// Whether every long value could be put together in a store without damage: then no page has changed places, and chains
  /// that cross each other are as SQLite wrote them.
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

  /// Reads a page unless it is the one that is at hand; false where there is none.
  private func turn(to page: UInt32, from current: inout UInt32, _ buffer: inout [UInt8]) throws(SalvageError) -> Bool {
    guard page != current else { return true }
    guard try context.reader.readPlace(page, into: &buffer) else { return false }
    current = page
    return true
  }

  /// Notes what was doubtful about a row before it was put off.
  private func noteDoubt(of row: FoundRow, isLive: Bool) throws(SalvageError) {
    guard isLive, let reason = row.doubtReason else { return }
    try context.tables.noteDoubt(reason, of: row)
  }

  // MARK: Rows that contend for pages

  private static let fitting = "other rows lead to the pages of its long value too; they fit this one"
  private static let disputed =
    "other rows lead to the pages of its long value too, and nothing tells whose they are"

  /// Decides whose the pages are that several rows lead to, and writes those rows.
  ///
  /// A row with no rival among the rows that are whole is written as any other: what else led to its pages is a page that is
  /// no longer in use, or a row of another length. Of several the one is live that fits, where all others do not.
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
      // The one whose the pages are goes first, so that the others find them taken.
      for index in group.sorted(by: { ($0 == winner ? 0 : 1, $0) < ($1 == winner ? 0 : 1, $1) }) {
        try write(
          rows[index], index == winner ? .believed(remark: Self.fitting) : .disputed(reason: Self.disputed))
      }
    }
  }

  /// Writes a row of which it has been decided whose its pages are.
  private mutating func write(_ row: FoundRow, _ verdict: LongRows.Verdict) throws(SalvageError) {
    var buffer = context.reader.makeBuffer()
    var payload: [UInt8] = []
    guard try context.reader.readPlace(row.page, into: &buffer) else { return }
    let isLive = try longRows.write(row, buffer.span, &payload, claim: .decided(tree: row.tree), verdict)
    try noteDoubt(of: row, isLive: isLive)
  }

  // MARK: Rows whose pages may have changed places

  private static let exchanged = "pages of the store changed places; its long value is put together"

  /// Finds out which of the rows that wait have ends of chains that changed places, puts those back, and writes all.
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

/// What speaks for and against the rows that lead to the same overflow pages.
///
/// In: rows that are whole, each with a page that something else leads to as well. Out: which of them belong together, and
/// whose the pages are.
struct RivalEvidence {
  let context: RowContext

  private var reader: PageReader { context.reader }

  /// How certain it is that the pages are a row's.
  enum Standing: Int {
    case contradicted

    case open

    /// The content fits where the row's own part ends.
    case fitting

    /// The pointer maps or a recovery kit say so.
    case proved

    /// Whether another row with this standing is no match for the best one.
    func isBeaten(by best: Standing) -> Bool {
      switch best {
      case .proved: self != .proved
      case .fitting: self == .contradicted
      case .contradicted, .open: false
      }
    }
  }

  /// The rows by the pages that they share; most are alone.
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

  /// The places of the overflow pages of each row.
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

  /// The one of several rows whose the pages are; nil where nothing tells.
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

  /// What the ends of chains are like, as far as it counts for one page.
  private func traits(isLast: Bool) -> ChainTraits {
    var traits = ChainTraits(usableSize: reader.usableSize)
    traits.isLastPage = isLast
    return traits
  }

  /// Whether the pointer maps say that a page is the first of a long value whose cell is on another page; nil where there
  /// are none.
  private func isMapped(_ page: UInt32, to leaf: UInt32) throws(SalvageError) -> Bool? {
    guard let entry = try PointerMaps(reader).entry(for: page) else { return nil }
    switch entry.kind {
    case .overflowFirst: return entry.parent == leaf
    case .overflowNext: return false
    case nil, .root?, .free?, .child?: return nil
    }
  }

  /// Whether a recovery kit knows the page just as it is.
  private func isNoted(_ page: UInt32, _ bytes: [UInt8]) -> Bool {
    guard let kit = context.crawl.kit else { return false }
    for table in kit.tables {
      guard let place = table.leaves.firstIndex(of: page), table.sums.indices.contains(place) else { continue }
      return table.sums[place] == RecoveryKit.sum(of: bytes)
    }
    return false
  }
}
