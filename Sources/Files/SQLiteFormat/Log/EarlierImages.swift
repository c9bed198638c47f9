/// What shows that the images of a log are of an earlier time than the database file that it lies beside: what only ever
/// grows is less in them.
package enum EarlierImages {
  /// Whether a first page is of an earlier time than another one, by the counters of transactions and of schemas.
  package static func isEarlier(_ header: DatabaseHeader, than other: DatabaseHeader) -> Bool {
    // The counters may wrap, so their difference is taken as a signed number.
    Int32(bitPattern: header.changeCounter &- other.changeCounter) < 0
      || Int32(bitPattern: header.schemaCookie &- other.schemaCookie) < 0
  }

  /// Whether a log that ends at a page may have made its database shorter: it has nearly all pages, or there are pointer
  /// maps.
  ///
  /// - Parameter count: the number of pages up to the end that the log has.
  package static func mayHaveShortened(end: UInt32, images count: Int, isAutoVacuum: Bool) -> Bool {
    isAutoVacuum || end < 2 || count >= Int(end) - 1
  }

  /// Whether the highest keys on a leaf of `Z_PRIMARYKEY` that a log has are lower than those of the file, and none is
  /// higher.
  package static func hasLowerKeys(_ page: BTreePage, than other: BTreePage, _ encoding: TextEncoding) -> Bool {
    let older = highestKeys(other, encoding)
    var isLower = false
    for (entity, key) in highestKeys(page, encoding) {
      guard let known = older[entity], known.name == key.name else { continue }
      if key.highest > known.highest { return false }
      if key.highest < known.highest { isLower = true }
    }
    return isLower
  }

  /// The name and the highest key of each entity on a leaf of `Z_PRIMARYKEY`.
  private static func highestKeys(
    _ page: BTreePage, _ encoding: TextEncoding
  ) -> [Int64: (name: String, highest: Int64)] {
    guard page.kind == .tableLeaf, page.isHeaderPlausible else { return [:] }
    var keys: [Int64: (name: String, highest: Int64)] = [:]
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index), cell.overflowPage == nil,
        let values = page.localRecord(of: cell, encoding: encoding)?.values, values.count > 3,
        let name = values[1].string, case .integer(let highest) = values[3]
      else { continue }
      keys[cell.rowid] = (name, highest)
    }
    return keys
  }
}
