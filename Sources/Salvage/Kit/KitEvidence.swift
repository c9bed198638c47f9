internal import ManagedObjectModel
import PersistentStore
internal import Platform
internal import SQLiteFormat

struct KitEvidence {
  let kit: RecoveryKit

  var use: SalvageReport.KitUse

  /// Whether the kit records exactly the salvaged state, so that no later log can be missing.
  let isOfThisState: Bool

  /// Whether the files, except for damage, are as noted.
  ///
  /// Every listed row that is missing is then lost, although a log with later changes may be lost too.
  var isAsNoted = false

  /// Chooses the first kit of this store; adds remarks on rejected ones.
  ///
  /// - Parameters:
  ///   - kits: the newest first.
  ///   - isOfThisState: whether they record exactly the salvaged state.
  ///   - scope: the kits to consider; nil for all.
  static func choose(
    from kits: [RecoveryKit], isOfThisState: Bool, _ scope: EvidenceScope?, _ reader: PageReader,
    _ identity: StoreIdentity, _ schema: SchemaSearch,
    _ remarks: inout [String]
  ) throws -> KitEvidence? {
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

  /// Whether a kit belongs to the store, by identifier, else by table definitions or page checksums.
  private static func isOwn(
    _ kit: RecoveryKit, _ reader: PageReader, _ identity: StoreIdentity, _ schema: SchemaSearch
  ) throws -> Bool {
    guard kit.file.pageSize == reader.pageSize else { return false }
    if let known = identity.metadata?.uuid, let noted = kit.storeUUID {
      return known.uppercased() == noted.uppercased()
    }
    let statements = Set(kit.entries.compactMap { $0.kind == "table" ? $0.sql : nil })
    // A model's stores share tables, which prove little if the kit has an identifier.
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

  var versionHashes: [String: VersionHash]? {
    let hashes = kit.versionHashes.compactMapValues { VersionHash(bytes: $0) }
    return hashes.isEmpty ? nil : hashes
  }
}

extension KitEvidence {
  /// The lost rows of a table, if the kit can determine them.
  ///
  /// Without later writes, each missing listed row is lost; if a later log may be missing, the number is an estimate.
  /// After writes a missing row may have been deleted, so only those in lost pages count.
  func losses(
    of index: Int, _ outcome: RowOutcome, _ estimate: LossEstimate, numbers: [Int64]
  ) throws -> EntityAccounts.Losses? {
    let tree = outcome.crawl.trees[index]
    guard let table = kit.table(named: tree.name), table.hasRowids == tree.hasRowids else { return nil }
    // In a rebuilt store, most rows bypass the output's tables.
    let taken = tree.hasRowids ? outcome.live[index]?.takenKeys : nil
    guard tree.hasRowids, table.groups.allSatisfy({ $0.keys != nil }), let taken else {
      guard use.isCurrent else { return nil }
      let found = outcome.tallies[index].recovered + Int64(outcome.tallies[index].ofUnknownEntity.count)
      let lost = max(0, table.rows - found)
      return EntityAccounts.Losses(count: lost, basis: lost == 0 ? .none : .kit)
    }
    var missing: [Int64: KeyRanges] = [:]
    // Rows set aside whole are not lost.
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

  private func presentKeys(of tree: Tree, in database: OutputDatabase) throws -> KeyRanges {
    guard let definition = tree.definition else { return KeyRanges() }
    let name =
      definition.rowidAlias.map { SQLText.quotedIdentifier(definition.columns[$0].name) }
      ?? ["rowid", "_rowid_", "oid"].first { definition.column(named: $0) == nil } ?? "rowid"
    let rows = try database.prepare("SELECT \(name) FROM \(SQLText.quotedIdentifier(tree.name)) ORDER BY 1")
    var keys = KeyRanges()
    while try rows.step() { keys.append(rows.integer(0)) }
    return keys
  }

  func keys(ofTable name: String) -> KeyRanges? {
    guard let table = kit.table(named: name), table.groups.allSatisfy({ $0.keys != nil }) else { return nil }
    return table.groups.reduce(KeyRanges()) { $0.union($1.keys ?? KeyRanges()) }
  }

  /// The likely number of lost rows added since the kit.
  private func rowsSince(
    _ table: RecoveryKit.Table, of index: Int, _ estimate: LossEstimate, numbers: [Int64]
  ) throws -> Int64 {
    let last = table.groups.compactMap { $0.keys?.ranges.last?.upperBound }.max() ?? 0
    var rows: Int64 = 0
    for hole in try estimate.holes(of: index, numbers: numbers) where hole.isBounded && hole.upTo > last {
      rows = rows.addingClamped(hole.upTo.subtractingClamped(max(last, hole.above)))
    }
    return min(rows, try estimate.rowsOnLostPages(of: index, numbers: numbers) ?? rows)
  }
}

extension KitEvidence {
  private struct Difference {
    var tree: Int
    var page: UInt32

    /// The flipped bit, if it is the only difference.
    var bit: (offset: Int, bit: Int)?
  }

  /// Compares recovered pages with the kit's checksums, and marks rows that changed.
  ///
  /// A difference of one bit is a flipped bit, as writes change more. Other differences are damage only if the store
  /// had no writes since.
  mutating func verify(_ outcome: RowOutcome, _ evidence: Evidence) throws {
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

  private mutating func compare(_ outcome: RowOutcome) throws -> [Difference] {
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

  private struct Standing {
    /// Whether the store was written to; nil if unknown.
    var writtenSince: Bool?

    var isAsNoted: Bool
  }

  /// Determines whether the store was written to since the kit.
  ///
  /// In rollback journal mode the header's counter shows it. In WAL mode not every transaction changes the counter: log
  /// and pages must match the kit. A missing log may have been checkpointed or lost; then, or without a header, the
  /// answer is unknown.
  private func standing(
    _ outcome: RowOutcome, _ evidence: Evidence, isLogMode: Bool, _ differences: [Difference]
  ) throws -> Standing {
    if isOfThisState { return Standing(writtenSince: false, isAsNoted: true) }
    if let header = outcome.reader.layout.header {
      guard header.changeCounter == kit.file.changeCounter, header.schemaCookie == kit.file.schemaCookie else {
        // SQLite stores the counter twice: unequal values are damage. A smaller one is an older copy's.
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
      let log = try WriteAheadLog(source)
      let mark = log.header.map {
        RecoveryKit.LogMark(salt1: $0.salt1, salt2: $0.salt2, frames: UInt32(clamping: log.committedFrameCount))
      }
      guard mark == kit.file.log else {
        // The same log with fewer frames was truncated.
        let isCutOff =
          mark?.salt1 == kit.file.log?.salt1 && mark?.salt2 == kit.file.log?.salt2
          && (mark?.frames ?? 0) < (kit.file.log?.frames ?? 0)
        return Standing(writtenSince: isCutOff ? nil : true, isAsNoted: false)
      }
      hasSameLog = try Self.endsWithCommit(log)
    }
    let isAsNoted = kit.hasSums && use.pagesConfirmed > 0 && differences.allSatisfy { $0.bit != nil }
    let isKnown = isAsNoted && hasSameLog && outcome.reader.layout.header != nil
    return Standing(writtenSince: isKnown ? false : nil, isAsNoted: isAsNoted)
  }

  /// Whether a log ends with its last commit.
  ///
  /// Only frames from before a restart, with a smaller first salt, may follow; others may be a later transaction's.
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

  /// The most restarts since a stale frame.
  private static let maximumRestarts: Int32 = 1 << 20

  private func mark(
    _ difference: Difference, _ outcome: RowOutcome, reason: String, where isConcerned: (Range<Int>) -> Bool
  ) throws {
    let tree = outcome.crawl.trees[difference.tree]
    // Rows already doubtful for another reason get no second one.
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

extension Crawl {
  /// Assigns orphan pages known from a recovery kit.
  ///
  /// A page with a checksum in the kit is certain, wherever it stands. Another page in a listed place is assigned if
  /// its rows fit the table and are missing there.
  mutating func placeByKit(_ kit: RecoveryKit) throws {
    guard map.pageCount >= 1 else { return }
    var owners: [UInt32: Int] = [:]
    var bySum: [UInt32: [(tree: Int, page: UInt32)]] = [:]
    for table in kit.tables {
      guard let tree = trees.firstIndex(where: { $0.kind != .index && isSame($0.name, table.name) }),
        trees[tree].hasRowids == table.hasRowids
      else { continue }
      for (place, page) in table.leaves.enumerated() where page <= map.pageCount {
        owners[page] = tree
        if table.sums.indices.contains(place) { bySum[table.sums[place], default: []].append((tree, page)) }
      }
    }
    var buffer = reader.makeBuffer()
    for page in 1...map.pageCount where map.fate(page) == .unclaimed {
      let look = map.look(page)
      guard look == .tableLeaf || look == .indexLeaf || look == .indexInterior,
        try reader.readPlace(page, into: &buffer)
      else { continue }
      let found = bySum.isEmpty ? nil : bySum[RecoveryKit.sum(of: buffer)]
      if let known = found?.first(where: { trees[$0.tree].hasRowids == (look == .tableLeaf) }) {
        if known.page != page, try isThere(known.page, buffer) {
          bury(page)
          continue
        }
        take(page, for: known.tree)
        if known.page != page, reader.moved[known.page] == nil { reader.moved[known.page] = page }
      } else if let tree = owners[page], trees[tree].hasRowids, look == .tableLeaf, map.fieldCount(page) > 0,
        try choice(for: page, &buffer, where: { $0 == tree }) != nil,
        !overlaps(tree, map.firstKey(page), map.lastKey(page))
      {
        take(page, for: tree)
      }
    }
    for tree in trees.indices where trees[tree].hasRowids {
      claimed[tree] = map.sorted(trees[tree].leaves)
    }
  }

  private mutating func take(_ page: UInt32, for tree: Int) {
    map.claim(page, .placed, owner: tree)
    if map.look(page) == .indexInterior {
      trees[tree].innerPages.append(page)
    } else {
      trees[tree].leaves.append(page)
    }
  }

  private func isThere(_ page: UInt32, _ bytes: [UInt8]) throws -> Bool {
    switch map.fate(page) {
    case .tree, .placed: break
    case .unclaimed, .damaged, .overflow, .free, .special, .dead: return false
    }
    var other = reader.makeBuffer()
    return try reader.readPlace(page, into: &other) && other == bytes
  }
}
