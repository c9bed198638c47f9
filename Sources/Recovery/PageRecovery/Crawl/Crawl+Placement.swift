internal import SQLiteFormat

extension Crawl {
  /// Gives the pages that no tree claims to the tables that they belong to.
  mutating func placeOrphans() throws(SalvageError) {
    for tree in trees.indices where trees[tree].hasRowids {
      claimed[tree] = map.sorted(trees[tree].leaves)
    }
    if let kit { try placeByKit(kit) }
    try findUnlistedTables()
    try placeFragments()
    for tree in trees.indices { trees[tree].gaps.sort { ($0.above, $0.upTo) < ($1.above, $1.upTo) } }
    try placeLeaves()
    try noteUnknownTable()
    settleGaps()
    try placeTornPages()
  }

  /// The table that a page's rows fit best, and whether no other fits as well.
  struct Choice {
    var tree: Int
    var score: Double
    var isDecisive: Bool
  }

  /// Compares a page with all trees of its kind.
  ///
  /// - Parameter isWanted: which trees count.
  func choice(for page: UInt32, _ buffer: inout [UInt8], where isWanted: (Int) -> Bool) throws(SalvageError) -> Choice?
  {
    guard try reader.readPlace(page, into: &buffer) else { return nil }
    let bytes = buffer.span
    let isZeroStart = page == 1 && bytes[0] != 13 && bytes[0] != 10
    return choice(
      of: bytes, start: isZeroStart ? DatabaseHeader.length : 0, hasRowids: map.look(page) == .tableLeaf,
      where: isWanted)
  }

  /// Compares the bytes of a page with all trees of its kind.
  func choice(of bytes: Span<UInt8>, start: Int, hasRowids: Bool, where isWanted: (Int) -> Bool) -> Choice? {
    var best: Choice?
    var second = -Double.infinity
    for tree in trees.indices where trees[tree].hasRowids == hasRowids && isWanted(tree) {
      guard let score = PageScore.score(bytes, start: start, trees[tree].shape, geometry: reader.geometry) else {
        continue
      }
      if score > best?.score ?? -.infinity {
        second = best?.score ?? second
        best = Choice(tree: tree, score: score, isDecisive: true)
      } else {
        second = max(second, score)
      }
    }
    guard var best else { return nil }
    best.isDecisive = best.score - second >= 0.2
    return best
  }

  // MARK: Parts of trees whose roots are lost

  /// Inner pages that no tree claims lead to whole runs of pages.
  private mutating func placeFragments() throws(SalvageError) {
    guard map.pageCount >= 2 else { return }
    var isReferenced = PageSet()
    var inner: [UInt32] = []
    for page in 1...map.pageCount where map.fate(page) == .unclaimed {
      guard map.look(page) == .tableInterior || map.look(page) == .indexInterior else { continue }
      inner.append(page)
      for child in try InnerPage(page, reader).children where child <= map.pageCount {
        _ = isReferenced.insert(child)
      }
    }
    var buffer = reader.makeBuffer()
    // A fragment whose top is another one's child comes along with that; circles of damaged pages come last.
    let ordered = inner.filter { !isReferenced.contains($0) } + inner.filter { isReferenced.contains($0) }
    for top in ordered where map.fate(top) == .unclaimed {
      var leaves: [UInt32] = []
      var seen = PageSet()
      try collectLeaves(below: top, into: &leaves, &seen, depth: 0)
      guard let tree = try vote(on: leaves, &buffer) else { continue }
      if trees[tree].isComplete, !isMissing(leaves, of: tree) {
        // The tree is whole without it: it is what a table was once, or what another is that nothing tells of.
        if hasWholeSchema, !areFreePagesTold { for page in leaves { bury(page) } }
        let mayHaveRows = try map.look(top) == .indexInterior ? mayHaveUnknownRows(top) : false
        if !mayHaveRows { bury(top) }
        continue
      }
      let low = map.look(top) == .tableInterior ? leaves.first.map { map.firstKey($0).subtractingClamped(1) } : nil
      let count = trees[tree].leaves.count
      try walk(top, tree: tree, above: low ?? .min, upTo: .max, depth: 0)
      for page in trees[tree].leaves.dropFirst(count) { _ = ofFragments.insert(page) }
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
  ) throws(SalvageError) {
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

  /// The tree that most of a few leaves fit.
  private mutating func vote(on leaves: [UInt32], _ buffer: inout [UInt8]) throws(SalvageError) -> Int? {
    var votes: [Int: Double] = [:]
    let step = max(1, leaves.count / 8)
    var seen = 0
    for index in stride(from: 0, to: leaves.count, by: step) {
      guard let choice = try choice(for: leaves[index], &buffer, where: { _ in true }) else { continue }
      seen += 1
      if choice.isDecisive {
        votes[choice.tree, default: 0] += 1
      } else if trees[choice.tree].hasRowids {
        // A page that could be another table's just as well is no vote for either.
        let tied = try ties(for: leaves[index], &buffer) { _ in true }
        if let tree = try tieBreak(leaves[index], among: tied, &buffer) { votes[tree, default: 0] += 1 }
      } else {
        votes[choice.tree, default: 0] += 0.5
      }
    }
    // Of two with as many votes the first table, so that the same file is always read the same way.
    guard let best = votes.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }), best.value * 2 >= Double(seen) else {
      return nil
    }
    return best.key
  }

  // MARK: Single leaves

  private mutating func placeLeaves() throws(SalvageError) {
    guard map.pageCount >= 1 else { return }
    var buffer = reader.makeBuffer()
    var twins: PageTwins?
    for page in 1...map.pageCount where map.fate(page) == .unclaimed {
      let look = map.look(page)
      if look == .indexInterior {
        try placeIndexPage(page, &buffer)
        continue
      }
      guard look == .tableLeaf || look == .indexLeaf else { continue }
      if look == .indexLeaf {
        try placeIndexPage(page, &buffer)
        continue
      }
      guard map.fieldCount(page) > 0 else { continue }
      // What stands in a tree already, byte for byte, is missing nowhere.
      let known = twins ?? PageTwins(self)
      twins = known
      if try !known.twins(of: page, in: self).isEmpty {
        bury(page)
        continue
      }
      let first = map.firstKey(page)
      let last = map.lastKey(page)
      let open = try choice(for: page, &buffer) { tree in hasGap(tree, first, last) }
      let any = try choice(for: page, &buffer) { _ in true }
      guard let any else {
        unplaced.append(page)
        continue
      }
      if let open, open.score >= any.score - 0.2 {
        var tree: Int? = open.tree
        if !open.isDecisive {
          tree = try tieBreak(page, among: try ties(for: page, &buffer) { hasGap($0, first, last) }, &buffer)
        }
        if let tree {
          map.claim(page, .placed, owner: tree)
          trees[tree].leaves.append(page)
        } else {
          unplaced.append(page)
        }
      } else if !pagesBehindEnd.isEmpty {
        // Where a transaction did not end, what no tree leads to was written by it.
        bury(page)
        pagesBehindEnd.append(page)
      } else if try isObsolete(page, of: any.tree) {
        bury(page)
      } else if reader.isOfTwoTimes, any.isDecisive {
        // It has rows of its tree that stand on no other page, beside some that do.
        map.claim(page, .placed, owner: any.tree)
        trees[any.tree].leaves.append(page)
      } else {
        unplaced.append(page)
      }
    }
  }

  private mutating func placeIndexPage(_ page: UInt32, _ buffer: inout [UInt8]) throws(SalvageError) {
    let any = try choice(for: page, &buffer) { _ in true }
    guard let any else {
      // Without any schema, tables without rowids cannot be told from indexes; their rows must not be lost.
      let isUnknown = trees.allSatisfy { $0.isInternal || $0.isKnownByRows }
      let mayHaveRows = try isUnknown ? true : mayHaveUnknownRows(page)
      if mayHaveRows { unplaced.append(page) }
      return
    }
    guard !trees[any.tree].isComplete, any.isDecisive || trees[any.tree].kind == .index else {
      let mayHaveRows = try trees[any.tree].isComplete ? mayHaveUnknownRows(page) : true
      if mayHaveRows { unplaced.append(page) } else { bury(page) }
      return
    }
    map.claim(page, .placed, owner: any.tree)
    if map.look(page) == .indexLeaf {
      trees[any.tree].leaves.append(page)
    } else {
      trees[any.tree].innerPages.append(page)
    }
  }

  /// Whether pages must be a table's although its tree seems whole.
  ///
  /// In a sound database every page is part of a tree, or free, or special. Where the list of free pages is sound, a page
  /// that is not on it and not in a tree belongs to a tree whose way to it is damaged, unless its rows are there already, or
  /// there are tables that nothing tells of.
  private func isMissing(_ leaves: [UInt32], of tree: Int) -> Bool {
    guard hasAllTables, isFreelistSound, pagesBehindEnd.isEmpty, trees[tree].isListed, trees[tree].hasRowids else {
      return false
    }
    return leaves.contains { map.look($0) == .tableLeaf && !overlaps(tree, map.firstKey($0), map.lastKey($0)) }
  }

  /// Whether a table has a page with rowids of that range.
  func overlaps(_ tree: Int, _ first: Int64, _ last: Int64) -> Bool {
    leaf(of: tree, endingFrom: first).map { map.firstKey($0) <= last } ?? false
  }

  /// The first leaf of a table whose last rowid is not below one; nil where there is none.
  func leaf(of tree: Int, endingFrom key: Int64) -> UInt32? {
    leaf(endingFrom: key, in: claimed[tree] ?? [])
  }

  /// The first leaf of some, in the order of their keys, that ends with a key or behind it.
  func leaf(endingFrom key: Int64, in leaves: [UInt32]) -> UInt32? {
    var low = 0
    var high = leaves.count
    while low < high {
      let middle = (low + high) / 2
      if map.lastKey(leaves[middle]) < key { low = middle + 1 } else { high = middle }
    }
    return low < leaves.count ? leaves[low] : nil
  }

  /// Whether a table lacks pages with rowids of that range.
  private func hasGap(_ tree: Int, _ first: Int64, _ last: Int64) -> Bool {
    if hasAllTables, isFreelistSound, pagesBehindEnd.isEmpty, trees[tree].isListed || !trees[tree].isWalked,
      !overlaps(tree, first, last)
    {
      return true
    }
    guard !trees[tree].isComplete else { return false }
    guard trees[tree].isWalked else { return true }
    let gaps = trees[tree].gaps
    var low = 0
    var high = gaps.count
    while low < high {
      let middle = (low + high) / 2
      if gaps[middle].above < first { low = middle + 1 } else { high = middle }
    }
    // Gaps seldom lie within each other; a few steps back find the wider one.
    var index = low - 1
    while index >= 0, index >= low - 32 {
      if last <= gaps[index].upTo { return true }
      index -= 1
    }
    return gaps.first.map { $0.above < first && last <= $0.upTo } ?? false
  }

  // MARK: Places that remain empty

  /// Marks the pages that stand where a tree has a gap and belong nowhere else: what is left of them is looked for by its
  /// table.
  private mutating func settleGaps() {
    for tree in trees.indices where !trees[tree].gaps.isEmpty {
      let placed = trees[tree].leaves.filter { map.fate($0) == .placed }.sorted { map.firstKey($0) < map.firstKey($1) }
      for gap in trees[tree].gaps {
        if trees[tree].hasRowids { noteMove(gap: gap, placed: placed) }
        guard gap.page > 0, gap.page <= map.pageCount, map.fate(gap.page) == .unclaimed else { continue }
        switch map.look(gap.page) {
        case .broken, .linked, .unknown:
          // Where leaves were found for the gap, its page was an inner one, and cells on it are old.
          guard reader.moved[gap.page] == nil, !Self.hasPage(placed, in: gap, map) else { continue }
          map.claim(gap.page, .damaged, owner: tree)
        case .missing, .zero, .tableLeaf, .tableInterior, .indexLeaf, .indexInterior: break
        }
      }
    }
  }

  private static func hasPage(_ placed: [UInt32], in gap: Tree.Gap, _ map: PageMap) -> Bool {
    var low = 0
    var high = placed.count
    while low < high {
      let middle = (low + high) / 2
      if map.firstKey(placed[middle]) <= gap.above { low = middle + 1 } else { high = middle }
    }
    return low < placed.count && map.lastKey(placed[low]) <= gap.upTo
  }

  /// Where exactly one page was placed into a gap that one page left, the two have changed places with one another.
  private func noteMove(gap: Tree.Gap, placed: [UInt32]) {
    guard gap.page > 0, gap.page <= map.pageCount, gap.above != .min || gap.upTo != .max || placed.count == 1 else {
      return
    }
    var low = 0
    var high = placed.count
    while low < high {
      let middle = (low + high) / 2
      if map.firstKey(placed[middle]) <= gap.above { low = middle + 1 } else { high = middle }
    }
    guard low < placed.count, map.lastKey(placed[low]) <= gap.upTo else { return }
    if low + 1 < placed.count, map.lastKey(placed[low + 1]) <= gap.upTo { return }
    let place = placed[low]
    guard place != gap.page else { return }
    reader.moved[gap.page] = place
    if reader.moved[place] == nil { reader.moved[place] = gap.page }
  }
}
