internal import SQLiteFormat

/// Finds rows that indexes, counters or neighbors contradict, as pages of an earlier time or sibling store are intact.
///
/// To spare large stores a second reading, indexes are compared only if pages seem mixed, counts differ, or the table
/// is small.
struct ContradictionSearch {
  /// The most rows and entries for an unconditional comparison.
  private static let smallCount = 1 << 16

  private let crawl: Crawl
  private let context: RowContext
  private var found = Contradictions()

  /// The pages in the place of others of a table.
  private let gapPages: PageSet

  /// Whether intact pages are misplaced or unreachable.
  private let isMixed: Bool

  /// Returns the evidence against a store's rows.
  ///
  /// - Parameter progress: called between tables; can throw.
  static func run(_ context: RowContext, progress: (Int) throws -> Void) throws -> Contradictions {
    // A search that outlived this call would share the page map, which then is copied at the first claim.
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

  private mutating func run(progress: (Int) throws -> Void) throws -> Contradictions {
    let limits = isMixed ? try KeyLimits(crawl) : KeyLimits()
    for table in crawl.trees.indices where context.tables.live[table] != nil {
      for page in crawl.trees[table].leaves {
        if crawl.strangers.copied.contains(page) { note(.misplacedPage, page) }
        if crawl.disputed.contains(table) { note(.contradicted, page) }
      }
      guard crawl.trees[table].hasRowids else { continue }
      let leaves = crawl.map.sorted(crawl.wholeLeaves(of: table).filter { crawl.map.fieldCount($0) > 0 })
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

  // MARK: Indexes

  /// Compares a table with its indexes; returns the pages that an intact index fully confirms.
  private mutating func compare(_ table: Int, _ leaves: [UInt32]) throws -> PageSet {
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
    for (page, reason) in comparison.found.pages { note(reason, page) }
    for (page, rows) in comparison.found.rows { found.rows[page, default: []].formUnion(rows) }
    return comparison.agreeing
  }

  // MARK: Places and keys

  /// Notes overlapping keys of neighbors, if possible only of the page outside its parent's range or found by content.
  private mutating func noteOverlaps(_ leaves: [UInt32], _ agreeing: PageSet) throws {
    for (left, right) in zip(leaves, leaves.dropFirst()) where crawl.map.lastKey(left) >= crawl.map.firstKey(right) {
      let pages = [left, right].filter { !agreeing.contains($0) }
      let suspects = pages.filter { crawl.outsideSpan.contains($0) || crawl.map.fate($0) == .placed }
      let overlap = crawl.map.firstKey(right)...crawl.map.lastKey(left)
      for page in suspects.isEmpty ? pages : suspects {
        try note(page) { $0 >= overlap.lowerBound && $0 <= overlap.upperBound }
      }
    }
  }

  /// Notes unlisted rows above the highest assigned key.
  private mutating func note(above limit: Int64, _ leaves: [UInt32], _ agreeing: PageSet) throws {
    let above = leaves.filter { crawl.map.lastKey($0) > limit }
    // A counter that most pages contradict is outdated itself.
    guard above.count * 2 <= max(2, leaves.count) else { return }
    for page in above where !agreeing.contains(page) { try note(page) { $0 > limit } }
  }

  /// Notes impossible rows; several discredit the whole page.
  private mutating func note(_ page: UInt32, where isWrong: (Int64) -> Bool) throws {
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
  /// The pages in the place of others, and whether any is an intact b-tree page.
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

  /// Returns a table's intact pages.
  func wholeLeaves(of table: Int) -> [UInt32] {
    trees[table].leaves.filter { page in
      let fate = map.fate(page)
      return (fate == .tree || fate == .placed) && map.look(page) == .tableLeaf
    }
  }

  func cellCount(ofIndex index: Int) -> Int {
    (trees[index].leaves + trees[index].innerPages).reduce(0) { $0 + map.cellCount($1) }
  }
}

/// The highest rowid assigned by each table, from `sqlite_sequence` and Core Data's `Z_PRIMARYKEY`.
struct KeyLimits {
  private var limits: [String: Int64] = [:]

  /// The lower limit of Core Data's own entities, with table names on A.
  private static let firstOwnNumber: Int64 = 16000

  init() {}

  /// Reads the keys from intact pages.
  init(_ crawl: Crawl) throws {
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

  /// Returns the highest assigned rowid; nil if unknown or 0.
  func limit(ofTable name: String) -> Int64? { noted(ofTable: name).flatMap { $0 > 0 ? $0 : nil } }

  /// Returns the noted rowid, including 0 for a table without assigned keys.
  func noted(ofTable name: String) -> Int64? { limits[name.lowercased()] }
}

/// Pages and rows of another time or store.
struct Contradictions {
  /// The entirely doubtful pages.
  var pages: [UInt32: DoubtReason] = [:]

  /// The contradicted rows of other pages.
  var rows: [UInt32: Set<Int64>] = [:]

  /// The intact pages that other evidence contradicts, ascending.
  var stale: [UInt32] { pages.filter { $0.value == .contradicted }.keys.sorted() }
}
