internal import PersistentStore
import Platform
import SQLiteFormat

/// Estimates the number of rows on lost pages.
///
/// It uses the rowid gaps, the density of other rowids, the highest key noted by Core Data or SQLite, the rows per
/// page, and the number of lost pages. Without any evidence the number is unknown.
struct LossEstimate {
  let outcome: RowOutcome
  private let isCoreData: Bool

  /// The lost pages without the first one, which has no app rows.
  let lostPages: Int64

  /// Intact pages of another kind that a tree leads to.
  private let misreadPages: Int

  /// The lost pages outside any known tree.
  let strayPages: Int64

  var crawl: Crawl { outcome.crawl }

  init(_ outcome: RowOutcome, isCoreData: Bool) throws {
    self.outcome = outcome
    self.isCoreData = isCoreData
    let map = outcome.crawl.map
    var pages: Int64 = 0
    var known: Set<UInt32> = []
    for tree in outcome.crawl.trees { known.formUnion(tree.gaps.map(\.page)) }
    let stated = max(outcome.reader.statedPageCount, map.pageCount)
    var knownPages: Int64 = 0
    let maps = try PointerMaps(outcome.reader)
    for page in stride(from: UInt32(2), through: map.pageCount, by: 1)
    where Self.isLost(page, map) && !outcome.wounds.accountedFor.contains(page) {
      // An overflow page of an unknown tree is no lost one.
      if !known.contains(page), let kind = try maps.entry(for: page)?.kind,
        kind == .overflowFirst || kind == .overflowNext
      {
        continue
      }
      pages += 1
      if known.contains(page) { knownPages += 1 }
    }
    // Page numbers beyond the stated end are unreliable.
    misreadPages = known.count { page in
      page > 0 && page <= map.pageCount && map.fate(page) == .unclaimed && !Self.isLost(page, map)
    }
    lostPages = pages + Int64(stated - map.pageCount) + Int64(known.count { $0 > stated })
    strayPages = lostPages - knownPages - Int64(known.count { $0 > map.pageCount })
  }

  private static func isLost(_ page: UInt32, _ map: PageMap) -> Bool {
    switch map.fate(page) {
    case .damaged: return true
    case .unclaimed:
      switch map.look(page) {
      case .zero, .unknown, .broken, .linked, .missing: return true
      case .tableLeaf, .tableInterior, .indexLeaf, .indexInterior: return false
      }
    case .tree, .placed, .overflow, .free, .special, .dead: return false
    }
  }

  /// Returns the lost rows; nil if unknown.
  func rowsOnLostPages(of index: Int, numbers: [Int64]) throws -> Int64? {
    let tree = crawl.trees[index]
    let count = try estimatedRows(of: index, numbers: numbers)
    guard count == 0, crawl.lacksPagesBehindEnd(of: index) else { return count }
    // Every page except a root has or leads to a row.
    if !tree.isWalked, try neverHeldAny(index, numbers: numbers) { return 0 }
    return tree.leaves.isEmpty ? nil : 1
  }

  private func estimatedRows(of index: Int, numbers: [Int64]) throws -> Int64? {
    let tree = crawl.trees[index]
    guard tree.hasRowids, let name = rowidName(of: tree) else { return try rowsWithoutRowids(of: index) }
    let holes = try holes(of: index, numbers: numbers)
    guard !holes.isEmpty, try !neverHeldAny(index, numbers: numbers) else { return 0 }
    let mean = meanRows(of: index)
    let density = density(of: index)
    let table = SQLText.quotedIdentifier(tree.name)
    var total = 0.0
    var isUnknown = false
    for hole in holes {
      let (width, overflow) = hole.upTo.subtractingReportingOverflow(hole.above)
      guard !overflow, hole.isBounded else {
        guard let mean, !hole.isBetweenPages else {
          isUnknown = true
          continue
        }
        total += mean * (hole.isLeaf ? 1 : max(1, Double(lostPages) * shareOfPages(of: index)))
        continue
      }
      guard width > 0 else { continue }
      let inserted =
        try outcome.database.number(
          "SELECT count(*) FROM \(table) WHERE \(name) > \(hole.above) AND \(name) <= \(hole.upTo)") ?? 0
      let present = inserted + (outcome.live[index]?.takenCount(above: hole.above, upTo: hole.upTo) ?? 0)
      let missing = Double(max(0, width - present)) * density
      // Deleted rows leave such gaps.
      if hole.isBetweenPages, missing < (mean ?? 1) / 2 { continue }
      total += missing
    }
    if isUnknown, total == 0 { return nil }
    if isLedAstray(index) { return Int64(total.rounded(.up)) }
    let most = mean ?? maximumRows(of: tree)
    // An intact page outside any tree may replace a lost one.
    let pages = Double(lostPages.addingClamped(Int64(crawl.dead.count)))
    return Int64(min(total, max(most, most * pages)).rounded(.up))
  }

  /// A rowid range without known pages.
  struct Hole {
    var above: Int64
    var upTo: Int64

    var isBounded = true

    /// Whether the gap has pages on either side.
    var isBetweenPages = false

    var isLeaf = false
  }

  /// Returns the rowid ranges of lost pages, ascending.
  func holes(of index: Int, numbers: [Int64]) throws -> [Hole] {
    let tree = crawl.trees[index]
    // Deleted rows leave gaps on fully read pages.
    var gaps = tree.gaps.filter {
      outcome.reader.moved[$0.page] == nil && !outcome.wounds.accountedFor.contains($0.page)
    }
    if !tree.isWalked && strayPages > 0 || isLedAstray(index) {
      gaps.append(Tree.Gap(page: 0, above: .min, upTo: .max))
    }
    guard !gaps.isEmpty else { return [] }
    let map = crawl.map
    let pages = map.sorted(tree.leaves.filter { map.lastKey($0) >= map.firstKey($0) && map.fieldCount($0) > 0 })
    let highest = try highestKey(of: index, numbers: numbers)
    var holes: [Hole] = []
    var first = 0
    for gap in Self.united(gaps) {
      var low = gap.above
      var isBounded = true
      if low == .min {
        // Rowids begin with 1 unless an app chose others.
        low = 0
        if let first = pages.first, map.firstKey(first) < 1 { isBounded = false }
      }
      var isBetweenPages = false
      while first < pages.count, map.lastKey(pages[first]) <= gap.above { first += 1 }
      var place = first
      while place < pages.count, map.firstKey(pages[place]) <= gap.upTo {
        let span = (first: map.firstKey(pages[place]), last: map.lastKey(pages[place]))
        if span.first.subtractingClamped(1) > low {
          holes.append(
            Hole(above: low, upTo: span.first.subtractingClamped(1), isBounded: isBounded, isBetweenPages: true))
        }
        low = max(low, span.last)
        isBounded = true
        isBetweenPages = true
        place += 1
      }
      var high = gap.upTo
      if high == .max {
        guard let highest else {
          if !isBetweenPages || hasLostEnd(index) {
            holes.append(Hole(above: low, upTo: high, isBounded: false, isLeaf: gap.isLeaf))
          } else if !tree.isWalked {
            holes.append(Hole(above: low, upTo: high, isBounded: false, isBetweenPages: true))
          }
          continue
        }
        high = highest
      }
      if high > low { holes.append(Hole(above: low, upTo: high, isBounded: isBounded, isBetweenPages: isBetweenPages)) }
    }
    return holes
  }

  /// Whether pages found by content show that the page above them was replaced.
  private func isLedAstray(_ index: Int) -> Bool {
    let tree = crawl.trees[index]
    return tree.isListed && tree.isWalked && tree.hasRowids && tree.isComplete
      && tree.leaves.contains { crawl.isByContent($0) }
  }

  func holeKeys(of index: Int, numbers: [Int64]) throws -> KeyRanges {
    let holes = try holes(of: index, numbers: numbers).filter { $0.above < $0.upTo }
    return KeyRanges(ranges: holes.map { ($0.above + 1)...$0.upTo })
  }

  /// Returns the rowid ranges of lost pages or parts of pages.
  func places(of index: Int, numbers: [Int64]) throws -> KeyRanges {
    var ranges = try holeKeys(of: index, numbers: numbers).ranges
    let map = crawl.map
    let leaves = map.sorted(crawl.trees[index].leaves)
    for (place, page) in leaves.enumerated() where outcome.wounds.pages[page] != nil {
      let low = place > 0 ? map.lastKey(leaves[place - 1]).addingClamped(1) : .min
      let high = place + 1 < leaves.count ? map.firstKey(leaves[place + 1]).subtractingClamped(1) : .max
      if low <= high { ranges.append(low...high) }
    }
    return KeyRanges(ranges: ranges)
  }

  /// Returns unused rowids from the last page to the highest assigned key, if the table's end is lost and all other
  /// rows are known.
  func keysOfLostEnd(of index: Int, numbers: [Int64]) throws -> KeyRanges {
    let tree = crawl.trees[index]
    let holes = try holes(of: index, numbers: numbers)
    guard tree.hasRowids, let name = rowidName(of: tree), let taken = outcome.live[index]?.takenKeys,
      let highest = try highestKey(of: index, numbers: numbers), var hole = holes.last,
      hole.isBounded, hole.upTo == highest, hole.above < hole.upTo
    else { return KeyRanges() }
    for before in holes.dropLast().reversed() where before.isBounded && before.upTo == hole.above {
      hole.above = before.above
      hole.isBetweenPages = before.isBetweenPages
    }
    let rows = try outcome.database.prepare(
      "SELECT \(name) FROM \(SQLText.quotedIdentifier(tree.name)) "
        + "WHERE \(name) > \(hole.above) AND \(name) <= \(hole.upTo) ORDER BY 1")
    var present = KeyRanges()
    while try rows.step() { present.append(rows.integer(0)) }
    let missing = KeyRanges(ranges: [(hole.above + 1)...hole.upTo]).subtracting(present).subtracting(taken)
    // Deleted rows leave gaps after the last page.
    let least = hole.isBetweenPages ? (meanRows(of: index) ?? 1) / 2 : 0
    return Double(missing.count) * density(of: index) < least ? KeyRanges() : missing
  }

  private static func united(_ gaps: [Tree.Gap]) -> [Tree.Gap] {
    var result: [Tree.Gap] = []
    for gap in gaps.ordered(by: { ($0.above, $0.upTo) < ($1.above, $1.upTo) }) {
      if let last = result.last, gap.above < last.upTo {
        result[result.count - 1].upTo = max(last.upTo, gap.upTo)
        result[result.count - 1].isLeaf = false
      } else {
        result.append(gap)
      }
    }
    return result
  }

  /// Limits the estimates to the joint capacity of the lost pages.
  func bounded(_ estimates: [(tree: Int, rows: Int64?)]) -> [Int64?] {
    let crawl = crawl
    // An intact stray or contradicted page may replace a lost one, unless it was returned to its table.
    let contradicted = crawl.contradictions.pages.keys.count { crawl.map.fate($0) != .placed }
    let others = crawl.dead.count + contradicted + crawl.unplaced.count + misreadPages
    let inner = crawl.trees.indices.reduce(lostPages(of: 0)) { $0 + innerPagesLost(of: $1) }
    let room = Double(max(0, lostPages - inner).addingClamped(Int64(others)))
    let wanted = estimates.map { tree, rows -> (own: Double, others: Double, mean: Double) in
      guard let rows, rows > 0 else { return (0, 0, 1) }
      // A lost page may have been as full as the fullest one.
      let fullest = Double(crawl.trees[tree].leaves.map(crawl.map.cellCount).max() ?? 0)
      let mean = max(meanRows(of: tree) ?? maximumRows(of: crawl.trees[tree]), fullest)
      let pages = Double(rows) / mean
      // Pages missing from the table's own tree come first.
      let own = min(pages, Double(max(0, lostPages(of: tree) - innerPagesLost(of: tree))))
      return (own, pages - own, mean)
    }
    let own = wanted.reduce(0) { $0 + $1.own }
    let rest = wanted.reduce(0) { $0 + $1.others }
    let share = rest > 0 ? min(1, max(0, room - own) / rest) : 1
    return zip(estimates, wanted).map { estimate, wanted in
      guard share < 1 else { return estimate.rows }
      return estimate.rows.map { _ in Int64(((wanted.own + wanted.others * share) * wanted.mean).rounded()) }
    }
  }

  private func lostPages(of index: Int) -> Int64 {
    let map = crawl.map
    return Int64(
      crawl.trees[index].gaps.count { gap in
        gap.page > 0 && outcome.reader.moved[gap.page] == nil
          && (gap.page > map.pageCount || Self.isLost(gap.page, map) || map.fate(gap.page) == .unclaimed)
      })
  }

  /// Returns the number of lost interior pages above found leaves.
  private func innerPagesLost(of index: Int) -> Int64 {
    let tree = crawl.trees[index]
    // Interior pages without rowids have rows themselves.
    guard tree.hasRowids, tree.isListed || !tree.isWalked else { return 0 }
    let placed = crawl.map.sorted(tree.leaves.filter { crawl.map.fate($0) == .placed })
    guard let last = placed.last, tree.isWalked || placed.count > 1 else { return 0 }
    let parents = tree.gaps.count { gap in
      gap.page > 0 && !gap.isLeaf && outcome.reader.moved[gap.page] == nil && Crawl.hasPage(placed, in: gap, crawl.map)
    }
    guard !tree.isWalked || tree.gaps.contains(where: { $0.page == tree.root }) else { return Int64(parents) }
    // An interior cell has a page number, a key and a 2-byte pointer.
    let key = max(1, (64 - crawl.map.lastKey(last).magnitude.leadingZeroBitCount + 6) / 7)
    let fanOut = max(2, (outcome.reader.usableSize - 12) / (6 + key))
    var pages = placed.count
    var needed = 0
    while pages > 1 {
      pages = (pages + fanOut - 1) / fanOut
      needed += pages
    }
    return Int64(max(parents, needed))
  }

  /// Whether no row was found and no key noted as assigned.
  private func neverHeldAny(_ index: Int, numbers: [Int64]) throws -> Bool {
    guard outcome.tallies[index].recovered == 0, outcome.tallies[index].destroyed == 0 else { return false }
    return try notedKey(of: index, numbers: numbers) == 0
  }

  /// Returns the highest plausible key noted by Core Data or SQLite.
  private func highestKey(of index: Int, numbers: [Int64]) throws -> Int64? {
    var noted = try notedKey(of: index, numbers: numbers)
    if noted == nil { noted = try sequenceKey(of: crawl.trees[index]) }
    guard let noted, noted > 0, noted < 1 << 48 else { return nil }
    return noted
  }

  /// Returns the highest key that Core Data noted for a table's entities.
  ///
  /// Without a known numbering, the table's name identifies the root entity: a letter and its name in capitals (format
  /// section 3.5).
  private func notedKey(of index: Int, numbers: [Int64]) throws -> Int64? {
    guard isCoreData else { return nil }
    let condition: String
    let list: String?
    if numbers.isEmpty {
      list = keyList(with: "Z_NAME")
      condition = "upper(Z_NAME) = \(SQLText.literal(String(crawl.trees[index].name.uppercased().dropFirst())))"
    } else {
      list = keyList(with: "Z_ENT")
      condition = "Z_ENT IN (\(numbers.map { "\($0)" }.joined(separator: ",")))"
    }
    guard let list else { return nil }
    return try outcome.database.number(
      "SELECT max(Z_MAX) FROM \(list) WHERE typeof(Z_MAX) = 'integer' AND \(condition)")
  }

  /// Returns Core Data's list of highest keys, if it has the column.
  private func keyList(with column: String) -> String? {
    guard
      let keys = crawl.trees.indices.first(where: {
        isSame(crawl.trees[$0].name, "Z_PRIMARYKEY") && outcome.live[$0] != nil
      }), let definition = crawl.trees[keys].definition, definition.column(named: "Z_MAX") != nil,
      definition.column(named: column) != nil
    else { return nil }
    return SQLText.quotedIdentifier(crawl.trees[keys].name)
  }

  /// Whether Core Data may have assigned keys to the entities: it noted one, or the root entity's note is lost.
  func mayHaveGivenKeys(to names: [String]) throws -> Bool {
    guard isCoreData, let root = names.first else { return false }
    guard let table = keyList(with: "Z_NAME") else { return true }
    let list = names.map { SQLText.literal($0) }.joined(separator: ",")
    let given = try outcome.database.number(
      "SELECT count(*) FROM \(table) WHERE typeof(Z_MAX) = 'integer' AND Z_MAX > 0 AND Z_NAME IN (\(list))")
    let noted = try outcome.database.number(
      "SELECT count(*) FROM \(table) WHERE typeof(Z_MAX) = 'integer' AND Z_NAME = \(SQLText.literal(root))")
    return given ?? 0 > 0 || noted ?? 0 == 0
  }

  /// Whether a growing table's last pages are missing.
  private func hasLostEnd(_ index: Int) -> Bool {
    outcome.reader.statedPageCount > crawl.map.pageCount || crawl.lacksPagesBehindEnd(of: index)
  }

  func shareOfPages(of index: Int) -> Double {
    Double(crawl.trees[index].leaves.count) / Double(max(1, crawl.map.pageCount))
  }

  /// Returns the mean rows per page, else by the keys around lost pages.
  private func meanRows(of index: Int) -> Double? {
    let tree = crawl.trees[index]
    guard tree.leaves.isEmpty else {
      return max(1, Double(outcome.tallies[index].recovered) / Double(tree.leaves.count))
    }
    let most = maximumRows(of: tree)
    let widths = tree.gaps.compactMap { gap -> Double? in
      guard gap.page > 0, gap.upTo < .max else { return nil }
      let width = gap.upTo.subtractingClamped(gap.above == .min ? 0 : gap.above)
      return width > 0 && Double(width) <= most ? Double(width) : nil
    }
    return widths.isEmpty ? nil : max(1, widths.reduce(0, +) / Double(widths.count))
  }

  /// Returns the most rows per page, with empty values.
  private func maximumRows(of tree: Tree) -> Double {
    // Payload length, rowid, header length, a type per field, and a 2-byte pointer.
    Double(max(1, (outcome.reader.usableSize - 8) / (2 + max(4, 3 + tree.shape.minimumFields))))
  }

  /// Returns the mean share of rowids in use within a page.
  private func density(of index: Int) -> Double {
    var keys = 0.0
    for page in crawl.trees[index].leaves where crawl.map.fieldCount(page) > 0 {
      let (width, overflow) = crawl.map.lastKey(page).subtractingReportingOverflow(crawl.map.firstKey(page))
      if !overflow, width >= 0 { keys += Double(width) + 1 }
    }
    guard keys > 0 else { return 1 }
    return min(1, Double(outcome.tallies[index].recovered) / keys)
  }

  private func rowidName(of tree: Tree) -> String? {
    guard let definition = tree.definition else { return nil }
    if let alias = definition.rowidAlias { return SQLText.quotedIdentifier(definition.columns[alias].name) }
    return ["rowid", "_rowid_", "oid"].first { definition.column(named: $0) == nil }
  }
}
