internal import SQLiteFormat

/// Tables that the store's list of tables lacks although nothing else is wrong with it: a row of it is gone.
///
/// In a sound database every page is part of a tree, or free, or special. Where the list of free pages is whole, a page with
/// rows that is neither free nor part of a tree is one of a table whose way to it is damaged; if no tree has a place for it,
/// it is of a table that is not listed.
extension Crawl {
  /// Whether every page that no tree leads to and that is not free is known to be a live one that something does not lead to.
  var areFreePagesTold: Bool {
    isFreelistSound && isFreelistWhole && pagesBehindEnd.isEmpty && endOfDatabase == .max
  }

  /// Whether the list of tables lacks some that had rows.
  var lacksTables: Bool { lacksUnknownTable || !unlistedTrees.isEmpty }

  /// Looks for the tables that a model has, and the list of tables, which seemed whole, lacks, where pages are theirs.
  mutating func findUnlistedTables() throws(SalvageError) {
    guard hasWholeSchema, areFreePagesTold, trees.contains(where: \.isMissingTable), map.pageCount >= 2 else { return }
    var buffer = reader.makeBuffer()
    for page in 2...map.pageCount where map.fate(page) == .unclaimed && map.fieldCount(page) > 0 {
      guard map.look(page) == .tableLeaf || map.look(page) == .indexLeaf else { continue }
      let tied = try ties(for: page, &buffer) { !trees[$0].isDropped }
      // The entries of an index are much like the rows of a table without rowids.
      if map.look(page) == .indexLeaf, tied.contains(where: { !trees[$0].isMissingTable }) { continue }
      guard tied.contains(where: { trees[$0].isMissingTable }),
        !tied.contains(where: { trees[$0].isListed && !trees[$0].isComplete }),
        try !isKnown(page, to: tied)
      else { continue }
      unlistedTrees.formUnion(tied.filter { trees[$0].isMissingTable })
    }
    guard !unlistedTrees.isEmpty else { return }
    hasWholeSchema = false
    for tree in unlistedTrees { trees[tree].isWalked = false }
  }

  /// Whether one of several tables that are listed has the rows of a page.
  private func isKnown(_ page: UInt32, to tied: [Int]) throws(SalvageError) -> Bool {
    for tree in tied where trees[tree].isListed {
      if try isObsolete(page, of: tree) { return true }
    }
    return false
  }

  /// Notes whether there was a table that nothing tells of: pages with rows are left that are of no table with a place for
  /// them.
  mutating func noteUnknownTable() throws(SalvageError) {
    guard areFreePagesTold else { return }
    var buffer = reader.makeBuffer()
    for page in unplaced where !lacksUnknownTable {
      let tied = try ties(for: page, &buffer) { !trees[$0].isDropped }
      lacksUnknownTable = !tied.contains { !trees[$0].isComplete }
    }
  }

  /// Whether a page without rowids that no tree has a place for may have rows of a table.
  ///
  /// Those of a table without rowids look like the entries of an index. It has none where it is like the pages of an index
  /// that the model has and the list of tables lacks, or where a table has the rows that its entries would be of.
  func mayHaveUnknownRows(_ page: UInt32) throws(SalvageError) -> Bool {
    guard areFreePagesTold, map.fieldCount(page) > 0 else { return false }
    var buffer = reader.makeBuffer()
    let tied = try ties(for: page, &buffer) { _ in true }
    if tied.contains(where: { trees[$0].kind == .index && !trees[$0].isListed }) { return false }
    for index in tied where trees[index].kind == .index {
      if try hasEntries(page, of: index) { return false }
    }
    return true
  }
}

extension Tree {
  /// Whether it is a table of the model's that the store's list of tables, though whole, lacks.
  var isMissingTable: Bool { !isListed && !isDropped && !isKnownByRows && kind != .index && isWalked && root == 0 }
}
