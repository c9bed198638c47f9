internal import RecoveryKit
internal import SQLiteFormat
internal import StoreFiles

extension KitEvidence {
  /// A page that is sound, and not as the kit noted it.
  private struct Difference {
    var tree: Int
    var page: UInt32

    /// The one bit in which it differs; nil where it differs in more.
    var bit: (offset: Int, bit: Int)?
  }

  /// Compares the pages whose rows were taken with the sums that the kit has, and marks the rows that are not what they
  /// were.
  ///
  /// A page that differs in one bit has a flipped one: a write to a page changes more. A page that differs otherwise
  /// was written to, unless nothing was written to the store since.
  mutating func verify(_ outcome: RowOutcome, _ evidence: Evidence) throws(SalvageError) {
    let differences = try compare(outcome)
    let isLogMode = outcome.reader.layout.header?.usesWriteAheadLog ?? kit.file.usesWriteAheadLog
    use.isCurrent = try isUntouched(outcome, evidence, isLogMode: isLogMode, differences)
    for difference in differences {
      if let bit = difference.bit {
        try mark(difference, outcome, reason: "a single bit of its page is not as the recovery kit noted it") {
          $0.contains(bit.offset)
        }
      } else if use.isCurrent {
        try mark(
          difference, outcome, reason: "its page is not as the recovery kit noted it, and nothing was written since"
        ) { _ in true }
      }
    }
  }

  private mutating func compare(_ outcome: RowOutcome) throws(SalvageError) -> [Difference] {
    guard kit.hasSums else { return [] }
    var known: Set<UInt32> = []
    for table in kit.tables { known.formUnion(table.sums) }
    var differences: [Difference] = []
    var buffer = outcome.reader.makeBuffer()
    for table in kit.tables where !table.sums.isEmpty {
      guard let tree = outcome.crawl.trees.firstIndex(where: { $0.kind != .index && isSame($0.name, table.name) }),
        outcome.live[tree] != nil
      else { continue }
      for (page, sum) in zip(table.leaves, table.sums) {
        let place = outcome.reader.moved[page] ?? page
        guard outcome.crawl.map.owner(place) == tree, try outcome.reader.readPlace(place, into: &buffer) else {
          continue
        }
        switch outcome.crawl.map.fate(place) {
        case .tree, .placed: break
        case .unclaimed, .damaged, .overflow, .free, .special, .dead: continue
        }
        let found = RecoveryKit.sum(of: buffer)
        if found == sum {
          use.pagesConfirmed += 1
        } else if let bit = RecoveryKit.flippedBit(of: buffer, expected: sum) {
          use.pagesWithFlippedBit += 1
          differences.append(Difference(tree: tree, page: place, bit: bit))
        } else if outcome.wounds.pages[place] == nil, !known.contains(found), !outcome.reader.isDoubtful(place) {
          differences.append(Difference(tree: tree, page: place))
        }
      }
    }
    return differences
  }

  /// Whether nothing was written to the store since the kit was made.
  ///
  /// With a rollback journal the counter in the header tells. In write-ahead log mode not every transaction changes that;
  /// there the pages themselves must be as the kit noted them, but for those that are visibly damaged.
  private func isUntouched(
    _ outcome: RowOutcome, _ evidence: Evidence, isLogMode: Bool, _ differences: [Difference]
  ) throws(SalvageError) -> Bool {
    if let header = outcome.reader.layout.header {
      guard header.changeCounter == kit.file.changeCounter, header.schemaCookie == kit.file.schemaCookie else {
        return false
      }
      if !isLogMode, !kit.file.usesWriteAheadLog, evidence.log == nil { return true }
    }
    if let source = evidence.log, outcome.reader.overlay?.source == .log {
      let log: WriteAheadLog
      do throws(FormatError) { log = try WriteAheadLog(source) } catch { throw SalvageError(error) }
      let mark = log.header.map {
        RecoveryKit.LogMark(salt1: $0.salt1, salt2: $0.salt2, frames: UInt32(clamping: log.committedFrameCount))
      }
      guard mark == kit.file.log else { return false }
    }
    return kit.hasSums && use.pagesConfirmed > 0 && differences.allSatisfy { $0.bit != nil }
  }

  /// Marks the live rows of a page whose cells are concerned.
  private func mark(
    _ difference: Difference, _ outcome: RowOutcome, reason: String, where isConcerned: (Range<Int>) -> Bool
  ) throws(SalvageError) {
    let tree = outcome.crawl.trees[difference.tree]
    // Of rows that are doubtful for another reason nothing more is to be said.
    guard tree.hasRowids, let live = outcome.live[difference.tree],
      outcome.crawl.doubtReason(ofPage: difference.page, tree: difference.tree) == nil
    else { return }
    var buffer = outcome.reader.makeBuffer()
    guard try outcome.reader.readPlace(difference.page, into: &buffer) else { return }
    let bytes = buffer.span
    let start = difference.page == 1 && bytes[0] != 13 ? DatabaseHeader.length : 0
    for index in 0..<(bytes.uint16(at: start + 3) ?? 0) {
      guard let offset = bytes.uint16(at: start + 8 + 2 * index),
        let cell = LeafCell(bytes, kind: .tableLeaf, at: offset, index: index, geometry: outcome.reader.geometry),
        isConcerned(cell.offset..<cell.end), try live.hasRow(cell.rowid),
        outcome.tables.doubtedRows?[difference.tree]?.contains(cell.rowid) != true
      else { continue }
      try outcome.tables.noteDoubt(
        .otherThanKit, row: cell.rowid, of: difference.tree,
        EvidenceNotes.Origin(
          page: difference.page, cell: index, source: outcome.tables.source(of: difference.page)), words: reason)
    }
  }
}
