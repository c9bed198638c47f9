internal import SQLiteFormat

extension Crawl {
  /// Marks the free pages.
  ///
  /// The freelist counts unless it contradicts a tree. Otherwise trunk pages are recognized by form: a link, a count,
  /// and that many distinct unclaimed pages.
  mutating func markFreePages() throws {
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
    if freeCount > listed { isFreelistSound = false }
  }

  private mutating func followFreelist(
    from first: UInt32, count: Int, _ buffer: inout [UInt8]
  ) throws {
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
    // A list that is wrong in one place may be wrong everywhere.
    if isFreelistSound {
      for page in pages { map.claim(page, .free) }
      for page in chain { _ = trunks.insert(page) }
      freeCount += pages.count
      isFreelistWhole = pages.count == count
    }
  }

  private mutating func findTrunks(_ buffer: inout [UInt8]) throws {
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

/// Tables with a lost row in an otherwise whole schema table.
///
/// In a sound database every page is in a tree, free, or special. With a whole freelist, any other page with rows
/// belongs to a damaged tree or, if no tree lacks it, to an unlisted table.
extension Crawl {
  /// Whether every orphan page is known to be live, because the freelist is whole.
  var areFreePagesTold: Bool {
    isFreelistSound && isFreelistWhole && pagesBehindEnd.isEmpty && endOfDatabase == .max
  }

  var lacksTables: Bool { lacksUnknownTable || !unlistedTrees.isEmpty }

  /// Finds tables of the model with pages but no row in a seemingly whole schema table.
  mutating func findUnlistedTables() throws {
    guard hasWholeSchema, areFreePagesTold, trees.contains(where: \.isMissingTable), map.pageCount >= 2 else { return }
    var buffer = reader.makeBuffer()
    for page in 2...map.pageCount where map.fate(page) == .unclaimed && map.fieldCount(page) > 0 {
      guard map.look(page) == .tableLeaf || map.look(page) == .indexLeaf else { continue }
      let tied = try ties(for: page, &buffer) { !trees[$0].isDropped }
      // Index entries resemble rows without rowids.
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

  private func isKnown(_ page: UInt32, to tied: [Int]) throws -> Bool {
    for tree in tied where trees[tree].isListed {
      if try isObsolete(page, of: tree) { return true }
    }
    return false
  }

  /// Notes whether leftover pages with rows reveal an unknown table.
  mutating func noteUnknownTable() throws {
    guard areFreePagesTold else { return }
    var buffer = reader.makeBuffer()
    for page in unplaced where !lacksUnknownTable {
      let tied = try ties(for: page, &buffer) { !trees[$0].isDropped }
      lacksUnknownTable = !tied.contains { !trees[$0].isComplete }
    }
  }

  /// Whether an orphan page without rowids may have rows of a table rather than index entries.
  ///
  /// It has entries if it resembles an unlisted index of the model, or a table has the rows that they name.
  func mayHaveUnknownRows(_ page: UInt32) throws -> Bool {
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
  /// Whether it is a table of the model that the whole schema table lacks.
  var isMissingTable: Bool { !isListed && !isDropped && !isKnownByRows && kind != .index && isWalked && root == 0 }
}

extension Crawl {
  private static let profilePages = 24

  /// The table chosen for a page with rowids, and whether more than likeness supports it.
  struct Assignment {
    var tree: Int
    var isProven: Bool
  }

  /// Picks the table of a page with rowids; nil where undecidable.
  ///
  /// Evidence in order: storage classes and value count, pointer maps, index entries, and last likeness, which proves
  /// no ownership.
  ///
  /// - Parameter candidates: the tables that fit by keys and declarations.
  mutating func assign(
    _ page: UInt32, among candidates: [(tree: Int, fit: PageFit)], _ buffer: inout [UInt8]
  ) throws -> Assignment? {
    let tier = candidates.map(\.fit.tier).min()
    var left = candidates.filter { $0.fit.tier == tier }
    guard left.count > 1 else {
      guard let only = left.first else { return nil }
      // SQLite stores almost any class in any column: odd values only make a table less likely.
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

  /// Whether the only fitting table is proven: no other exists, the page fills a gap, or indexes have its rows.
  private mutating func isTold(_ page: UInt32, _ tree: Int, isShort: Bool) throws -> Bool {
    if hasAllTables { return !isShort || hasShortRows(tree) }
    let isBetween = trees[tree].gaps.contains { gap in
      gap.above != .min && gap.upTo != .max && gap.above < map.firstKey(page) && map.lastKey(page) <= gap.upTo
    }
    if isBetween, !isShort { return true }
    return try indexAgreement(of: page, with: tree) == .agreeing
  }

  /// The candidate with the most similar values; compares foreign keys alone for tables without known pages.
  private mutating func likeliest(
    _ page: UInt32, among candidates: [Int], _ buffer: inout [UInt8]
  ) throws -> Int? {
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
    // A page unlike every known table belongs to the only unknown one.
    if hasAllTables, untold.count == 1, let best = shares.first, best.share < 0.6 { return untold.first }
    return nil
  }

  func ties(
    for page: UInt32, _ buffer: inout [UInt8], where isWanted: (Int) -> Bool
  ) throws -> [Int] {
    let fits = try fits(of: page, &buffer, where: isWanted)
    guard let best = fits.map(\.fit.rank).max() else { return [] }
    return fits.filter { best - $0.fit.rank < 0.2 }.map(\.tree)
  }

  private mutating func mappedTree(of page: UInt32) throws -> Int? {
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

  private func profile(of tree: Int, _ buffer: inout [UInt8]) throws -> TableProfile {
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

  /// The referenced table, by foreign key or by the entity number in names of join table columns (`Z_2BOOKS`).
  private func referredTree(_ column: ColumnDefinition, of table: String) -> Int? {
    if let name = column.referencedTable {
      return trees.firstIndex { $0.kind == .table && isSame($0.name, name) }
    }
    guard table.uppercased().hasPrefix("Z_"), column.name.uppercased().hasPrefix("Z_"),
      let number = Int64(column.name.dropFirst(2).prefix { $0.isASCII && $0.isNumber })
    else { return nil }
    return trees.firstIndex { tree in
      tree.shape.entityNumbers.map { $0.contains(number) && $0.count < 8000 } ?? false
    }
  }

  private func keyRange(of tree: Int) -> ClosedRange<Int64>? {
    guard let leaves = claimed[tree], let first = leaves.first, let last = leaves.last else { return nil }
    let low = map.firstKey(first)
    let high = map.lastKey(last)
    return low <= high && low > 0 ? low...high : nil
  }
}
