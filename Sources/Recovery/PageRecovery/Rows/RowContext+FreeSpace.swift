internal import SQLiteFormat

extension RowContext {
  /// Takes rows from the free space of a table's pages that are known to exist: cells that were moved to a page which was
  /// never written, or is lost.
  ///
  /// - Parameters:
  ///   - missing: their rowids.
  ///   - reason: how it is known, in words for the notes.
  func recoverFromFreeSpace(of table: Int, _ missing: Set<Int64>, reason: String) throws(SalvageError) {
    guard !missing.isEmpty, let live = tables.live[table] else { return }
    let tree = tables.trees[table]
    let scanner = FreeSpaceScan(
      shape: tree.shape, geometry: reader.geometry, encoding: reader.layout.encoding,
      hasAlias: tree.definition?.rowidAlias != nil)
    var buffer = reader.makeBuffer()
    for page in tree.leaves {
      guard try reader.readPlace(page, into: &buffer) else { continue }
      for deleted in scanner.deletedRecords(buffer.span, start: start(of: page, buffer.span)) {
        guard let rowid = deleted.rowid, missing.contains(rowid),
          let record = try complete(deleted, claim: .decided(tree: table)),
          try live.insert(record.span, from: 0, length: record.count, rowid: rowid)
        else { continue }
        tables.tallies[table].recovered += 1
        tables.deletedDigests?.strike(record.span, from: 0, length: record.count)
        try tables.noteDoubt(
          .freeSpace, row: rowid, of: table, EvidenceNotes.Origin(page: page, cell: nil, source: "freespace"),
          words: reason)
      }
    }
  }

  /// The whole record of a row in free space; nil where its rest cannot be read.
  func complete(
    _ deleted: FreeSpaceScan.DeletedRecord, claim: OverflowChains.Claim = .none
  ) throws(SalvageError) -> [UInt8]? {
    var record = deleted.record
    if deleted.overflow != 0 {
      let outcome = try chains.follow(
        from: deleted.overflow, length: deleted.length, into: &record, map: &crawl.map, claim: claim)
      guard case .whole = outcome else { return nil }
    }
    return record.count == deleted.length ? record : nil
  }
}
