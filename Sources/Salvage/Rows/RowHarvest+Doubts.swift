internal import SQLiteFormat

/// Which live rows are doubtful, and why: only those of which a value may be wrong.
///
/// A row that was found although nothing leads to its page is none: its bytes are all there. What its place in the table is
/// based on is noted with its page.
extension RowHarvest {
  /// Why all rows of a page are doubtful; nil where they are not.
  func doubtReason(ofPage page: UInt32, tree index: Int) -> DoubtReason? {
    if let doubt = crawl.trees[index].doubt, doubt.groups.isEmpty { return .columnOrder }
    if crawl.unfinishedTrees.contains(index) { return .unfinishedTransaction }
    if reader.isDoubtful(page) { return reader.overlay?.source == .journal ? .journalPage : .logFrame }
    return crawl.map.fate(page) == .damaged ? .foundByContent : nil
  }

  /// Why a row is doubtful because of its columns; nil where it is not.
  ///
  /// Where the columns that nothing tells apart have the same value, it does not matter which is which.
  @inline(__always)
  func doubtReason(of cell: LeafCell, _ bytes: Span<UInt8>, tree index: Int) -> DoubtReason? {
    guard let doubt = crawl.trees[index].doubt, !doubt.groups.isEmpty else { return nil }
    return isConfused(cell, bytes, doubt.groups) ? .columnOrder : nil
  }

  private func isConfused(_ cell: LeafCell, _ bytes: Span<UInt8>, _ groups: [[Int]]) -> Bool {
    let payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    guard let record = Record(payload: payload[...], encoding: reader.layout.encoding), record.isComplete else {
      // Where a long value goes on elsewhere only its header tells, and values that are all NULL are the same.
      guard let record = Record(payload: payload[...], encoding: reader.layout.encoding) else { return true }
      let types = record.serialTypes.map(\.rawValue)
      return groups.contains { group in group.contains { types.indices.contains($0) && types[$0] != 0 } }
    }
    let values = record.values
    return groups.contains { group in
      let own = group.map { values.indices.contains($0) ? values[$0] : .null }
      return own.dropFirst().contains { $0 != own[0] }
    }
  }

  /// The words of a reason for the notes on rows and pages.
  func words(of reason: DoubtReason, tree index: Int) -> String {
    switch reason {
    case .foundByContent: "what led to it is destroyed; it was found by its content"
    case .columnOrder: crawl.trees[index].doubt?.words ?? "the order of the table's columns is lost"
    case .logFrame: "from a frame of the write-ahead log that SQLite would not have read"
    case .journalPage: "from a rollback journal whose header is destroyed"
    case .unfinishedTransaction:
      "a transaction that wrote to the table did not end, and its journal is gone; the row may have values of it"
    case .invalidText: "its text is not valid in the store's encoding"
    case .unusualValue: "a value of it is of another kind than its column"
    case .freeSpace: "only the free space of a page still has it"
    case .otherThanKit: "its bytes are not as the recovery kit noted them"
    case .fromBackup: "taken from a backup"
    case .notNoted: "the reason was not noted"
    }
  }

  /// Counts and notes that a live row is doubtful.
  ///
  /// - Parameter words: what to say of this row; what the reason says if nil.
  func noteDoubt(
    _ reason: DoubtReason, row: Int64, page: UInt32, cell: Int?, tree index: Int, source: String, words: String? = nil
  ) throws(SalvageError) {
    tallies[index].doubts[reason, default: 0] += 1
    if crawl.kit != nil { doubtedRows[index, default: []].insert(row) }
    try notes.noteRow(
      crawl.trees[index].name, row: row, key: row, page: page, cell: cell.flatMap { $0 < 0 ? nil : $0 }, source: source,
      .doubtful, reason, reason: words ?? self.words(of: reason, tree: index))
  }

  /// Writes a row that was put off, and notes what is doubtful about it.
  ///
  /// - Parameters:
  ///   - bytes: its page.
  ///   - payload: room for its bytes.
  func writeLate(_ row: BrokenRow, _ bytes: Span<UInt8>, _ payload: inout [UInt8]) throws(SalvageError) {
    let source = source(of: row.page)
    guard
      try write(
        row.cell, bytes, &payload, page: row.page, tree: row.tree, source: source, doubtReason: row.doubtReason),
      let reason = row.doubtReason
    else { return }
    try noteDoubt(
      reason, row: row.cell.rowid, page: row.page, cell: row.cell.index, tree: row.tree, source: source)
  }
}
