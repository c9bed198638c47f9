internal import SQLiteFormat

/// Phase 3: restores lost rows from indexes, or from free space if an index lists them, and counts the rest exactly.
///
/// Only an index's own tree counts, since unclaimed pages may be obsolete.
struct IndexRowRecovery {
  let context: RowContext

  private var tables: RowTables { context.tables }
  private var trees: [Tree] { context.tables.trees }

  /// Checks the indexes of tables with losses, or with fewer rows than entries.
  func run() throws {
    var limits: KeyLimits?
    for table in trees.indices where trees[table].kind == .table && tables.live[table] != nil {
      let isMissing = !trees[table].isComplete || tables.tallies[table].destroyed > 0
      guard isMissing || context.crawl.hasIndex(of: table, above: tables.tallies[table].recovered),
        let definition = trees[table].definition
      else { continue }
      if limits == nil { limits = try KeyLimits(context.crawl) }
      // Rebuilt rows agree with their index, so check it first.
      let name = tables.tallies[table].name
      // A table with rows has assigned rowids, whatever was noted.
      let limit = tables.tallies[table].recovered == 0 ? limits?.noted(ofTable: name) : limits?.limit(ofTable: name)
      let judgements = try context.judgements(of: table, limit: limit)
      let whole = try wholeIndexes(of: table)
      let isDisputed = Set(whole.map(\.count)).count > 1
      // Without missing pages, the index itself may be of another time or place.
      let isEmpty = tables.tallies[table].recovered == 0
      let isBelieved = isMissing || !isDisputed && (!isEmpty || whole.count > 1)
      for index in trees.indices where isBelieved && trees[index].table == table && trees[index].isWalked {
        try rebuild(table, from: index, definition)
      }
      if let best = whole.max(by: { $0.count < $1.count }), best.count > tables.tallies[table].recovered,
        isBelieved || !isDisputed
      {
        // No index lists a deleted row, so none returns this way.
        try context.recoverFromFreeSpace(
          of: table, try context.crawl.missingRowids(of: table, by: best.index, tables),
          reason: "an index lists it, and only the free space of a page still has it")
      }
      try count(table, judgements)
    }
    for table in trees.indices where trees[table].kind == .withoutRowid { try countKeyed(table) }
  }

  /// Counts the lost rows of a table WITHOUT ROWID by the entries of its intact indexes, if these agree.
  private func countKeyed(_ table: Int) throws {
    let tally = tables.tallies[table]
    guard !trees[table].isComplete || tally.destroyed > 0, !context.reader.isOfTwoTimes else { return }
    let counts = Set(try wholeIndexes(of: table).map(\.count))
    guard counts.count == 1, let entries = counts.first else { return }
    let certain = tally.recovered - tally.doubts.values.reduce(0, +)
    let lost = max(0, entries - certain)
    tables.tallies[table].isCounted = true
    tables.tallies[table].destroyed = min(tally.destroyed, lost)
    tables.tallies[table].onLostPages = lost - tables.tallies[table].destroyed
  }

  /// Returns the intact full indexes with their entry counts.
  private func wholeIndexes(of table: Int) throws -> [(index: Int, count: Int64)] {
    let whole = trees.indices.filter { index in
      trees[index].table == table && trees[index].isComplete && !trees[index].isPartialIndex
    }
    return try whole.map { ($0, try entryCount(of: $0)) }
  }

  /// Counts listed rows found nowhere.
  private func count(_ table: Int, _ judgements: [IndexJudgement]) throws {
    guard let live = tables.live[table] else { return }
    var found: [IndexEvidence] = []
    let apart = tables.tallies[table].ofUnknownEntity
    for case .own(var evidence) in judgements {
      evidence.missing = try evidence.missing.filter { try live.lacks($0, apart) }
      found.append(evidence)
    }
    tables.tallies[table].listed = Set(found.flatMap(\.missing)).sorted()
    let whole = found.filter(\.isWhole)
    guard let most = whole.max(by: { $0.missing.count < $1.missing.count }) else {
      // If the index made no row doubtful, the index is at fault.
      let doubts = tables.tallies[table].doubts
      let areDoubtful = doubts[.contradicted, default: 0] + doubts[.misplacedPage, default: 0] > 0
      tables.tallies[table].isContradicted = areDoubtful && judgements.contains(.contradicting)
      return
    }
    tables.tallies[table].isCounted = true
    tables.tallies[table].isDisputed = whole.contains { $0.missing != most.missing }
    let lost = Int64(most.missing.count)
    tables.tallies[table].destroyed = min(tables.tallies[table].destroyed, lost)
    tables.tallies[table].onLostPages = lost - tables.tallies[table].destroyed
  }

  private func entryCount(of index: Int) throws -> Int64 {
    var buffer = context.reader.makeBuffer()
    var count: Int64 = 0
    for page in trees[index].leaves + trees[index].innerPages where context.crawl.map.fate(page) == .tree {
      guard try context.reader.readPlace(page, into: &buffer) else { continue }
      count += Int64(buffer.span.uint16(at: 3) ?? 0)
    }
    return count
  }

  /// Rebuilds rows from an index, if it has every stored column.
  private func rebuild(_ table: Int, from index: Int, _ definition: TableDefinition) throws {
    let columns = trees[index].indexedColumns
    let stored = definition.storedColumns.filter { $0 != definition.rowidAlias }
    let order = stored.compactMap { place in
      columns.firstIndex { $0.map { isSame($0, definition.columns[place].name) } ?? false }
    }
    guard let live = tables.live[table], order.count == stored.count else { return }
    // The index is then attributed by rows that may be another table's.
    let isLikened = trees[table].leaves.contains { context.crawl.likened.contains($0) }
    try context.crawl.forEachEntry(of: index) { record, cell, page in
      guard let rowid = record.value(at: columns.count)?.integer, try !live.hasRow(rowid) else { return true }
      let values = record.values
      guard values.count == columns.count + 1 else { return true }
      let payload = RecordBytes.encode(order.map { values[$0] }, alias: definition.rowidAlias, definition)
      guard try live.insert(payload.span, rowid: rowid) else { return true }
      tables.tallies[table].recovered += 1
      tables.tallies[table].fromIndex += 1
      if tables.tallies[table].onLostPages > 0 { tables.tallies[table].onLostPages -= 1 }
      let origin = EvidenceNotes.Origin(page: page, cell: cell.index, source: "index")
      if isLikened {
        try tables.noteDoubt(.foundByContent, row: rowid, of: table, origin)
        return true
      }
      try tables.notes.noteRow(
        rowid, of: tables.name(of: table), key: rowid, origin, .probable,
        reason: "rebuilt from an index that holds the whole row")
      return true
    }
  }
}

extension Crawl {
  /// Whether an intact index has more entries than `rows`.
  fileprivate func hasIndex(of table: Int, above rows: Int64) -> Bool {
    guard trees[table].isListed, trees[table].hasRowids else { return false }
    return trees.indices.contains { place in
      let index = trees[place]
      return index.kind == .index && index.table == table && index.isListed && index.isComplete && !index.isPartialIndex
        && Int64(cellCount(ofIndex: place)) > rows
    }
  }

  /// The most missing rows searched in free space.
  static let maximumMissing = 1 << 20

  /// Returns listed rowids that are neither live nor set aside.
  func missingRowids(of table: Int, by index: Int, _ tables: RowTables) throws -> Set<Int64> {
    guard let live = tables.live[table] else { return [] }
    let place = trees[index].indexedColumns.count
    let apart = tables.tallies[table].ofUnknownEntity
    var missing: Set<Int64> = []
    try forEachEntry(of: index) { record, _, _ in
      guard let rowid = record.value(at: place)?.integer, try live.lacks(rowid, apart) else { return true }
      guard missing.count < Self.maximumMissing else { return false }
      missing.insert(rowid)
      return true
    }
    return missing
  }

  /// Reads the intact entries on an index's own pages.
  ///
  /// - Parameter body: returns false to stop.
  func forEachEntry(of index: Int, _ body: (Record, LeafCell, UInt32) throws -> Bool) throws {
    let tree = trees[index]
    var buffer = reader.makeBuffer()
    var scan = LeafCellScan()
    for page in tree.leaves + tree.innerPages where map.fate(page) == .tree {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      let kind: PageKind = map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
      scan.read(buffer.span, start: 0, kind: kind, shape: tree.shape, geometry: reader.geometry, carves: false)
      for cell in scan.cells where cell.overflow == 0 {
        guard
          let record = Record(
            payload: buffer[cell.payload..<(cell.payload + cell.local)], encoding: reader.layout.encoding)
        else { continue }
        guard try body(record, cell, page) else { return }
      }
    }
  }
}

extension OutputTable {
  fileprivate func lacks(_ rowid: Int64, _ others: Set<Int64>) throws -> Bool {
    guard !others.contains(rowid) else { return false }
    return try !hasRow(rowid)
  }
}
