import SQLiteFormat

/// Assembles and writes rows with long values, or keeps them for later.
struct LongRows {
  /// The verdict on a row with uncertain pages.
  enum Verdict {
    case none

    case believed(remark: String)

    case disputed(reason: String)
  }

  let context: RowContext

  var pending = PendingRows()

  /// Whether a long value extends beyond the database, which only an unfinished transaction writes.
  private(set) var goBehindEnd = false

  init(_ context: RowContext) { self.context = context }

  /// Returns the initial claim, which yields to rivals while there is room for them.
  func firstClaim(of tree: Int) -> OverflowChains.Claim {
    pending.hasRoomForRivals ? .unlessContested(tree: tree) : .decided(tree: tree)
  }

  /// Writes a row; false if it did not become live.
  mutating func write(
    _ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8], claim: OverflowChains.Claim? = nil,
    _ verdict: Verdict = .none
  ) throws -> Bool {
    switch try assemble(row, bytes, &payload, claim ?? firstClaim(of: row.tree)) {
    case .contested: pending.rivals.append(row)
    case .broken: try keepBroken(row, payload, "the rest of a long value cannot be found")
    case .torn: try keepBroken(row, payload, "a part of a long value is lost")
    case .shared: try keepBroken(row, payload, "the rest of a long value belongs to another row too")
    case .leadingOn(let chain):
      if !pending.hasRoomForBroken, isBelievable(chain, payload) { return try write(row, payload, leadingOn: chain) }
      try keepBroken(row, payload, "the chain of its long value leads on behind its end")
    case .behindEnd:
      let reason = EvidenceNotes.uncommitted + "its long value goes on behind the end of the database"
      try keepBroken(row, payload, reason, keepsPart: false)
    case .whole(let chain):
      switch verdict {
      case .none:
        if keepWaiting(row, payload, chain) { return false }
        return try context.tables.write(row, payload.span)
      case .believed(let remark): return try context.tables.write(row, payload.span, remark: remark)
      case .disputed(let reason): try keepApart(row, Array(payload.prefix(row.cell.local)), whole: payload, reason)
      }
    }
    return false
  }

  /// Sets aside a row with a rowid that contradicts its neighbors.
  mutating func keepOutOfOrder(_ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8], reason: String) throws {
    _ = try assemble(row, bytes, &payload, .none)
    try context.tables.keepApart(row, payload.span, reason: reason)
  }

  private mutating func assemble(
    _ row: FoundRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8], _ claim: OverflowChains.Claim
  ) throws -> OverflowChains.Outcome {
    let cell = row.cell
    payload.removeAll(keepingCapacity: true)
    for place in cell.payload..<(cell.payload + cell.local) { payload.append(bytes[place]) }
    if cell.hasReservedTypes { RecordShape.clearReservedTypes(&payload) }
    let outcome = try context.complete(&payload, of: cell, claim: claim)
    if case .behindEnd = outcome { goBehindEnd = true }
    return outcome
  }

  /// Keeps an incomplete or disbelieved row for another attempt, or sets it aside.
  ///
  /// - Parameter keepsPart: whether its remains become live if no other version exists.
  private mutating func keepBroken(
    _ row: FoundRow, _ payload: [UInt8], _ reason: String, keepsPart: Bool = true
  ) throws {
    guard !pending.hasRoomForBroken else {
      pending.broken.append(row)
      return
    }
    // With moved or contested pages, only the row's local part is certain.
    let isSure = !context.chains.checksSwaps && context.crawl.map.contested.count == 0
    let isCut = payload.count < row.cell.length
    let known = isSure && isCut ? payload : Array(payload.prefix(row.cell.local))
    try keepApart(row, keepsPart ? known : [], whole: payload, reason)
  }

  /// Sets a row aside, and keeps its remains as a live row.
  ///
  /// - Parameter part: the credible beginning; empty if the row has no such part.
  private func keepApart(_ row: FoundRow, _ part: [UInt8], whole payload: [UInt8], _ reason: String) throws {
    context.tables.tallies[row.tree].destroyed += 1
    try context.tables.keepApart(row, payload.span, reason: reason)
    guard row.cell.index >= 0, context.tables.trees[row.tree].hasRowids,
      context.crawl.map.fate(row.page) == .tree || context.crawl.map.fate(row.page) == .placed,
      let record = RecordBytes.part(part, encoding: context.reader.layout.encoding)
    else { return }
    try context.tables.keepPart(of: row, record)
  }

  /// Whether to believe a complete row with a chain that continues.
  ///
  /// SQLite ignores the final link, and one bit flip makes it nonzero. A link to an unowned page suggests that the last
  /// page is another row's.
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

  private func write(_ row: FoundRow, _ payload: [UInt8], leadingOn chain: OverflowChains.Chain) throws -> Bool {
    for place in chain.places { context.crawl.map.claim(place, .overflow, owner: row.tree) }
    var doubtful = row
    if row.doubtReason == nil { doubtful.doubtReason = .longValue }
    guard try context.tables.write(doubtful, payload.span) else { return false }
    // The phase that found the row notes other reasons.
    guard row.doubtReason == nil else { return true }
    try context.tables.noteDoubt(.longValue, of: row, words: "the chain of its long value leads on behind its end")
    return true
  }

  /// Keeps an assembled row if pages are known to have moved.
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

/// Rows to be written after others' pages were read.
struct PendingRows {
  static let limit = 1 << 17

  var broken: [FoundRow] = []

  /// Intact rows with a contested page.
  var rivals: [FoundRow] = []

  /// Intact rows to be checked, because pages moved.
  var waiting: [WaitingRow] = []

  /// False after the last attempt.
  var hasTriesLeft = true

  var hasRoomForBroken: Bool { hasTriesLeft && broken.count < Self.limit }

  /// Without room, rows get the pages they link to.
  var hasRoomForRivals: Bool { rivals.count < Self.limit }

  /// Removes and returns the rows of a list.
  mutating func take<Row>(_ list: WritableKeyPath<PendingRows, [Row]>) -> [Row] {
    defer { self[keyPath: list] = [] }
    return self[keyPath: list]
  }
}
