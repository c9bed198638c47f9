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
