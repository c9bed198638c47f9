internal import ManagedObjectModel
import PersistentStore
internal import Platform
internal import SQLiteFormat

/// A recovery kit of the store that is being salvaged.
struct KitEvidence {
  let kit: RecoveryKit

  /// How it served, for the report.
  var use: SalvageReport.KitUse

  /// Whether it was noted of the very state that is salvaged, so that no log of that can be missing.
  let isOfThisState: Bool

  /// Whether the files that are here are as it notes them, but for what is damaged: what it lists and is not there is lost
  /// of these files, though changes may be lost too where it is not known to be current.
  var isAsNoted = false

  /// The first of some kits that is the store's; says of the others why they are not used.
  ///
  /// - Parameters:
  ///   - kits: the newest first.
  ///   - isOfThisState: whether they were noted of the very state that is salvaged.
  ///   - scope: which of them say something of the store; nil for all.
  ///   - remarks: what is to be said is added to it.
  static func choose(
    from kits: [RecoveryKit], isOfThisState: Bool, _ scope: EvidenceScope?, _ reader: PageReader,
    _ identity: StoreIdentity, _ schema: SchemaSearch,
    _ remarks: inout [String]
  ) throws(SalvageError) -> KitEvidence? {
    for kit in kits {
      if let exclusion = scope?.exclusion(generation: kit.generation, date: kit.date) {
        remarks.append("the recovery kit of \(kit.date.rfc3339) \(exclusion.words), and was not used")
        continue
      }
      guard try isOwn(kit, reader, identity, schema) else {
        remarks.append("the recovery kit of \(kit.date.rfc3339) is another store's, and was not used")
        continue
      }
      return KitEvidence(kit: kit, use: SalvageReport.KitUse(date: kit.date.rfc3339), isOfThisState: isOfThisState)
    }
    return nil
  }

  /// Whether a kit is the store's: by its identifier, else by its list of tables or the sums of its pages.
  private static func isOwn(
    _ kit: RecoveryKit, _ reader: PageReader, _ identity: StoreIdentity, _ schema: SchemaSearch
  ) throws(SalvageError) -> Bool {
    guard kit.file.pageSize == reader.pageSize else { return false }
    if let known = identity.metadata?.uuid, let noted = kit.storeUUID {
      return known.uppercased() == noted.uppercased()
    }
    let statements = Set(kit.entries.compactMap { $0.kind == "table" ? $0.sql : nil })
    // The tables of one model are those of all its stores; with an identifier in the kit they prove little.
    if kit.storeUUID == nil, schema.entries.contains(where: { $0.sql.map(statements.contains) == true }) { return true }
    var buffer = reader.makeBuffer()
    var tried = 0
    for table in kit.tables where table.root != 1 && !table.sums.isEmpty {
      for (page, sum) in zip(table.leaves, table.sums).prefix(200) {
        guard tried < 1000 else { return false }
        tried += 1
        guard try reader.readPlace(page, into: &buffer) else { continue }
        if RecoveryKit.sum(of: buffer) == sum { return true }
      }
    }
    return false
  }

  /// The entries of the schema that only the kit has, added to those that were found.
  func supplemented(_ found: [SchemaEntry], pageCount: UInt32) -> [SchemaEntry] {
    var result = found
    var roots = Set(found.map(\.rootPage))
    let names = Set(found.map { "\($0.kind.rawValue) \($0.name.lowercased())" })
    for entry in kit.entries {
      guard let kind = SchemaEntry.Kind(rawValue: entry.kind),
        !names.contains("\(entry.kind) \(entry.name.lowercased())")
      else { continue }
      let isFree = entry.root > 1 && entry.root <= pageCount && roots.insert(entry.root).inserted
      result.append(
        SchemaEntry(
          kind: kind, name: entry.name, tableName: entry.tableName, rootPage: isFree ? entry.root : 0, sql: entry.sql))
    }
    return result
  }

  /// The version hashes that the kit noted; nil where it noted none.
  var versionHashes: [String: VersionHash]? {
    let hashes = kit.versionHashes.compactMapValues { VersionHash(bytes: $0) }
    return hashes.isEmpty ? nil : hashes
  }
}

extension KitEvidence {
  /// The rows of a table that are lost; nil where the kit does not know.
  ///
  /// Where nothing was written to the store since, each row that the kit lists and that is not there is lost; where the files
  /// are as it noted them and a log of later changes may be missing, about as many. Where something was written, a row that is
  /// not there may have been deleted: only those count that were where pages are lost.
  func losses(
    of index: Int, _ outcome: RowOutcome, _ estimate: LossEstimate, numbers: [Int64]
  ) throws(SalvageError) -> EntityAccounts.Losses? {
    let tree = outcome.crawl.trees[index]
    guard let table = kit.table(named: tree.name), table.hasRowids == tree.hasRowids else { return nil }
    // Most rows of a store that is rebuilt are no rows of the output's tables.
    let taken = tree.hasRowids ? outcome.live[index]?.takenKeys : nil
    guard tree.hasRowids, table.groups.allSatisfy({ $0.keys != nil }), let taken else {
      guard use.isCurrent else { return nil }
      let found = outcome.tallies[index].recovered + Int64(outcome.tallies[index].ofUnknownEntity.count)
      let lost = max(0, table.rows - found)
      return EntityAccounts.Losses(count: lost, basis: lost == 0 ? .none : .kit)
    }
    var missing: [Int64: KeyRanges] = [:]
    // What was found whole and set aside is not lost.
    let present = try presentKeys(of: tree, in: outcome.database).union(taken)
      .union(KeyRanges(outcome.tallies[index].ofUnknownEntity))
    for group in table.groups {
      let keys = (group.keys ?? KeyRanges()).subtracting(present)
      if !keys.isEmpty { missing[group.entity] = keys }
    }
    var newer: Int64 = 0
    if !isAsNoted {
      guard !tree.isComplete || outcome.tallies[index].destroyed > 0 else { return EntityAccounts.Losses() }
      let lost = try estimate.places(of: index, numbers: numbers)
      missing = missing.mapValues { $0.intersection(lost) }.filter { !$0.value.isEmpty }
      newer = try rowsSince(table, of: index, estimate, numbers: numbers)
    }
    let all = missing.values.reduce(KeyRanges()) { $0.union($1) }
    guard all.count + newer > 0 else { return EntityAccounts.Losses() }
    var losses = EntityAccounts.Losses(count: all.count + newer, basis: use.isCurrent ? .kit : .estimate, keys: all)
    if numbers.count > 1 { losses.byEntity = missing }
    if newer > 0 {
      let listed = keys(ofTable: tree.name) ?? KeyRanges()
      losses.take(likely: try estimate.keysOfLostEnd(of: index, numbers: numbers).subtracting(listed))
    }
    return losses
  }

  private func presentKeys(of tree: Tree, in database: OutputDatabase) throws(SalvageError) -> KeyRanges {
    guard let definition = tree.definition else { return KeyRanges() }
    let name =
      definition.rowidAlias.map { SQLText.quotedIdentifier(definition.columns[$0].name) }
      ?? ["rowid", "_rowid_", "oid"].first { definition.column(named: $0) == nil } ?? "rowid"
    let rows = try database.prepare("SELECT \(name) FROM \(SQLText.quotedIdentifier(tree.name)) ORDER BY 1")
    var keys = KeyRanges()
    while try rows.step() { keys.append(rows.integer(0)) }
    return keys
  }

  /// The rowids that the kit lists for a table; nil where it lists none.
  func keys(ofTable name: String) -> KeyRanges? {
    guard let table = kit.table(named: name), table.groups.allSatisfy({ $0.keys != nil }) else { return nil }
    return table.groups.reduce(KeyRanges()) { $0.union($1.keys ?? KeyRanges()) }
  }

  /// Rows that were likely added since the kit was made and are lost, by their place behind all that it lists.
  private func rowsSince(
    _ table: RecoveryKit.Table, of index: Int, _ estimate: LossEstimate, numbers: [Int64]
  ) throws(SalvageError) -> Int64 {
    let last = table.groups.compactMap { $0.keys?.ranges.last?.upperBound }.max() ?? 0
    var rows: Int64 = 0
    for hole in try estimate.holes(of: index, numbers: numbers) where hole.isBounded && hole.upTo > last {
      rows = rows.addingClamped(hole.upTo.subtractingClamped(max(last, hole.above)))
    }
    return min(rows, try estimate.rowsOnLostPages(of: index, numbers: numbers) ?? rows)
  }
}

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
