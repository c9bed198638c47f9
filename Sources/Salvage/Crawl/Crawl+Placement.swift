import Platform
internal import SQLiteFormat

extension Crawl {
  mutating func placeOrphans() throws {
    for tree in trees.indices where trees[tree].hasRowids {
      claimed[tree] = map.sorted(trees[tree].leaves)
    }
    if let kit { try placeByKit(kit) }
    try findUnlistedTables()
    try placeFragments(.tableInterior)
    for tree in trees.indices { trees[tree].gaps.sort { ($0.above, $0.upTo) < ($1.above, $1.upTo) } }
    try placeLeaves()
    for tree in trees.indices where trees[tree].hasRowids { trees[tree].leaves = map.sorted(trees[tree].leaves) }
    try placeFragments(.indexInterior)
    try placeIndexPages()
    try noteUnknownTable()
    settleGaps()
    try placeTornPages()
  }

  /// The best fitting table, and whether no other fits as well.
  struct Choice {
    var tree: Int
    var fit: PageFit
    var isDecisive: Bool

    var score: Double { fit.rank }
  }

  func choice(for page: UInt32, _ buffer: inout [UInt8], where isWanted: (Int) -> Bool) throws -> Choice? {
    let fits = try fits(of: page, &buffer, where: isWanted)
    return Self.choice(fits)
  }

  func choice(of bytes: Span<UInt8>, start: Int, hasRowids: Bool, where isWanted: (Int) -> Bool) -> Choice? {
    Self.choice(fits(of: bytes, start: start, hasRowids: hasRowids, where: isWanted))
  }

  private static func choice(_ fits: [(tree: Int, fit: PageFit)]) -> Choice? {
    // Ties go to the first table, so that results are reproducible.
    guard let best = fits.max(by: { ($0.fit.rank, $1.tree) < ($1.fit.rank, $0.tree) }) else { return nil }
    let isDecisive = fits.allSatisfy { $0.tree == best.tree || best.fit.rank - $0.fit.rank >= 0.2 }
    return Choice(tree: best.tree, fit: best.fit, isDecisive: isDecisive)
  }

  func fits(
    of page: UInt32, _ buffer: inout [UInt8], where isWanted: (Int) -> Bool
  ) throws -> [(tree: Int, fit: PageFit)] {
    guard try reader.readPlace(page, into: &buffer) else { return [] }
    let isZeroStart = page == 1 && buffer[0] != 13 && buffer[0] != 10
    return fits(
      of: buffer.span, start: isZeroStart ? DatabaseHeader.length : 0, hasRowids: map.look(page) == .tableLeaf
    ) { tree in
      isWanted(tree) && !strangers.contains(page, in: tree)
        && firstWalk.keys[tree].map { $0.contains(map.firstKey(page)) && $0.contains(map.lastKey(page)) } ?? true
    }
  }

  private func fits(
    of bytes: Span<UInt8>, start: Int, hasRowids: Bool, where isWanted: (Int) -> Bool
  ) -> [(tree: Int, fit: PageFit)] {
    var fits: [(tree: Int, fit: PageFit)] = []
    for tree in trees.indices where trees[tree].hasRowids == hasRowids && isWanted(tree) {
      if let fit = PageScore.fit(bytes, start: start, trees[tree].shape, geometry: reader.geometry) {
        fits.append((tree, fit))
      }
    }
    return fits
  }

  // MARK: Parts of trees whose roots are lost

  /// Assigns runs of pages below orphan interior pages.
  private mutating func placeFragments(_ look: PageMap.Look) throws {
    guard map.pageCount >= 2 else { return }
    var isReferenced = PageSet()
    var inner: [UInt32] = []
    for page in 1...map.pageCount where map.fate(page) == .unclaimed && map.look(page) == look {
      inner.append(page)
      for child in try InnerPage(page, reader).children where child <= map.pageCount {
        _ = isReferenced.insert(child)
      }
    }
    var buffer = reader.makeBuffer()
    // A fragment below another comes with it; cycles of damaged pages come last.
    let ordered = inner.filter { !isReferenced.contains($0) } + inner.filter { isReferenced.contains($0) }
    for top in ordered where map.fate(top) == .unclaimed {
      var leaves: [UInt32] = []
      var seen = PageSet()
      try collectLeaves(below: top, into: &leaves, &seen, depth: 0)
      guard let (tree, isProven) = try vote(on: leaves, &buffer) else { continue }
      if trees[tree].isComplete, try !lacks(leaves, tree) {
        // The tree is complete: this is obsolete, or part of an unknown table.
        if hasWholeSchema, !areFreePagesTold { for page in leaves { bury(page) } }
        let mayHaveRows = try map.look(top) == .indexInterior ? mayHaveUnknownRows(top) : false
        if !mayHaveRows { bury(top) }
        continue
      }
      let low = map.look(top) == .tableInterior ? leaves.first.map { map.firstKey($0).subtractingClamped(1) } : nil
      let (count, innerCount) = (trees[tree].leaves.count, trees[tree].innerPages.count)
      try walk(top, tree: tree, above: low ?? .min, upTo: .max, depth: 0)
      for page in trees[tree].leaves.dropFirst(count) {
        _ = ofFragments.insert(page)
        if !isProven { _ = likened.insert(page) }
      }
      // Interior pages without rowids have rows themselves.
      if !isProven { for page in trees[tree].innerPages.dropFirst(innerCount) { _ = likened.insert(page) } }
      if trees[tree].gaps.last?.page == top { trees[tree].gaps.removeLast() }
    }
  }

  mutating func bury(_ page: UInt32) {
    guard map.fate(page) == .unclaimed else { return }
    map.claim(page, .dead)
    dead.append(page)
  }

  private func collectLeaves(
    below page: UInt32, into leaves: inout [UInt32], _ seen: inout PageSet, depth: Int
  ) throws {
    guard depth < Self.maximumDepth, seen.insert(page), map.fate(page) == .unclaimed, leaves.count < 1 << 22 else {
      return
    }
    switch map.look(page) {
    case .tableLeaf, .indexLeaf: leaves.append(page)
    case .tableInterior, .indexInterior:
      for child in try InnerPage(page, reader).children where child <= map.pageCount {
        try collectLeaves(below: child, into: &leaves, &seen, depth: depth + 1)
      }
    case .missing, .zero, .unknown, .broken, .linked: break
    }
  }

  private mutating func vote(
    on leaves: [UInt32], _ buffer: inout [UInt8]
  ) throws -> (tree: Int, isProven: Bool)? {
    var votes: [Int: (count: Int, proven: Int)] = [:]
    var seen = 0
    let sample = stride(from: 0, to: leaves.count, by: max(1, leaves.count / 8)).map { leaves[$0] }
    var fitting: [UInt32: [(tree: Int, fit: PageFit)]] = [:]
    for page in sample where map.look(page) == .tableLeaf {
      fitting[page] = try fits(of: page, &buffer) { _ in true }.filter {
        !$0.fit.isShort || mayHaveShortRows($0.tree, page)
      }
    }
    let common = fitting.values.filter { !$0.isEmpty }.map { Set($0.map(\.tree)) }
    let shared = common.dropFirst().reduce(common.first ?? []) { $0.intersection($1) }
    for page in sample {
      let vote: Assignment?
      if let all = fitting[page] {
        let fits = shared.isEmpty ? all : all.filter { shared.contains($0.tree) }
        if fits.isEmpty { continue }
        // A live page belongs to a tree that lacks it.
        let lacking = areFreePagesTold ? fits.filter { !trees[$0.tree].isComplete } : []
        vote = try assign(page, among: lacking.isEmpty ? fits : lacking, &buffer)
      } else {
        vote = try assignEntries(page, &buffer)
      }
      seen += 1
      if let vote {
        votes[vote.tree, default: (0, 0)].count += 1
        if vote.isProven { votes[vote.tree, default: (0, 0)].proven += 1 }
      }
    }
    guard let best = votes.max(by: { ($0.value.count, $1.key) < ($1.value.count, $0.key) }),
      best.value.count * 2 >= seen
    else { return nil }
    return (best.key, best.value.proven > 0)
  }

  // MARK: Single leaves

  /// Assigns single leaves: first full rows, then shorter ones from before columns were added.
  private mutating func placeLeaves() throws {
    guard map.pageCount >= 1 else { return }
    var buffer = reader.makeBuffer()
    let twins = try PageTwins(self)
    // Unambiguous pages first: they show which keys are taken.
    var tiers = [(single: [UInt32], ambiguous: [UInt32])](repeating: ([], []), count: 4)
    for page in 1...map.pageCount
    where map.fate(page) == .unclaimed && map.look(page) == .tableLeaf && map.fieldCount(page) > 0 {
      // A page with an identical copy in a tree isn't missing.
      if try !twins.twins(of: page, in: self).isEmpty {
        bury(page)
        continue
      }
      let tables = try tables(of: page, &buffer)
      let tier = tables.map(\.fit.tier).min() ?? 0
      if tables.count > 1 { tiers[tier].ambiguous.append(page) } else { tiers[tier].single.append(page) }
    }
    for tree in trees.indices where trees[tree].hasRowids { trees[tree].leaves = map.sorted(trees[tree].leaves) }
    for tier in tiers {
      for page in tier.single + tier.ambiguous where try !place(page, &buffer) { try settleHomeless(page, &buffer) }
    }
    for page in tiers[0].single + tiers[0].ambiguous where map.fate(page) == .placed {
      if try isOlderThanColumns(page, &buffer) { _ = likened.insert(page) }
    }
  }

  /// Whether an assigned page may be an older one of another, grown table.
  private func isOlderThanColumns(_ page: UInt32, _ buffer: inout [UInt8]) throws -> Bool {
    try fits(of: page, &buffer) { !trees[$0].isComplete }.contains { other in
      other.fit.isShort && !other.fit.isUnusual && mayHaveShortRows(other.tree, page)
        && trees[other.tree].leaves.contains { map.fieldCount($0) > 0 && map.firstKey($0) > map.lastKey(page) }
    }
  }

  private func tables(of page: UInt32, _ buffer: inout [UInt8]) throws -> [(tree: Int, fit: PageFit)] {
    var tables: [(tree: Int, fit: PageFit)] = []
    for one in try fits(of: page, &buffer, where: { _ in true }) {
      if one.tree > 0, trees[one.tree].isInternal, try !hasNamesOfTables(page) { continue }
      tables.append(one)
    }
    return tables
  }

  /// Assigns a leaf to the table that lacks it; returns false if none does.
  private mutating func place(_ page: UInt32, _ buffer: inout [UInt8]) throws -> Bool {
    let all = try tables(of: page, &buffer)
    guard let best = all.max(by: { ($0.fit.rank, $1.tree) < ($1.fit.rank, $0.tree) })?.fit else { return false }
    var open: [(tree: Int, fit: PageFit)] = []
    for candidate in all {
      guard try lacks([page], candidate.tree, isOnly: all.count == 1),
        !candidate.fit.isShort || mayHaveShortRows(candidate.tree, page)
      else { continue }
      open.append(candidate)
    }
    // Pages of a table share rowids only as versions of each other.
    let free = open.filter { !overlaps(trees[$0.tree].leaves, map.firstKey(page), map.lastKey(page)) }
    let candidates = free.isEmpty ? open.filter { $0.fit.tier == best.tier } : free
    // A page that may be free resembles its former table.
    if !areFreePagesTold, !candidates.contains(where: { best.rank - $0.fit.rank < 0.2 }) { return false }
    guard let own = try assign(page, among: candidates, &buffer) else { return false }
    let isBest = candidates.contains { $0.tree == own.tree && $0.fit.tier == best.tier }
    if !own.isProven || !isBest || trees[own.tree].isComplete { _ = likened.insert(page) }
    map.claim(page, .placed, owner: own.tree)
    trees[own.tree].leaves.insert(page, at: index(endingFrom: map.firstKey(page), in: trees[own.tree].leaves))
    return true
  }

  /// Drops a leaf that no table lacks as obsolete, or sets it aside.
  private mutating func settleHomeless(_ page: UInt32, _ buffer: inout [UInt8]) throws {
    guard let any = try choice(for: page, &buffer, where: { _ in true }) else {
      unplaced.append(page)
      return
    }
    if !pagesBehindEnd.isEmpty {
      // Orphan pages come from the unfinished transaction.
      bury(page)
      pagesBehindEnd.append(page)
    } else if try isObsolete(page, of: any.tree) {
      bury(page)
    } else if reader.isOfTwoTimes, any.isDecisive {
      // Some of its rows are on no other page.
      map.claim(page, .placed, owner: any.tree)
      trees[any.tree].leaves.append(page)
    } else {
      unplaced.append(page)
    }
  }

  /// Whether a table can have this page of short rows: its keys are free, and no older row is longer, unless rowids
  /// don't follow age.
  private func mayHaveShortRows(_ tree: Int, _ page: UInt32) -> Bool {
    let leaves = trees[tree].leaves
    if overlaps(leaves, map.firstKey(page), map.lastKey(page)) { return false }
    var most = 0
    var isOlderLonger = false
    for leaf in leaves where map.fieldCount(leaf) > 0 {
      if map.fieldCount(leaf) < most { return true }
      most = map.fieldCount(leaf)
      if map.lastKey(leaf) < map.firstKey(page), most > map.fieldCount(page) { isOlderLonger = true }
    }
    return !isOlderLonger
  }

  func hasShortRows(_ tree: Int) -> Bool {
    let count = trees[tree].shape.fields.count
    return trees[tree].leaves.contains { map.fieldCount($0) > 0 && map.fieldCount($0) < count }
  }

  /// Whether rows begin with table names, as in SQLite's internal tables.
  private func hasNamesOfTables(_ page: UInt32) throws -> Bool {
    var areNames = true
    try PageRows(reader).forEach(on: page) { row in
      guard let name = row.record.value(at: 0)?.string, trees.contains(where: { isSame($0.name, name) }) else {
        areNames = false
        return
      }
    }
    return areNames
  }

  // MARK: Pages without rowids

  /// Assigns single pages to indexes, the rest to WITHOUT ROWID tables.
  private mutating func placeIndexPages() throws {
    guard map.pageCount >= 1 else { return }
    var buffer = reader.makeBuffer()
    var left: [UInt32] = []
    for page in 1...map.pageCount
    where map.fate(page) == .unclaimed && (map.look(page) == .indexLeaf || map.look(page) == .indexInterior) {
      if let index = try index(withEntriesOf: page, &buffer) { take(page, for: index) } else { left.append(page) }
    }
    for page in left {
      if let own = try assignEntries(page, &buffer), !trees[own.tree].isComplete {
        take(page, for: own.tree)
        if !own.isProven { _ = likened.insert(page) }
        continue
      }
      // Without a schema, WITHOUT ROWID tables look like indexes; their rows must not be lost.
      let isUnknown = trees.allSatisfy { $0.isInternal || $0.isKnownByRows }
      let isAnys = try choice(for: page, &buffer, where: { !trees[$0].isComplete }) != nil
      let mayHaveRows = try isUnknown || isAnys ? true : mayHaveUnknownRows(page)
      if mayHaveRows { unplaced.append(page) } else { bury(page) }
    }
  }

  private mutating func take(_ page: UInt32, for tree: Int) {
    if trees[tree].isComplete {
      bury(page)
      return
    }
    map.claim(page, .placed, owner: tree)
    if map.look(page) == .indexLeaf { trees[tree].leaves.append(page) } else { trees[tree].innerPages.append(page) }
  }

  /// Picks the index or WITHOUT ROWID table of a page; nil where undecidable.
  ///
  /// Entries that match rows belong to an index. Others go to a fitting table, unless an uncontradicted index fits too.
  private func assignEntries(_ page: UInt32, _ buffer: inout [UInt8]) throws -> Assignment? {
    if let index = try index(withEntriesOf: page, &buffer) { return Assignment(tree: index, isProven: true) }
    let fits = try fits(of: page, &buffer) { _ in true }
    var open: [(tree: Int, fit: PageFit)] = []
    for candidate in fits {
      if trees[candidate.tree].kind == .index, try isContradicted(page, asOf: candidate.tree) { continue }
      open.append(candidate)
    }
    let settings = Set(
      open.map(\.tree).filter { trees[$0].isShadow && trees[$0].name.lowercased().hasSuffix("_config") })
    if !settings.isEmpty {
      let areSettings = try hasFullTextSettings(page)
      open.removeAll { settings.contains($0.tree) != areSettings }
    }
    let tier = open.map(\.fit.tier).min()
    open.removeAll { $0.fit.tier != tier }
    if open.contains(where: { !trees[$0.tree].isComplete }) { open.removeAll { trees[$0.tree].isComplete } }
    let tables = open.filter { trees[$0.tree].kind == .withoutRowid }
    guard !tables.isEmpty else {
      return open.max { ($0.fit.rank, $1.tree) < ($1.fit.rank, $0.tree) }.map {
        Assignment(tree: $0.tree, isProven: false)
      }
    }
    guard tables.count == open.count, let best = tables.max(by: { ($0.fit.rank, $1.tree) < ($1.fit.rank, $0.tree) })
    else { return nil }
    // An unlisted index or table may have such entries as well.
    if tables.count == 1 { return Assignment(tree: best.tree, isProven: hasAllTables) }
    let isDecisive = tables.allSatisfy { $0.tree == best.tree || best.fit.rank - $0.fit.rank >= 0.2 }
    return isDecisive ? Assignment(tree: best.tree, isProven: false) : nil
  }

  /// The keys of FTS5's configuration table (SQLite's fts5_config.c).
  private static let fullTextSettings: Set = [
    "version", "pgsz", "automerge", "usermerge", "crisismerge", "deletemerge", "hashsize", "rank", "secure-delete",
    "insttoken",
  ]

  private func hasFullTextSettings(_ page: UInt32) throws -> Bool {
    var areSettings = true
    try PageRows(reader).forEachEntry(on: page) { record in
      if record.value(at: 0)?.string.map(Self.fullTextSettings.contains) != true { areSettings = false }
    }
    return areSettings
  }

  /// Whether a table lacks pages with such rows.
  ///
  /// A whole table does only if entity numbers or indexes tie the rows to it, or they fit no other table and all free
  /// pages are known: its interior pages are then of another time.
  ///
  /// - Parameter isOnly: whether the rows fit no other table.
  private mutating func lacks(
    _ pages: [UInt32], _ tree: Int, isOnly: Bool = false
  ) throws -> Bool {
    for page in pages where map.look(page) == .tableLeaf {
      let (first, last) = (map.firstKey(page), map.lastKey(page))
      guard trees[tree].isComplete else {
        if hasGap(tree, first, last) { return true }
        continue
      }
      guard hasAllTables, isFreelistSound, pagesBehindEnd.isEmpty, trees[tree].isListed, !overlaps(tree, first, last)
      else { continue }
      if trees[tree].isToldByEntity || isOnly && hasWholeSchema && areFreePagesTold { return true }
      if try indexAgreement(of: page, with: tree) == .agreeing { return true }
    }
    return false
  }

  func overlaps(_ tree: Int, _ first: Int64, _ last: Int64) -> Bool {
    overlaps(claimed[tree] ?? [], first, last)
  }

  private func overlaps(_ leaves: [UInt32], _ first: Int64, _ last: Int64) -> Bool {
    leaf(endingFrom: first, in: leaves).map { map.firstKey($0) <= last } ?? false
  }

  func leaf(of tree: Int, endingFrom key: Int64) -> UInt32? {
    leaf(endingFrom: key, in: claimed[tree] ?? [])
  }

  /// The first leaf, sorted by key, with a last rowid at or above the key.
  func leaf(endingFrom key: Int64, in leaves: [UInt32]) -> UInt32? {
    let index = index(endingFrom: key, in: leaves)
    return index < leaves.count ? leaves[index] : nil
  }

  private func index(endingFrom key: Int64, in leaves: [UInt32]) -> Int {
    leaves.partitioningIndex { map.lastKey($0) >= key }
  }

  private func hasGap(_ tree: Int, _ first: Int64, _ last: Int64) -> Bool {
    if hasAllTables, isFreelistSound, pagesBehindEnd.isEmpty, trees[tree].isListed || !trees[tree].isWalked,
      !overlaps(tree, first, last)
    {
      return true
    }
    guard trees[tree].isWalked else { return true }
    let gaps = trees[tree].gaps
    let low = gaps.partitioningIndex { $0.above >= first }
    // Gaps are rarely nested; a few steps back find the wider one.
    var index = low - 1
    while index >= 0, index >= low - 32 {
      if last <= gaps[index].upTo { return true }
      index -= 1
    }
    return gaps.first.map { $0.above < first && last <= $0.upTo } ?? false
  }

  // MARK: Places that remain empty

  /// Marks damaged pages in gaps that belong nowhere else, so that they are searched for the table's rows.
  private mutating func settleGaps() {
    for tree in trees.indices where !trees[tree].gaps.isEmpty {
      let placed = trees[tree].leaves.filter { map.fate($0) == .placed }.sorted { map.firstKey($0) < map.firstKey($1) }
      for gap in trees[tree].gaps {
        if trees[tree].hasRowids { noteMove(gap: gap, placed: placed) }
        guard gap.page > 0, gap.page <= map.pageCount, map.fate(gap.page) == .unclaimed else { continue }
        switch map.look(gap.page) {
        case .broken, .linked, .unknown:
          // If leaves fill the gap, its page was an interior one with old cells.
          guard reader.moved[gap.page] == nil, !Self.hasPage(placed, in: gap, map) else { continue }
          map.claim(gap.page, .damaged, owner: tree)
        case .missing, .zero, .tableLeaf, .tableInterior, .indexLeaf, .indexInterior: break
        }
      }
    }
  }

  static func hasPage(_ placed: [UInt32], in gap: Tree.Gap, _ map: PageMap) -> Bool {
    let low = placed.partitioningIndex { map.firstKey($0) > gap.above }
    return low < placed.count && map.lastKey(placed[low]) <= gap.upTo
  }

  /// Notes a swap of two pages, if exactly one page fits the gap that another left.
  private func noteMove(gap: Tree.Gap, placed: [UInt32]) {
    guard gap.page > 0, gap.page <= map.pageCount, gap.above != .min || gap.upTo != .max || placed.count == 1 else {
      return
    }
    let low = placed.partitioningIndex { map.firstKey($0) > gap.above }
    guard low < placed.count, map.lastKey(placed[low]) <= gap.upTo else { return }
    if low + 1 < placed.count, map.lastKey(placed[low + 1]) <= gap.upTo { return }
    let place = placed[low]
    guard place != gap.page else { return }
    reader.moved[gap.page] = place
    if reader.moved[place] == nil { reader.moved[place] = gap.page }
  }
}
