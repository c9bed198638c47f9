internal import SQLiteFormat

/// Looks for rows that indexes, counters or neighbours contradict, before any row is written: a page of an earlier time or
/// of a sibling store is whole, and only what else the store says of its rows tells.
///
/// In: the trees and their pages. Out: the pages and rows that are doubtful. A large store is not read again for it unless
/// something tells that its pages may be of different times: indexes are compared where whole pages stand in the places of
/// others, where the number of their entries is not that of the rows, and where there are few.
struct ContradictionSearch {
  /// How many rows and entries of indexes a table may have for them to be compared in any case.
  private static let smallCount = 1 << 16

  private let crawl: Crawl
  private let context: RowContext
  private var found = Contradictions()

  /// The pages that stand where the tree of a table leads to another one.
  private let gapPages: PageSet

  /// Whether whole pages stand where others should be, or nothing leads to them.
  private let isMixed: Bool

  /// What speaks against rows of a store.
  ///
  /// - Parameter progress: called between tables, so that the caller can end it.
  static func run(
    _ context: RowContext, progress: (Int) throws(SalvageError) -> Void
  ) throws(SalvageError) -> Contradictions {
    var search = ContradictionSearch(context)
    return try search.run(progress: progress)
  }

  private init(_ context: RowContext) {
    self.context = context
    crawl = context.crawl
    let gaps = crawl.gapPages
    let hasOrphans = crawl.damage == 0 && !(crawl.unplaced.isEmpty && crawl.dead.isEmpty)
    gapPages = gaps.pages
    isMixed =
      gaps.hasWholePages || hasOrphans || !crawl.reader.moved.isEmpty || crawl.reader.isOverlayContradicted
      || crawl.outsideSpan.count > 0
  }

  private mutating func run(
    progress: (Int) throws(SalvageError) -> Void
  ) throws(SalvageError) -> Contradictions {
    let limits = isMixed ? try KeyLimits(crawl) : KeyLimits()
    for table in crawl.trees.indices where context.tables.live[table] != nil && crawl.trees[table].hasRowids {
      let leaves = self.leaves(of: table)
      guard !leaves.isEmpty else { continue }
      try progress(0)
      let agreeing = try compare(table, leaves)
      guard isMixed else { continue }
      try noteOverlaps(leaves, agreeing)
      for page in leaves where !agreeing.contains(page) {
        let isMisplaced = crawl.map.fate(page) == .placed && gapPages.contains(page)
        if isMisplaced || crawl.strangers.isUndecided(page) { note(.misplacedPage, page) }
      }
      if let limit = limits.limit(ofTable: crawl.trees[table].name) { try note(above: limit, leaves, agreeing) }
    }
    for page in found.pages.keys { found.rows[page] = nil }
    return found
  }

  /// The pages of a table that were not found by looking for cells, in the order of their keys.
  private func leaves(of table: Int) -> [UInt32] {
    crawl.map.sorted(
      crawl.trees[table].leaves.filter { page in
        let fate = crawl.map.fate(page)
        return (fate == .tree || fate == .placed) && crawl.map.look(page) == .tableLeaf
          && crawl.map.fieldCount(page) > 0
      })
  }

  // MARK: Indexes

  /// Compares the rows of a table with its indexes; returns the pages all of whose rows one that is whole has.
  private mutating func compare(_ table: Int, _ leaves: [UInt32]) throws(SalvageError) -> PageSet {
    let indexes = crawl.comparableIndexes(of: table)
    guard !indexes.isEmpty else { return PageSet() }
    let rows = crawl.trees[table].leaves.reduce(0) { $0 + crawl.map.cellCount($1) }
    let entries = indexes.map { crawl.cellCount(ofIndex: $0.tree) }
    let isUneven = zip(indexes, entries).contains { index, count in
      crawl.trees[table].isComplete && crawl.trees[index.tree].isComplete && count != rows
    }
    guard isMixed || isUneven || entries.reduce(rows, +) <= Self.smallCount else { return PageSet() }
    var comparison = IndexComparison(context, table: table, leaves: leaves, indexes: indexes)
    try comparison.run()
    for (page, reason) in comparison.pages { note(reason, page) }
    for (page, rows) in comparison.rows { found.rows[page, default: []].formUnion(rows) }
    return comparison.agreeing
  }

  // MARK: Places and keys

  /// Notes what overlaps in the keys of neighbours: one of two pages is of another time or place, and where one lies
  /// outside of the keys that its parent allows, or nothing but its content led to it, it is that one.
  private mutating func noteOverlaps(_ leaves: [UInt32], _ agreeing: PageSet) throws(SalvageError) {
    for (left, right) in zip(leaves, leaves.dropFirst())
    where crawl.map.lastKey(left) >= crawl.map.firstKey(right) {
      let pages = [left, right].filter { !agreeing.contains($0) }
      let suspects = pages.filter { crawl.outsideSpan.contains($0) || crawl.map.fate($0) == .placed }
      let overlap = crawl.map.firstKey(right)...crawl.map.lastKey(left)
      for page in suspects.isEmpty ? pages : suspects {
        try note(page) { $0 >= overlap.lowerBound && $0 <= overlap.upperBound }
      }
    }
  }

  /// Notes rows with keys above the highest one that the store ever gave, unless an index has them.
  private mutating func note(above limit: Int64, _ leaves: [UInt32], _ agreeing: PageSet) throws(SalvageError) {
    let above = leaves.filter { crawl.map.lastKey($0) > limit }
    // A counter that most pages contradict is itself of another time.
    guard above.count * 2 <= max(2, leaves.count) else { return }
    for page in above where !agreeing.contains(page) { try note(page) { $0 > limit } }
  }

  /// Notes the rows of a page whose rowids cannot be; more than one, or nothing but such, tell of the whole page.
  private mutating func note(_ page: UInt32, where isWrong: (Int64) -> Bool) throws(SalvageError) {
    var wrong: Set<Int64> = []
    var others = 0
    try PageRows(crawl.reader).forEach(on: page) { row in
      if isWrong(row.rowid) { wrong.insert(row.rowid) } else { others += 1 }
    }
    guard !wrong.isEmpty else { return }
    if wrong.count > 1 || others == 0 {
      note(.contradicted, page)
    } else {
      found.rows[page, default: []].formUnion(wrong)
    }
  }

  private mutating func note(_ reason: DoubtReason, _ page: UInt32) {
    if found.pages[page] == nil { found.pages[page] = reason }
  }
}

extension Crawl {
  /// The pages that stand where a tree leads to another one, and whether any of them is a whole page of some tree.
  var gapPages: (pages: PageSet, hasWholePages: Bool) {
    var pages = PageSet()
    var hasWholePages = false
    for tree in trees where tree.isListed {
      for gap in tree.gaps where gap.page > 0 && gap.page <= map.pageCount {
        _ = pages.insert(gap.page)
        switch map.look(gap.page) {
        case .tableLeaf, .tableInterior, .indexLeaf, .indexInterior: hasWholePages = true
        case .missing, .zero, .unknown, .broken, .linked: break
        }
      }
    }
    return (pages, hasWholePages)
  }

  /// How many entries the pages of an index have.
  func cellCount(ofIndex index: Int) -> Int {
    (trees[index].leaves + trees[index].innerPages).reduce(0) { $0 + map.cellCount($1) }
  }
}

/// The highest rowid that each table ever gave, as `sqlite_sequence` and Core Data's `Z_PRIMARYKEY` have it.
struct KeyLimits {
  private var limits: [String: Int64] = [:]

  /// From here on the numbers are those of Core Data's own entities, whose tables have names that begin with an A.
  private static let firstOwnNumber: Int64 = 16000

  init() {}

  /// Reads them from the pages that the trees of these tables lead to; what is not whole tells nothing.
  init(_ crawl: Crawl) throws(SalvageError) {
    let rows = PageRows(crawl.reader)
    for tree in crawl.trees where tree.isListed && tree.isComplete && tree.hasRowids {
      let isSequence = isSame(tree.name, "sqlite_sequence")
      guard isSequence || isSame(tree.name, "Z_PRIMARYKEY") else { continue }
      for page in tree.leaves {
        try rows.forEach(on: page) { row in
          if isSequence {
            add(row.record.value(at: 0)?.string, row.record.value(at: 1)?.integer)
          } else if row.record.value(at: 2)?.integer == 0, let name = row.record.value(at: 1)?.string {
            add((row.rowid < Self.firstOwnNumber ? "Z" : "A") + name, row.record.value(at: 3)?.integer)
          }
        }
      }
    }
  }

  private mutating func add(_ name: String?, _ limit: Int64?) {
    guard let name, let limit, limit >= 0 else { return }
    limits[name.lowercased()] = max(limit, limits[name.lowercased()] ?? 0)
  }

  /// The highest rowid that a table gave; nil where nothing tells, or it gave none.
  func limit(ofTable name: String) -> Int64? { noted(ofTable: name).flatMap { $0 > 0 ? $0 : nil } }

  /// The same, and 0 for a table that gave none.
  func noted(ofTable name: String) -> Int64? { limits[name.lowercased()] }
}

/// What speaks against rows that stand in their table: pages of another time or of another store.
struct Contradictions {
  /// The pages all of whose rows are doubtful, with the reason.
  var pages: [UInt32: DoubtReason] = [:]

  /// The rows of other pages that something contradicts, by their page.
  var rows: [UInt32: Set<Int64>] = [:]

  /// The pages of rows that are whole and do not agree with what else the store says of their rows, in ascending order.
  var stale: [UInt32] { pages.filter { $0.value == .contradicted }.keys.sorted() }
}
