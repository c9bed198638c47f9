/// What the first walk of all trees shows of them, before any page is doubted.
struct FirstWalk {
  /// The trees that lack pages.
  var incomplete: Set<Int> = []

  /// Those of them that have no row, though another tree shows that they had some.
  var emptied: Set<Int> = []

  /// The trees that have pages with all fields and others with fewer: columns were added to their tables.
  var grown: Set<Int> = []

  /// The trees of several pages in which values of other classes than their columns are declared for are ordinary, and how many
  /// of them a record has on average.
  var odd: [Int: Double] = [:]

  /// The rowids that a table of a full-text index has, by the table beside it.
  var keys: [Int: ClosedRange<Int64>] = [:]

  /// How many odd values a record has, on average, from which on they are ordinary in a table.
  private static let ordinaryOddness = 0.25

  /// How many times as odd as the others a page of a table may be.
  private static let tolerance = 1.6

  /// How many leaves of a tree are looked at.
  private static let sample = 8

  init() {}

  init(_ crawl: Crawl) throws(SalvageError) {
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

  /// Whether a page with so many odd values is no odder than others of a tree.
  func isOrdinary(_ oddness: Double, in tree: Int) -> Bool {
    odd[tree].map { oddness < $0 * Self.tolerance } ?? false
  }

  /// Notes the tables that have no row, though all of their indexes have entries.
  private mutating func compareIndexes(_ crawl: Crawl, _ hasRows: [Bool]) {
    var isIndexed: [Int: Bool] = [:]
    for (index, tree) in crawl.trees.enumerated() where tree.kind == .index && !tree.isPartialIndex {
      if let table = tree.table { isIndexed[table] = (isIndexed[table] ?? true) && hasRows[index] }
    }
    for (table, areIndexed) in isIndexed where areIndexed && !hasRows[table] && crawl.trees[table].root > 1 {
      emptied.insert(table)
    }
  }

  /// Compares the two tables in which FTS5 keeps the texts and their sizes, under the same rowids.
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

  /// Whether a page of a table has rows with fewer values than columns, and another table lacks pages with just such rows.
  ///
  /// - Parameter fits: the trees that the page can be of.
  func isOfAnother(than tree: Int, _ fits: [(tree: Int, fit: PageFit)]) -> Bool {
    !grown.contains(tree) && fits.contains { $0.tree == tree && $0.fit.isShort }
      && fits.contains { $0.tree != tree && $0.fit.tier == 0 && incomplete.contains($0.tree) }
  }
}
