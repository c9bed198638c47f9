import SQLiteFormat

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

  private enum Assembly {
    case whole(OverflowChains.Chain)

    /// Something else leads to a page of it.
    case contested

    /// As long as it should be, and its chain leads on.
    case leadingOn(OverflowChains.Chain)

    /// A part of it cannot be read, and why.
    case partial(reason: String)

    /// What was found of it was never committed.
    case uncommitted
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
      if !pending.keepBroken(row) { try keepApart(row, payload, reason, keepsPart: true) }
      return false
    case .leadingOn(let chain):
      if pending.keepBroken(row) { return false }
      if isBelievable(chain, payload) { return try write(row, payload, leadingOn: chain) }
      let reason = "the chain of its long value leads on behind its end"
      try keepApart(row, payload, reason, keepsPart: true)
      return false
    case .uncommitted:
      let reason = EvidenceNotes.uncommitted + "its long value goes on behind the end of the database"
      if !pending.keepBroken(row) { try keepApart(row, payload, reason, keepsPart: false) }
      return false
    case .whole(let chain):
      switch verdict {
      case .none:
        if keepWaiting(row, payload, chain) { return false }
        return try context.tables.write(row, payload.span)
      case .believed(let remark):
        return try context.tables.write(row, payload.span, remark: remark)
      case .disputed(let reason):
        try keepApart(row, Array(payload.prefix(row.cell.local)), whole: payload, reason)
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
    if cell.hasReservedTypes { RecordShape.clearReservedTypes(&payload) }
    switch try context.complete(&payload, of: cell, claim: claim) {
    case .whole(let chain): return .whole(chain)
    case .leadingOn(let chain): return .leadingOn(chain)
    case .contested: return .contested
    case .broken: return .partial(reason: "the rest of a long value cannot be found")
    case .torn: return .partial(reason: "a part of a long value is lost")
    case .shared: return .partial(reason: "the rest of a long value belongs to another row too")
    case .behindEnd:
      goBehindEnd = true
      return .uncommitted
    }
  }

  /// Keeps a row apart of which a part is lost or not to be believed.
  ///
  /// - Parameters:
  ///   - payload: what there is of it.
  ///   - keepsPart: whether what is left of it is a live row, if no other version of it is found.
  private func keepApart(
    _ row: FoundRow, _ payload: [UInt8], _ reason: String, keepsPart: Bool
  ) throws(SalvageError) {
    // Where pages changed places, or something else leads to them too, only what is on the row's own page is its for sure.
    let isSure = !context.chains.checksSwaps && context.crawl.map.contested.count == 0
    let isCut = payload.count < row.cell.length
    let known = isSure && isCut ? payload : Array(payload.prefix(row.cell.local))
    try keepApart(row, keepsPart ? known : [], whole: payload, reason)
  }

  /// Keeps a row apart, and what is left of it as a live row.
  ///
  /// - Parameters:
  ///   - part: the beginning of the row that is to be believed; empty for none.
  ///   - payload: all that there is of it.
  private func keepApart(
    _ row: FoundRow, _ part: [UInt8], whole payload: [UInt8], _ reason: String
  ) throws(SalvageError) {
    context.tables.tallies[row.tree].destroyed += 1
    try context.tables.keepApart(row, payload.span, source: context.tables.source(of: row.page), reason: reason)
    guard row.cell.index >= 0, context.tables.trees[row.tree].hasRowids,
      context.crawl.map.fate(row.page) == .tree || context.crawl.map.fate(row.page) == .placed,
      let record = RecordBytes.part(part, encoding: context.reader.layout.encoding)
    else { return }
    try context.tables.keepPart(of: row, record)
  }

  /// Whether a row is to be believed whose last overflow page leads on, though the row ends there: SQLite does not look at
  /// that number, and one wrong bit makes it of zero.
  ///
  /// Where it leads to a page that nothing else has, the page may be another one's, and the rest stand there.
  private func isBelievable(_ chain: OverflowChains.Chain, _ payload: [UInt8]) -> Bool {
    guard !context.chains.checksSwaps, !chain.places.contains(where: context.crawl.map.contested.contains),
      RecordText.isValid(payload.span, at: 0, before: payload.count, encoding: context.reader.layout.encoding)
    else { return false }
    if chain.leadsOnTo > context.reader.pageCount { return chain.leadsOnTo.nonzeroBitCount == 1 }
    switch context.crawl.map.fate(chain.leadsOnTo) {
    case .tree, .placed, .overflow, .special, .free: return true
    case .unclaimed, .damaged, .dead: return chain.leadsOnTo == 1
    }
  }

  /// Writes a row whose last overflow page leads on.
  private func write(
    _ row: FoundRow, _ payload: [UInt8], leadingOn chain: OverflowChains.Chain
  ) throws(SalvageError) -> Bool {
    for place in chain.places { context.crawl.map.claim(place, .overflow, owner: row.tree) }
    var doubtful = row
    if row.doubtReason == nil { doubtful.doubtReason = .longValue }
    guard try context.tables.write(doubtful, payload.span) else { return false }
    // Another reason is noted by the phase that found the row.
    guard row.doubtReason == nil else { return true }
    try context.tables.noteDoubt(
      .longValue, row: row.cell.rowid, of: row.tree,
      EvidenceNotes.Origin(
        page: row.page, cell: row.cell.index < 0 ? nil : row.cell.index, source: context.tables.source(of: row.page)),
      words: "the chain of its long value leads on behind its end")
    return true
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

/// The rows with long values that are not written at the first try, because the pages of others may tell more of them.
struct PendingRows {
  /// How many of a kind are kept at most.
  static let limit = 1 << 17

  /// Rows whose long values could not be put together.
  private(set) var broken: [FoundRow] = []

  /// Rows that are whole with a page that something else leads to as well, and of which it is not decided yet whose it is.
  private(set) var rivals: [FoundRow] = []

  /// Rows that are whole, and are looked at together before they are written, because pages changed places.
  var waiting: [WaitingRow] = []

  /// Whether rows that cannot be put together are kept for another try; there is none behind the last one.
  var hasTriesLeft = true

  /// Keeps a row that could not be put together for another try; false where there is none, or no room.
  mutating func keepBroken(_ row: FoundRow) -> Bool {
    guard hasTriesLeft, broken.count < Self.limit else { return false }
    broken.append(row)
    return true
  }

  /// Keeps a row with a page that something else leads to.
  mutating func keepRival(_ row: FoundRow) { rivals.append(row) }

  /// Whether there is room for another rival; where there is none, rows get the pages that they lead to.
  var hasRoomForRivals: Bool { rivals.count < Self.limit }

  /// The rows that could not be put together, which are kept no longer.
  mutating func takeBroken() -> [FoundRow] {
    defer { broken = [] }
    return broken
  }

  /// The rivals, which are kept no longer.
  mutating func takeRivals() -> [FoundRow] {
    defer { rivals = [] }
    return rivals
  }

  /// The rows that wait, which are kept no longer.
  mutating func takeWaiting() -> [WaitingRow] {
    defer { waiting = [] }
    return waiting
  }
}
