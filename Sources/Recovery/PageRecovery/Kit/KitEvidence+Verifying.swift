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
    let standing = try standing(outcome, evidence, isLogMode: isLogMode, differences)
    use.isCurrent = standing.writtenSince == false
    use.writtenSince = standing.writtenSince
    isAsNoted = standing.isAsNoted
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

  /// What is known of the time since the kit was made.
  private struct Standing {
    /// Whether something was written to the store; nil where that cannot be known.
    var writtenSince: Bool?

    /// Whether the files that are here are as the kit noted them, but for what is damaged.
    var isAsNoted: Bool
  }

  /// Whether something was written to the store since the kit was made.
  ///
  /// With a rollback journal the counter in the header tells. In write-ahead log mode not every transaction changes that:
  /// there the log must be the one that the kit noted, to its end, and the pages as it noted them. A log that is not there may
  /// have been checkpointed, or may have been lost with changes that no page has; then nothing tells, and so without a header.
  private func standing(
    _ outcome: RowOutcome, _ evidence: Evidence, isLogMode: Bool, _ differences: [Difference]
  ) throws(SalvageError) -> Standing {
    if isOfThisState { return Standing(writtenSince: false, isAsNoted: true) }
    if let header = outcome.reader.layout.header {
      guard header.changeCounter == kit.file.changeCounter, header.schemaCookie == kit.file.schemaCookie else {
        // SQLite writes the counter twice: where the two differ it is damaged. A smaller one is an older copy's.
        let isLater = Int32(bitPattern: header.changeCounter &- kit.file.changeCounter) > 0
        return Standing(
          writtenSince: isLater && header.versionValidFor == header.changeCounter ? true : nil, isAsNoted: false)
      }
      if !isLogMode, !kit.file.usesWriteAheadLog, evidence.log == nil {
        return Standing(writtenSince: false, isAsNoted: true)
      }
    }
    var hasSameLog = false
    if let source = evidence.log, outcome.reader.overlay?.source == .log {
      let log: WriteAheadLog
      do throws(FormatError) { log = try WriteAheadLog(source) } catch { throw SalvageError(error) }
      let mark = log.header.map {
        RecoveryKit.LogMark(salt1: $0.salt1, salt2: $0.salt2, frames: UInt32(clamping: log.committedFrameCount))
      }
      guard mark == kit.file.log else {
        // The same log with fewer frames than were noted was cut off.
        let isCutOff =
          mark?.salt1 == kit.file.log?.salt1 && mark?.salt2 == kit.file.log?.salt2
          && (mark?.frames ?? 0) < (kit.file.log?.frames ?? 0)
        return Standing(writtenSince: isCutOff ? nil : true, isAsNoted: false)
      }
      do throws(FileError) { hasSameLog = try Self.endsWithCommit(log) } catch { throw SalvageError(error) }
    }
    let isAsNoted = kit.hasSums && use.pagesConfirmed > 0 && differences.allSatisfy { $0.bit != nil }
    let isKnown = isAsNoted && hasSameLog && outcome.reader.layout.header != nil
    return Standing(writtenSince: isKnown ? false : nil, isAsNoted: isAsNoted)
  }

  /// Whether nothing was written to a log behind its last commit.
  ///
  /// The file ends there, or goes on with frames of before the log was restarted, the first salt of which was smaller. Anything
  /// else may be what is left of later transactions.
  private static func endsWithCommit(_ log: WriteAheadLog) throws(FileError) -> Bool {
    guard let header = log.header, let frameLength = log.frameLength,
      log.committedFrameCount + log.staleFrameCount == log.frameCount,
      (log.source.count - Int64(WriteAheadLog.Header.length)).isMultiple(of: Int64(frameLength))
    else { return false }
    guard let next = log.pageOffset(ofFrame: log.committedFrameCount + 1) else { return true }
    let head = try log.source.bytes(
      at: next - Int64(WriteAheadLog.frameHeaderLength), length: WriteAheadLog.frameHeaderLength)
    guard let salt = head.span.uint32(at: 8) else { return false }
    return (1...maximumRestarts).contains(Int32(bitPattern: header.salt1 &- salt))
  }

  /// The most restarts of a log that a stale frame is believed to be from before.
  private static let maximumRestarts: Int32 = 1 << 20

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
