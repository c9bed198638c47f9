internal import SQLiteFormat

extension RowHarvest {
  /// Rebuilds rows that are lost in their table and stand whole in one of its indexes, and counts those that do not.
  ///
  /// Only pages that the index's own tree leads to count: an index page that no tree claims may be an old one.
  func rebuildFromIndexes() throws(SalvageError) {
    for table in crawl.trees.indices where crawl.trees[table].kind == .table && liveTables[table] != nil {
      let tree = crawl.trees[table]
      guard !tree.isComplete || tallies[table].destroyed > 0, let definition = tree.definition else { continue }
      var best: (index: Int, count: Int64)?
      for index in crawl.trees.indices where crawl.trees[index].table == table && crawl.trees[index].isWalked {
        if covers(crawl.trees[index], definition) { try rebuild(table, from: index, definition) }
        if crawl.trees[index].isComplete, !crawl.trees[index].isPartialIndex {
          let count = try entryCount(of: index)
          if count > best?.count ?? -1 { best = (index, count) }
        }
      }
      if let best, best.count > 0 || tallies[table].recovered == 0 {
        if best.count > tallies[table].recovered { try recoverListed(table, by: best.index) }
        // An index that is whole has exactly one entry for each row.
        tallies[table].isExact = true
        let lost = max(0, best.count - tallies[table].recovered)
        tallies[table].destroyed = min(tallies[table].destroyed, lost)
        tallies[table].onLostPages = lost - tallies[table].destroyed
      }
    }
  }

  /// The most missing rows that are looked for in free space.
  static let maximumMissing = 1 << 20

  /// Takes rows from free space that an index says exist and that are nowhere else: cells that were moved to a page which
  /// was never written, or is lost.
  ///
  /// A deleted row is in no index, so none comes back this way.
  private func recoverListed(_ table: Int, by index: Int) throws(SalvageError) {
    try recoverFromFreeSpace(
      of: table, try missingRowids(of: table, by: index),
      reason: "an index lists it, and only the free space of a page still has it")
  }

  /// Takes rows from the free space of a table's pages that are known to exist.
  func recoverFromFreeSpace(of table: Int, _ missing: Set<Int64>, reason: String) throws(SalvageError) {
    guard !missing.isEmpty, let live = liveTables[table] else { return }
    let tree = crawl.trees[table]
    let scanner = FreeSpaceScan(
      shape: tree.shape, geometry: reader.geometry, encoding: reader.layout.encoding,
      hasAlias: tree.definition?.rowidAlias != nil)
    var buffer = reader.makeBuffer()
    for page in tree.leaves {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      let start = page == 1 && buffer[0] != 13 ? DatabaseHeader.length : 0
      for ghost in scanner.ghosts(buffer.span, start: start) {
        guard let rowid = ghost.rowid, missing.contains(rowid) else { continue }
        var record = ghost.record
        if ghost.overflow != 0 {
          let outcome = try chains.follow(
            from: ghost.overflow, length: ghost.length, into: &record, map: &crawl.map, owner: table)
          guard case .whole = outcome else { continue }
        }
        guard record.count == ghost.length,
          try live.insert(record.span, from: 0, length: record.count, rowid: rowid)
        else { continue }
        tallies[table].recovered += 1
        ghosts?.strike(record.span, from: 0, length: record.count)
        try noteDoubt(.freeSpace, row: rowid, page: page, cell: nil, tree: table, source: "freespace", words: reason)
      }
    }
  }

  /// The rowids that an index lists and the live table lacks.
  func missingRowids(of table: Int, by index: Int) throws(SalvageError) -> Set<Int64> {
    guard let live = liveTables[table] else { return [] }
    let tree = crawl.trees[index]
    var missing: Set<Int64> = []
    var buffer = reader.makeBuffer()
    var scan = LeafScan()
    for page in tree.leaves + tree.innerPages where crawl.map.fate(page) == .tree {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      let kind: PageKind = crawl.map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
      scan.read(buffer.span, start: 0, kind: kind, shape: tree.shape, geometry: reader.geometry, carves: false)
      for cell in scan.cells where cell.overflow == 0 {
        guard
          let record = Record(
            payload: buffer[cell.payload..<(cell.payload + cell.local)], encoding: reader.layout.encoding),
          let rowid = record.value(at: tree.indexedColumns.count)?.integer, try !live.hasRow(rowid)
        else { continue }
        guard missing.count < Self.maximumMissing else { return missing }
        missing.insert(rowid)
      }
    }
    return missing
  }

  /// Whether every stored column of a table is in an index.
  private func covers(_ index: Tree, _ definition: TableDefinition) -> Bool {
    definition.storedColumns.allSatisfy { place in
      place == definition.rowidAlias
        || index.indexedColumns.contains { $0.map { isSame($0, definition.columns[place].name) } ?? false }
    }
  }

  private func entryCount(of index: Int) throws(SalvageError) -> Int64 {
    var buffer = reader.makeBuffer()
    var count: Int64 = 0
    for page in crawl.trees[index].leaves + crawl.trees[index].innerPages where crawl.map.fate(page) == .tree {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      count += Int64(buffer.span.uint16(at: 3) ?? 0)
    }
    return count
  }

  private func rebuild(_ table: Int, from index: Int, _ definition: TableDefinition) throws(SalvageError) {
    guard let live = liveTables[table] else { return }
    let tree = crawl.trees[index]
    let order = definition.storedColumns.filter { $0 != definition.rowidAlias }.compactMap { place in
      tree.indexedColumns.firstIndex { $0.map { isSame($0, definition.columns[place].name) } ?? false }
    }
    var buffer = reader.makeBuffer()
    var scan = LeafScan()
    var payload: [UInt8] = []
    for page in tree.leaves + tree.innerPages where crawl.map.fate(page) == .tree {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      let kind: PageKind = crawl.map.look(page) == .indexInterior ? .indexInterior : .indexLeaf
      scan.read(buffer.span, start: 0, kind: kind, shape: tree.shape, geometry: reader.geometry, carves: false)
      for cell in scan.cells where cell.overflow == 0 {
        guard
          let record = Record(
            payload: buffer[cell.payload..<(cell.payload + cell.local)], encoding: reader.layout.encoding)
        else { continue }
        let values = record.values
        guard let rowid = values.last?.integer, values.count == tree.indexedColumns.count + 1 else { continue }
        RecordBytes.encode(order.map { values[$0] }, alias: definition.rowidAlias, definition, into: &payload)
        guard try live.insert(payload.span, from: 0, length: payload.count, rowid: rowid) else { continue }
        tallies[table].recovered += 1
        tallies[table].fromIndex += 1
        if tallies[table].onLostPages > 0 { tallies[table].onLostPages -= 1 }
        try notes.noteRow(
          crawl.trees[table].name, row: rowid, key: rowid, page: page, cell: cell.index, source: "index", .probable,
          reason: "rebuilt from an index that holds the whole row")
      }
    }
  }
}
