extension RowContext {
  /// Estimates the rows of a table's pages that are gone, by the mean of those that are there and the width of the gap.
  func estimateLoss(of index: Int) {
    let tree = crawl.trees[index]
    guard tree.hasRowids || !tree.gaps.isEmpty else { return }
    let pageCount = max(1, tree.leaves.count)
    if !tree.hasRowids, let rows = rowsInLostInnerPages(of: tree) {
      tables.tallies[index].onLostPages += rows
      return
    }
    let mean = max(1, (tables.tallies[index].recovered + Int64(pageCount) - 1) / Int64(pageCount))
    for gap in tree.gaps where gap.page > 0 {
      // A gap into which a page was placed is filled.
      let isFilled = reader.moved[gap.page] != nil || crawl.map.fate(gap.page) == .placed
      guard !isFilled, crawl.map.fate(gap.page) != .damaged || crawl.map.look(gap.page) != .broken else { continue }
      let (width, overflow) = gap.upTo.subtractingReportingOverflow(gap.above)
      // Only rowids bound how many rows there was room for.
      tables.tallies[index].onLostPages += overflow || !tree.hasRowids ? mean : min(mean, max(0, width))
    }
  }

  /// The rows of lost inner pages of a tree without rowids, where the pages below them were found: one less than those are.
  private func rowsInLostInnerPages(of tree: Tree) -> Int64? {
    let found = tree.innerPages.filter { crawl.map.fate($0) == .placed }.count
    let leaves = tree.leaves.filter { crawl.map.fate($0) == .placed }.count
    let lost = tree.gaps.filter { $0.page > 0 }.count
    guard lost > 0, found + leaves > lost else { return nil }
    return Int64(max(1, (found > 0 ? found : leaves) - 1))
  }
}
