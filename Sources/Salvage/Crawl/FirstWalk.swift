/// Findings of the first walk, before any page is doubted.
struct FirstWalk {
  var incomplete: Set<Int> = []

  /// The incomplete trees without rows that had some according to another tree.
  var emptied: Set<Int> = []

  /// The trees with full and shorter rows: columns were added.
  var grown: Set<Int> = []

  /// The average oddness of trees with several pages where odd values are common.
  var odd: [Int: Double] = [:]

  /// The rowids of full-text tables, according to their sibling.
  var keys: [Int: ClosedRange<Int64>] = [:]

  /// The average oddness from which odd values are common.
  private static let ordinaryOddness = 0.25

  /// The tolerated factor of a page's oddness over its table's.
  private static let tolerance = 1.6

  private static let sample = 8

  init() {}

  init(_ crawl: Crawl) throws {
    let map = crawl.map
    let trees = crawl.trees
    var buffer = crawl.reader.makeBuffer()
    for index in trees.indices.dropFirst() where trees[index].kind != .index && !trees[index].shape.isStrict {
      let leaves = trees[index].leaves.filter { map.fieldCount($0) > 0 }
      let looked = stride(from: 0, to: leaves.count, by: max(1, leaves.count / Self.sample)).map { leaves[$0] }
      var oddness = 0.0
      for leaf in looked {
        oddness += try crawl.fits(of: leaf, &buffer) { $0 == index }.first?.fit.oddness ?? 1
      }
      let mean = oddness / Double(max(1, looked.count))
      if leaves.count > 1, mean > Self.ordinaryOddness { odd[index] = mean }
    }
    let hasRows = trees.map { tree in (tree.leaves + tree.innerPages).contains { map.fieldCount($0) > 0 } }
    compareIndexes(crawl, hasRows)
    compareTexts(crawl, hasRows)
    incomplete = emptied.union(trees.indices.filter { !trees[$0].isComplete })
    grown = Set(
      trees.indices.filter { index in
        let count = trees[index].shape.fields.count
        let fields = trees[index].leaves.map { map.fieldCount($0) }.filter { $0 > 0 }
        return fields.contains(count) && fields.contains { $0 < count }
      })
  }

  func isOrdinary(_ oddness: Double, in tree: Int) -> Bool {
    odd[tree].map { oddness < $0 * Self.tolerance } ?? false
  }

  /// Notes empty tables with entries in all indexes.
  private mutating func compareIndexes(_ crawl: Crawl, _ hasRows: [Bool]) {
    var isIndexed: [Int: Bool] = [:]
    for (index, tree) in crawl.trees.enumerated() where tree.kind == .index && !tree.isPartialIndex {
      if let table = tree.table { isIndexed[table] = (isIndexed[table] ?? true) && hasRows[index] }
    }
    for (table, areIndexed) in isIndexed where areIndexed && !hasRows[table] && crawl.trees[table].root > 1 {
      emptied.insert(table)
    }
  }

  /// Compares FTS5's tables of texts and sizes, which share rowids.
  private mutating func compareTexts(_ crawl: Crawl, _ hasRows: [Bool]) {
    let trees = crawl.trees
    for sizes in trees.indices where trees[sizes].isShadow && trees[sizes].name.lowercased().hasSuffix("_docsize") {
      let content = String(trees[sizes].name.dropLast("docsize".count) + "content")
      guard let texts = trees.firstIndex(where: { isSame($0.name, content) }) else { continue }
      if hasRows[sizes] != hasRows[texts] { emptied.insert(hasRows[sizes] ? texts : sizes) }
      for (table, other) in [(texts, sizes), (sizes, texts)] where trees[other].isComplete && hasRows[other] {
        let leaves = trees[other].leaves.filter { crawl.map.fieldCount($0) > 0 }
        let (first, last) = (leaves.map(crawl.map.firstKey).min() ?? 0, leaves.map(crawl.map.lastKey).max() ?? 0)
        if first <= last { keys[table] = first...last }
      }
    }
  }

  /// Whether a page's rows are too short for its table and exactly fit another, incomplete one.
  func isOfAnother(than tree: Int, _ fits: [(tree: Int, fit: PageFit)]) -> Bool {
    !grown.contains(tree) && fits.contains { $0.tree == tree && $0.fit.isShort }
      && fits.contains { $0.tree != tree && $0.fit.tier == 0 && incomplete.contains($0.tree) }
  }
}
