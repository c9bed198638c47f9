internal import SQLiteFormat

/// A row whose long value could be put together, and is looked at again before it is written, because pages of the store
/// are known to have changed places.
struct WaitingRow {
  var row: BrokenRow

  /// The end of its chain.
  var end: ChainEnd

  /// How well the content fits that stands there now.
  var judgement = ChainEnd.Judgement(share: 0.5, isBroken: false)

  /// Why it is not to be believed; nil where it is.
  var doubt: String?

  /// Whether another content may fit better: nothing but bytes without any pattern can fill a page so that none does.
  var isSuspect: Bool { judgement.isBad || !judgement.isGood && end.fields.contains { $0.isText } }
}

extension RowHarvest {
  /// How many rows are doubted at most; each has its last page in memory.
  private static let maximumSuspects = 256

  /// How much better the two rows of an exchange must look for it, and how much better than with any other.
  private static let leastGain = 0.3
  private static let leastLead = 0.1

  /// Finds out which of the rows that wait have ends of chains that changed places, puts those back, and writes all.
  func settleWaiting() throws(SalvageError) {
    guard !waiting.isEmpty else { return }
    let statistics = try learnTexts()
    let traits = try learnTraits()
    var buffer = reader.makeBuffer()
    for index in waiting.indices {
      guard try reader.read(waiting[index].end.page, into: &buffer) else { continue }
      waiting[index].judgement = waiting[index].end.judge(buffer, statistics, traits)
    }
    let copies = try copiedEnds()
    for _ in 0..<4 { guard try exchangeEnds(statistics, traits, copies) else { break } }
    for index in waiting.indices where waiting[index].judgement.isBad {
      waiting[index].doubt =
        waiting[index].judgement.isBroken
        ? "the end of a long value belongs to another row" : "the end of a long value may belong to another row"
    }
    try doubtCopies()
    try writeWaiting()
  }

  /// Learns what stands behind the ends of values, and between what numbers those of the columns are.
  private func learnTraits() throws(SalvageError) -> ChainTraits {
    var traits = ChainTraits(usableSize: reader.usableSize)
    var buffer = reader.makeBuffer()
    for row in waiting {
      guard try reader.read(row.end.page, into: &buffer) else { continue }
      traits.learn(buffer.span, used: row.end.used)
    }
    let trees = Set(waiting.map(\.row.tree))
    var scan = LeafScan()
    for number in trees.sorted() {
      let tree = crawl.trees[number]
      let kind: PageKind = tree.hasRowids ? .tableLeaf : .indexLeaf
      for place in stride(from: 0, to: tree.leaves.count, by: max(1, tree.leaves.count / 256)) {
        let page = tree.leaves[place]
        guard page > 1, try reader.readPlace(page, into: &buffer) else { continue }
        scan.read(buffer.span, start: 0, kind: kind, shape: tree.shape, geometry: reader.geometry, carves: false)
        for cell in scan.cells {
          traits.learn(buffer.span, cell.payload..<(cell.payload + cell.local), tree: number)
        }
      }
    }
    return traits
  }

  /// Doubts rows that end with the same page although they are not the same before it: one page was written over with a
  /// copy of the other, and a page full of bytes does not tell which.
  private func doubtCopies() throws(SalvageError) {
    var rows: [UInt64: [Int]] = [:]
    var buffer = reader.makeBuffer()
    for index in waiting.indices {
      guard try reader.read(waiting[index].end.page, into: &buffer) else { continue }
      rows[digest(buffer), default: []].append(index)
    }
    for group in rows.values where group.count > 1 {
      let isSame = group.allSatisfy {
        waiting[$0].end.before == waiting[group[0]].end.before && waiting[$0].end.used == waiting[group[0]].end.used
      }
      guard !isSame else { continue }
      let best = group.filter { waiting[$0].judgement.isGood }
      for index in group where waiting[index].doubt == nil && (best.count != 1 || best[0] != index) {
        waiting[index].doubt = "another long value ends with the same page, which may be that one's"
      }
    }
  }

  private func writeWaiting() throws(SalvageError) {
    let rows = waiting
    waiting = []
    isSettled = true
    var buffer = reader.makeBuffer()
    var payload: [UInt8] = []
    var page: UInt32 = 0
    for row in rows {
      if row.row.page != page {
        guard try reader.readPlace(row.row.page, into: &buffer) else { continue }
        page = row.row.page
      }
      doubt = row.doubt
      remark = row.doubt == nil ? "pages of the store changed places; its long value is put together" : nil
      try writeLate(row.row, buffer.span, &payload)
    }
    (doubt, remark) = (nil, nil)
    isSettled = false
  }

  /// Learns what texts look like in this store: from the rows themselves, as far as it is beyond doubt that their parts
  /// belong together.
  func learnTexts() throws(SalvageError) -> TextStatistics {
    var statistics = TextStatistics(encoding: reader.layout.encoding)
    var buffer = reader.makeBuffer()
    var scan = LeafScan()
    for tree in crawl.trees where tree.hasRowids && !tree.isInternal {
      for place in stride(from: 0, to: tree.leaves.count, by: max(1, tree.leaves.count / 256)) {
        let page = tree.leaves[place]
        guard page > 1, try reader.readPlace(page, into: &buffer) else { continue }
        scan.read(buffer.span, start: 0, kind: .tableLeaf, shape: tree.shape, geometry: reader.geometry, carves: false)
        for cell in scan.cells {
          statistics.learn(buffer.span, cell.payload..<(cell.payload + cell.local), length: cell.length)
        }
      }
    }
    // The first overflow page of a long value is text from the middle of one.
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

  /// The digests of ends of chains that stand at more than one place.
  ///
  /// One of them was written over another page, and neither has left its place for another's.
  private func copiedEnds() throws(SalvageError) -> Set<UInt64> {
    var seen: Set<UInt64> = []
    var copies: Set<UInt64> = []
    var buffer = reader.makeBuffer()
    guard crawl.map.pageCount >= 2 else { return [] }
    for page in 2...crawl.map.pageCount where crawl.map.look(page) == .linked && seen.count < GhostList.limit {
      guard try reader.readPlace(page, into: &buffer), buffer.span.uint32(at: 0) == 0 else { continue }
      let digest = digest(buffer)
      if !seen.insert(digest).inserted { copies.insert(digest) }
    }
    return copies
  }

  private func digest(_ page: [UInt8]) -> UInt64 {
    GhostList.digest(page.span, from: 0, length: reader.usableSize)
  }

  /// An exchange that would make two rows better.
  private struct Exchange {
    var other: Int?
    var place: UInt32
    var gain: Double
    var mine: ChainEnd.Judgement
    var theirs: ChainEnd.Judgement?
  }

  /// Exchanges the ends of chains that fit each other's place much better than their own; whether any was exchanged.
  private func exchangeEnds(_ statistics: TextStatistics, _ traits: ChainTraits, _ copies: Set<UInt64>)
    throws(SalvageError) -> Bool
  {
    let suspects = Array(
      waiting.indices.filter { waiting[$0].isSuspect && reader.moved[waiting[$0].end.page] == nil }
        .sorted { waiting[$0].judgement.value < waiting[$1].judgement.value }
        .prefix(Self.maximumSuspects))
    guard !suspects.isEmpty else { return false }
    var contents: [[UInt8]] = []
    for index in suspects {
      var buffer = reader.makeBuffer()
      _ = try reader.read(waiting[index].end.page, into: &buffer)
      // A copy has come from nobody's place.
      contents.append(copies.contains(digest(buffer)) ? [] : buffer)
    }
    var best = [Exchange?](repeating: nil, count: suspects.count)
    var second = [Double](repeating: 0, count: suspects.count)
    var buffer = reader.makeBuffer()
    func consider(_ place: UInt32, _ content: [UInt8], of other: Int?) {
      for (number, index) in suspects.enumerated() where index != other {
        let mine = waiting[index].end.judge(content, statistics, traits)
        guard mine.isGood else { continue }
        var gain = mine.value - waiting[index].judgement.value
        var theirs: ChainEnd.Judgement?
        if let other {
          guard !contents[number].isEmpty else { continue }
          let judged = waiting[other].end.judge(contents[number], statistics, traits)
          // What fits its place already has not left another one.
          guard !waiting[other].judgement.isGood || judged.value >= waiting[other].judgement.value,
            judged.isGood || judged.value >= waiting[other].judgement.value
          else { continue }
          gain += judged.value - waiting[other].judgement.value
          theirs = judged
        }
        if gain > best[number]?.gain ?? 0 {
          second[number] = best[number]?.gain ?? 0
          best[number] = Exchange(other: other, place: place, gain: gain, mine: mine, theirs: theirs)
        } else {
          second[number] = max(second[number], gain)
        }
      }
    }
    for other in waiting.indices where reader.moved[waiting[other].end.page] == nil {
      guard try reader.readPlace(waiting[other].end.page, into: &buffer), !copies.contains(digest(buffer)) else {
        continue
      }
      consider(waiting[other].end.page, buffer, of: other)
    }
    for page in abandonedPages() where reader.moved[page] == nil {
      guard try reader.readPlace(page, into: &buffer), buffer.span.uint32(at: 0) == 0 else { continue }
      guard !copies.contains(digest(buffer)) else { continue }
      consider(page, buffer, of: nil)
    }
    /// Whether each of the two rows is best served by the other one.
    func isMutual(_ number: Int, _ exchange: Exchange) -> Bool {
      guard let other = exchange.other, let theirs = suspects.firstIndex(of: other) else { return false }
      return best[theirs]?.other == suspects[number]
    }
    var isChanged = false
    for number in suspects.indices.sorted(by: { (best[$0]?.gain ?? 0) > (best[$1]?.gain ?? 0) }) {
      let index = suspects[number]
      guard let exchange = best[number], exchange.gain >= Self.leastGain,
        exchange.gain - second[number] >= Self.leastLead || isMutual(number, exchange),
        reader.moved[waiting[index].end.page] == nil,
        reader.moved[exchange.place] == nil
      else { continue }
      reader.moved[waiting[index].end.page] = exchange.place
      reader.moved[exchange.place] = waiting[index].end.page
      waiting[index].judgement = exchange.mine
      if let other = exchange.other, let theirs = exchange.theirs { waiting[other].judgement = theirs }
      crawl.map.claim(exchange.place, .overflow, owner: waiting[index].row.tree)
      isChanged = true
    }
    return isChanged
  }

  /// Puts a row off whose long value could be put together, where pages are known to have changed places.
  func isWaiting(
    _ cell: LeafCell, _ payload: [UInt8], page: UInt32, tree: Int, doubtReason: DoubtReason?
  ) -> Bool {
    guard chains.checksSwaps, !cell.isOutOfOrder, waiting.count < BrokenRow.limit,
      let end = ChainEnd(
        payload.span, page: chains.end.page, used: chains.end.used, encoding: reader.layout.encoding, tree: tree)
    else { return false }
    waiting.append(
      WaitingRow(row: BrokenRow(tree: tree, page: page, cell: cell, doubtReason: doubtReason), end: end))
    return true
  }
}
