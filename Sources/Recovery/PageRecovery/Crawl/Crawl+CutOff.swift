internal import SQLiteFormat

/// What trees lead to behind the end of the file.
///
/// The header's number of pages does not tell: it may be damaged, or be that of the file as it was cut off.
extension Crawl {
  /// Whether pages of a tree are behind the end of the file, so that nothing tells which rows they had: its root is, or one
  /// that an inner page of it leads to, and no page was found that belongs in that place.
  func lacksPagesBehindEnd(of index: Int) -> Bool {
    let tree = trees[index]
    guard tree.isListed else { return false }
    if tree.rootBehindEnd > 0, !tree.isWalked { return !isOnlyRootMisnamed(index) }
    let gaps = tree.gaps.filter { $0.page > map.pageCount && reader.moved[$0.page] == nil }
    guard !gaps.isEmpty else { return false }
    let placed = tree.leaves.filter { map.fate($0) == .placed }
    guard tree.hasRowids else { return gaps.count > placed.count }
    return gaps.contains { gap in
      !placed.contains { map.firstKey($0) > gap.above && map.lastKey($0) <= gap.upTo }
    }
  }

  /// Whether nothing but a single wrong number in the list of tables leads behind the end, and the pages of that table are
  /// there.
  private func isOnlyRootMisnamed(_ index: Int) -> Bool {
    guard trees[index].leaves.contains(where: { map.fate($0) == .placed || map.fate($0) == .tree }),
      let header = reader.layout.header, header.hasMagic, header.isPageCountValid,
      reader.statedPageCount == map.pageCount
    else { return false }
    return trees.indices.allSatisfy { other in
      other == index || !trees[other].isListed || !trees[other].gaps.contains { $0.page > map.pageCount }
    }
  }

  /// The pages behind the end of the file that trees lead to, in ascending order, where no page was found that belongs there.
  func pagesLackedBehindEnd() -> [UInt32] {
    var pages: Set<UInt32> = []
    for index in trees.indices where lacksPagesBehindEnd(of: index) {
      for gap in trees[index].gaps where gap.page > map.pageCount && reader.moved[gap.page] == nil {
        pages.insert(gap.page)
      }
    }
    return pages.sorted()
  }

  /// Whether no page but the first is one that a table that is not listed may have had: all of them are free.
  var hasFreePagesOnly: Bool {
    guard isFreelistSound, unplaced.isEmpty, dead.isEmpty, reader.statedPageCount == map.pageCount else { return false }
    return stride(from: UInt32(2), through: map.pageCount, by: 1).allSatisfy {
      map.fate($0) == .free || map.fate($0) == .special
    }
  }
}
