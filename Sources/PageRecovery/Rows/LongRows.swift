/// Puts rows with long values together and writes them; those that cannot be written yet are kept for later.
struct LongRows {
  /// What was found out about a row whose pages were in doubt.
  enum Verdict {
    /// Nothing more than the row itself tells.
    case none

    /// It is to be believed, and something is to be noted of it.
    case believed(remark: String)

    /// It is not to be believed, so that it is no live one.
    case disputed(reason: String)
  }

  /// What came of putting a row together.
  private enum Assembly {
    case whole(OverflowChains.Chain)

    /// Something else leads to a page of it.
    case contested

    /// A part of it cannot be had, and why.
    case partial(reason: String)
  }

  let context: RowContext

  /// The rows that are not written yet.
  var pending = PendingRows()

  /// Whether a long value goes on behind the end of the database, where only a transaction that did not end can have put
  /// it.
  private(set) var goBehindEnd = false

  init(_ context: RowContext) { self.context = context }

  /// Writes a row for the first time, or after more was found out about pages in general; false where it did not become a
  /// live one.
  mutating func write(
    _ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8]
  ) throws(SalvageError) -> Bool {
    try write(row, bytes, &payload, claim: firstClaim(of: row.tree), .none)
  }

  /// The claim of a row of which nothing has been decided: it yields as long as there is room for those that do.
  func firstClaim(of tree: Int) -> OverflowChains.Claim {
    pending.hasRoomForRivals ? .unlessContested(tree: tree) : .decided(tree: tree)
  }

  /// Writes a row; false where it did not become a live one.
  ///
  /// - Parameters:
  ///   - bytes: its page.
  ///   - payload: room for its bytes.
  ///   - claim: what becomes of its overflow pages.
  ///   - verdict: what was found out about the row.
  mutating func write(
    _ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8], claim: OverflowChains.Claim, _ verdict: Verdict
  ) throws(SalvageError) -> Bool {
    switch try assemble(row, bytes, &payload, claim) {
    case .contested:
      pending.keepRival(row)
      return false
    case .partial(let reason):
      if !pending.keepBroken(row) { try keepApart(row, payload, reason) }
      return false
    case .whole(let chain):
      switch verdict {
      case .none:
        if keepWaiting(row, payload, chain) { return false }
        return try context.tables.write(row, payload.span)
      case .believed(let remark):
        return try context.tables.write(row, payload.span, remark: remark)
      case .disputed(let reason):
        try keepApart(row, payload, reason)
        return false
      }
    }
  }

  /// Keeps a row apart whose rowid contradicts those beside it, as far as it can be put together.
  mutating func keepOutOfOrder(
    _ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8], reason: String
  ) throws(SalvageError) {
    _ = try assemble(row, bytes, &payload, .none)
    try context.tables.keepApart(
      row, payload.span, source: context.tables.source(of: row.page), reason: reason)
  }

  private mutating func assemble(
    _ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8], _ claim: OverflowChains.Claim
  ) throws(SalvageError) -> Assembly {
    let cell = row.cell
    payload.removeAll(keepingCapacity: true)
    for place in cell.payload..<(cell.payload + cell.local) { payload.append(bytes[place]) }
    switch try context.complete(&payload, of: cell, claim: claim) {
    case .whole(let chain): return .whole(chain)
    case .contested: return .contested
    case .broken: return .partial(reason: "the rest of a long value cannot be found")
    case .torn: return .partial(reason: "a part of a long value is lost")
    case .shared: return .partial(reason: "the rest of a long value belongs to another row too")
    case .behindEnd:
      goBehindEnd = true
      return .partial(reason: "not committed; its long value goes on behind the end of the database")
    }
  }

  private func keepApart(_ row: FoundRow, _ payload: [UInt8], _ reason: String) throws(SalvageError) {
    context.tables.tallies[row.tree].destroyed += 1
    try context.tables.keepApart(row, payload.span, source: context.tables.source(of: row.page), reason: reason)
  }

  /// Keeps a row that could be put together, where pages are known to have changed places; whether it does.
  private mutating func keepWaiting(_ row: FoundRow, _ payload: [UInt8], _ chain: OverflowChains.Chain) -> Bool {
    guard context.chains.checksSwaps, pending.waiting.count < PendingRows.limit,
      let end = ChainEnd(
        payload.span, page: chain.lastPage, used: chain.usedOnLast, encoding: context.reader.layout.encoding,
        tree: row.tree)
    else { return false }
    pending.waiting.append(WaitingRow(row: row, end: end))
    return true
  }
}
