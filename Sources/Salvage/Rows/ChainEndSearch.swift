import SQLiteFormat

/// Finds swapped chain tails by content, since a chain's last page has no link.
///
/// The result has the rows assessed; `PageReader.moved` gets the exchanged pages.
struct ChainEndSearch {
  let context: RowContext

  private var reader: PageReader { context.reader }

  init(_ context: RowContext) { self.context = context }

  /// Restores swapped tails, and doubts rows whose tail fits nowhere.
  func run(_ waiting: [WaitingRow]) throws(SalvageError) -> [WaitingRow] {
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

  private func learnTraits(_ rows: [WaitingRow]) throws(SalvageError) -> ChainTraits {
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
        for cell in scan.cells {
          traits.learn(buffer.span, cell.payload..<(cell.payload + cell.local), tree: number)
        }
      }
    }
    return traits
  }

  /// Returns the digests of duplicate tails, which come from overwriting, not swapping.
  private func copiedEnds() throws(SalvageError) -> Set<UInt64> {
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
  private func doubtCopies(_ waiting: inout [WaitingRow]) throws(SalvageError) {
    var rows: [UInt64: [Int]] = [:]
    var buffer = reader.makeBuffer()
    for index in waiting.indices {
      guard try reader.read(waiting[index].end.page, into: &buffer) else { continue }
      rows[context.digest(ofPage: buffer), default: []].append(index)
    }
    for group in rows.values where group.count > 1 {
      let first = waiting[group[0]].end
      let isSame = group.allSatisfy {
        waiting[$0].end.before == first.before && waiting[$0].end.used == first.used
      }
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
    DeletedDigests.digest(bytes.span, from: 0, length: reader.usableSize)
  }

  /// Learns texts from certainly coherent parts of rows.
  ///
  /// - Parameter waiting: rows with uncertain tails.
  func learnTexts(waiting: [WaitingRow]) throws(SalvageError) -> TextStatistics {
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
