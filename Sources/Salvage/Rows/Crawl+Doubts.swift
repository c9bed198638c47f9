internal import SQLiteFormat

/// Finds live rows that may have a wrong value.
///
/// Rows of an unreachable page are certain, unless it may be free or is attributed by likeness only; the page has its
/// own note.
extension Crawl {
  /// Returns the reason for doubt in all rows of a page.
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
  /// Whether a row has different values in interchangeable columns.
  func concerns(_ cell: LeafCell, _ bytes: Span<UInt8>, encoding: TextEncoding) -> Bool {
    let payload = Array(copying: bytes.extracting(cell.payload..<(cell.payload + cell.local)))
    guard let record = Record(payload: payload[...], encoding: encoding), record.isComplete else {
      // Of an incomplete long value only the header counts, and NULLs are equal.
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
