internal import SQLiteFormat

extension Crawl {
  /// Marks the pages that are free.
  ///
  /// The list in the header counts where it contradicts no tree. Where it does, or where the header is lost, trunk pages
  /// are known by their looks: a link, a count, and that many different page numbers which no tree claims.
  mutating func markFreePages() throws(SalvageError) {
    var buffer = reader.makeBuffer()
    if let header = reader.layout.header, reader.overlay?.images[1] == nil {
      try followFreelist(from: header.firstFreelistTrunk, count: Int(header.freelistCount), &buffer)
    } else if try reader.readPlace(1, into: &buffer), let header = DatabaseHeader(Array(buffer.prefix(100))),
      header.hasMagic
    {
      try followFreelist(from: header.firstFreelistTrunk, count: Int(header.freelistCount), &buffer)
    } else {
      isFreelistSound = false
    }
    let listed = freeCount
    try findTrunks(&buffer)
    // Trunks that the list does not lead to show that its fields in the header are wrong.
    if freeCount > listed { isFreelistSound = false }
  }

  private mutating func followFreelist(
    from first: UInt32, count: Int, _ buffer: inout [UInt8]
  ) throws(SalvageError) {
    if count <= max(map.pageCount, reader.statedPageCount) { statedFreeCount = count }
    var pages: [UInt32] = []
    var chain: [UInt32] = []
    var seen = PageSet()
    var next = first
    while next != 0 {
      guard next >= 2, next <= map.pageCount, map.fate(next) == .unclaimed, seen.insert(next),
        try reader.readPlace(next, into: &buffer), let trunk = trunk(buffer)
      else {
        isFreelistSound = false
        break
      }
      pages.append(next)
      chain.append(next)
      for leaf in trunk.leaves {
        guard leaf >= 2, leaf <= map.pageCount, map.fate(leaf) == .unclaimed, seen.insert(leaf) else {
          isFreelistSound = false
          continue
        }
        pages.append(leaf)
      }
      next = trunk.next
    }
    // A list that is wrong in one place may be wrong in all.
    if isFreelistSound {
      for page in pages { map.claim(page, .free) }
      for page in chain { _ = trunks.insert(page) }
      freeCount += pages.count
      isFreelistWhole = pages.count == count
    }
  }

  private mutating func findTrunks(_ buffer: inout [UInt8]) throws(SalvageError) {
    guard map.pageCount >= 2 else { return }
    for page in 2...map.pageCount where map.look(page) == .linked && map.fate(page) == .unclaimed {
      guard try reader.readPlace(page, into: &buffer), let trunk = trunk(buffer), !trunk.leaves.isEmpty else {
        continue
      }
      let leaves = Set(trunk.leaves)
      guard leaves.count == trunk.leaves.count, !leaves.contains(page),
        leaves.allSatisfy({ $0 >= 2 && $0 <= map.pageCount && map.fate($0) == .unclaimed }),
        !isFreelistSound || leaves.contains(where: { map.fieldCount($0) > 0 })
      else { continue }
      map.claim(page, .free)
      _ = trunks.insert(page)
      for leaf in trunk.leaves { map.claim(leaf, .free) }
      freeCount += 1 + trunk.leaves.count
    }
  }

  private func trunk(_ bytes: [UInt8]) -> FreelistTrunk? {
    guard let trunk = FreelistTrunk(bytes, usableSize: reader.usableSize), trunk.isSound,
      trunk.next == 0 || trunk.next >= 2 && trunk.next <= map.pageCount
    else { return nil }
    return trunk
  }
}

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

extension Crawl {
  /// How many pages a profile is made from at most.
  private static let profilePages = 24

  /// The table that a page with rowids is given to, and whether more than likeness tells it.
  struct Assignment {
    var tree: Int
    var isProven: Bool
  }

  /// Settles which of several tables a page with rowids is of; nil where nothing tells.
  ///
  /// The evidence, in its order: the classes and the number of values, the pointer maps, the entries of indexes, and last what
  /// the values of the tables are like, which proves nothing.
  ///
  /// - Parameter candidates: the tables that the page can be of by its keys and their declarations.
  mutating func assign(
    _ page: UInt32, among candidates: [(tree: Int, fit: PageFit)], _ buffer: inout [UInt8]
  ) throws(SalvageError) -> Assignment? {
    let tier = candidates.map(\.fit.tier).min()
    var left = candidates.filter { $0.fit.tier == tier }
    guard left.count > 1 else {
      guard let only = left.first else { return nil }
      // SQLite stores values of nearly any class in any column, so that odd ones only make a table less likely.
      let isOnly =
        candidates.count == 1
        || only.fit.tier == 0 && candidates.allSatisfy { $0.tree == only.tree || $0.fit.isShort }
      let isTold = try isTold(page, only.tree, isShort: only.fit.isShort)
      return Assignment(tree: only.tree, isProven: isOnly && isTold)
    }
    if let mapped = try mappedTree(of: page), left.contains(where: { $0.tree == mapped }) {
      return Assignment(tree: mapped, isProven: true)
    }
    if let listed = try indexedTree(of: page, among: left.map(\.tree)) {
      return Assignment(tree: listed, isProven: true)
    }
    let best = left.map(\.fit.score).max() ?? 0
    left.removeAll { best - $0.fit.score >= 0.2 }
    let tree = left.count == 1 ? left[0].tree : try likeliest(page, among: left.map(\.tree), &buffer)
    return tree.map { Assignment(tree: $0, isProven: false) }
  }

  /// Whether more than likeness tells that a page is of the only table that it fits: there is no other table, or the page
  /// belongs between two of the table's, or the entries of an index are its rows'.
  private mutating func isTold(_ page: UInt32, _ tree: Int, isShort: Bool) throws(SalvageError) -> Bool {
    if hasAllTables { return !isShort || hasShortRows(tree) }
    let isBetween = trees[tree].gaps.contains { gap in
      gap.above != .min && gap.upTo != .max && gap.above < map.firstKey(page) && map.lastKey(page) <= gap.upTo
    }
    if isBetween, !isShort { return true }
    return try indexAgreement(of: page, with: tree) == .agreeing
  }

  /// The one of several tables whose values those of a page are like, for tables of which no page is known by the rows that
  /// their foreign keys lead to; nil where nothing tells it.
  private mutating func likeliest(
    _ page: UInt32, among candidates: [Int], _ buffer: inout [UInt8]
  ) throws(SalvageError) -> Int? {
    for tree in candidates where profiles[tree] == nil { profiles[tree] = try profile(of: tree, &buffer) }
    guard try reader.readPlace(page, into: &buffer) else { return nil }
    let start = page == 1 && buffer[0] != 13 ? DatabaseHeader.length : 0
    var shares: [(tree: Int, share: Double)] = []
    var untold: [Int] = []
    for tree in candidates {
      guard let profile = profiles[tree], profile.isTelling,
        let share = profile.share(buffer.span, start: start, reader.geometry, reader.layout.encoding)
      else {
        untold.append(tree)
        continue
      }
      shares.append((tree, share))
    }
    shares.sort { ($0.share, $1.tree) > ($1.share, $0.tree) }
    let second = shares.count > 1 ? shares[1].share : 0
    if untold.isEmpty, let best = shares.first, best.share >= 0.6, best.share - second >= 0.2 { return best.tree }
    // What no table with known rows is like belongs to the only one of which none is known.
    if hasAllTables, untold.count == 1, let best = shares.first, best.share < 0.6 { return untold.first }
    return nil
  }

  /// The tables that a page fits about as well as the best one.
  func ties(
    for page: UInt32, _ buffer: inout [UInt8], where isWanted: (Int) -> Bool
  ) throws(SalvageError) -> [Int] {
    let fits = try fits(of: page, &buffer, where: isWanted)
    guard let best = fits.map(\.fit.rank).max() else { return [] }
    return fits.filter { best - $0.fit.rank < 0.2 }.map(\.tree)
  }

  /// The table that the pointer maps lead to from a page, upwards from page to page.
  private mutating func mappedTree(of page: UInt32) throws(SalvageError) -> Int? {
    if pointerMaps == nil { pointerMaps = try PointerMaps(reader) }
    guard let maps = pointerMaps, maps.isThere else { return nil }
    var page = page
    for _ in 0..<Self.maximumDepth {
      if let root = trees.firstIndex(where: { $0.root == page }) { return root }
      if map.fate(page) == .tree, let owner = map.owner(page) { return owner }
      guard let entry = try maps.entry(for: page), entry.kind == .child, entry.parent != page else { return nil }
      page = entry.parent
    }
    return nil
  }

  private func profile(of tree: Int, _ buffer: inout [UInt8]) throws(SalvageError) -> TableProfile {
    var profile = TableProfile(fieldCount: trees[tree].shape.fields.count)
    let leaves = (claimed[tree] ?? []).filter { map.fate($0) == .tree && $0 > 1 }
    for index in stride(from: 0, to: leaves.count, by: max(1, leaves.count / Self.profilePages)) {
      guard try reader.readPlace(leaves[index], into: &buffer) else { continue }
      profile.learn(buffer.span, start: 0, reader.geometry, reader.layout.encoding)
    }
    guard profile.rowCount == 0, let definition = trees[tree].definition else { return profile }
    for (field, column) in definition.storedColumns.enumerated() {
      guard let referred = referredTree(definition.columns[column], of: definition.name),
        let keys = keyRange(of: referred)
      else { continue }
      profile.refer(field, to: keys)
    }
    return profile
  }

  /// The table that a column's values are keys of: by its foreign key, and in Core Data's join tables by the number of the
  /// entity that is in its name (`Z_2BOOKS`).
  private func referredTree(_ column: ColumnDefinition, of table: String) -> Int? {
    if let name = column.referencedTable {
      return trees.firstIndex { $0.kind == .table && isSame($0.name, name) }
    }
    guard table.uppercased().hasPrefix("Z_"), column.name.uppercased().hasPrefix("Z_"),
      let number = Int64(column.name.dropFirst(2).prefix { $0.isASCII && $0.isNumber })
    else { return nil }
    // Only a model tells the numbers of single tables.
    return trees.firstIndex { tree in
      tree.shape.entityNumbers.map { $0.contains(number) && $0.count < 8000 } ?? false
    }
  }

  /// The keys of a table's rows as far as its tree leads to them.
  private func keyRange(of tree: Int) -> ClosedRange<Int64>? {
    guard let leaves = claimed[tree], let first = leaves.first, let last = leaves.last else { return nil }
    let low = map.firstKey(first)
    let high = map.lastKey(last)
    return low <= high && low > 0 ? low...high : nil
  }
}
