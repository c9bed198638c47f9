internal import SQLiteFormat

extension Crawl {
  /// How many rows of a page are compared with those of the table.
  private static let comparedRows = 16

  /// Whether a page that has no place in a table holds what that was once, and nothing that is missing.
  ///
  /// A tree without gaps has all rows of its table. Where the page may be of a table that nothing tells of, or the tree
  /// has gaps, the table must have the rows: the same keys, and values that are the same, all of them where nothing but
  /// values tells one table's rows from another's.
  func isObsolete(_ page: UInt32, of tree: Int) throws(SalvageError) -> Bool {
    if !areFreePagesTold, trees[tree].isDropped || hasWholeSchema && trees[tree].isComplete { return true }
    guard map.look(page) == .tableLeaf, overlaps(tree, map.firstKey(page), map.lastKey(page)) else { return false }
    var samples: [PageRows.Row] = []
    let rows = PageRows(reader)
    try rows.forEach(on: page) { row in if samples.count < Self.comparedRows { samples.append(row) } }
    let isTold = trees[tree].shape.entityNumbers != nil
    var present = 0
    var alike = 0
    var leaf: UInt32 = 0
    var known: [Int64: Record] = [:]
    for sample in samples {
      guard let place = self.leaf(of: tree, with: sample.rowid) else { continue }
      if place != leaf {
        leaf = place
        known.removeAll(keepingCapacity: true)
        try rows.forEach(on: place) { row in known[row.rowid] = row.record }
      }
      guard let record = known[sample.rowid] else { continue }
      present += 1
      if Self.isVersion(sample.record, of: record, isTold: isTold) { alike += 1 }
    }
    return present * 2 > samples.count && alike * 2 > present
  }

  /// Whether a record is a version of another one with its key.
  ///
  /// - Parameter isTold: whether entity numbers tell whose the rows are; then some values may differ.
  private static func isVersion(_ one: Record, of other: Record, isTold: Bool) -> Bool {
    let (first, second) = (one.values, other.values)
    var same = 0
    var all = 0
    for index in 0..<max(first.count, second.count) {
      let left = index < first.count ? first[index] : .null
      let right = index < second.count ? second[index] : .null
      if left.isNull, right.isNull { continue }
      all += 1
      if left == right { same += 1 }
    }
    return isTold ? same * 2 >= all : same == all
  }

  /// The leaf of a table that has a rowid within its range; nil where none has.
  private func leaf(of tree: Int, with key: Int64) -> UInt32? {
    leaf(of: tree, endingFrom: key).flatMap { map.firstKey($0) <= key ? $0 : nil }
  }
}
