internal import SQLiteFormat

/// Which live rows are doubtful, and why: only those of which a value may be wrong.
///
/// A row that was found although nothing leads to its page is none, unless the page may be a free one, or only likeness
/// tells whose it is: its bytes are all there. What its place in the table is based on is noted with its page.
extension Crawl {
  /// Why all rows of a page are doubtful; nil where they are not.
  func doubtReason(ofPage page: UInt32, tree index: Int) -> DoubtReason? {
    if let doubt = trees[index].doubt, doubt.groups.isEmpty { return .columnOrder }
    if unfinishedTrees.contains(index) { return .unfinishedTransaction }
    if reader.isDoubtful(page) {
      if reader.isOverlayContradicted { return .contradictedLog }
      return reader.overlay?.source == .journal ? .journalPage : .logFrame
    }
    if reader.isOfTwoTimes, reader.overlay?.images[page] == nil { return .unfinishedTransaction }
    if map.fate(page) == .damaged || mayBeFree && isByContent(page) || likened.contains(page) {
      return .foundByContent
    }
    return contradictions.pages[page]
  }
}

extension ColumnDoubt {
  /// Whether it matters for a row which of the columns that nothing tells apart is which: not where they have the same value.
  func concerns(_ cell: LeafCell, _ bytes: Span<UInt8>, encoding: TextEncoding) -> Bool {
    let payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    guard let record = Record(payload: payload[...], encoding: encoding), record.isComplete else {
      // Where a long value goes on elsewhere only its header tells, and values that are all NULL are the same.
      guard let record = Record(payload: payload[...], encoding: encoding) else { return true }
      let types = record.serialTypes.map(\.rawValue)
      return groups.contains { group in group.contains { types.indices.contains($0) && types[$0] != 0 } }
    }
    let values = record.values
    return groups.contains { group in
      let own = group.map { values.indices.contains($0) ? values[$0] : .null }
      return own.dropFirst().contains { $0 != own[0] }
    }
  }
}
