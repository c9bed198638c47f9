extension Crawl {
  /// Assigns orphan pages known from a recovery kit.
  ///
  /// A page with a checksum in the kit is certain, wherever it stands. Another page in a listed place is assigned if
  /// its rows fit the table and are missing there.
  mutating func placeByKit(_ kit: RecoveryKit) throws {
    guard map.pageCount >= 1 else { return }
    var owners: [UInt32: Int] = [:]
    var bySum: [UInt32: [(tree: Int, page: UInt32)]] = [:]
    for table in kit.tables {
      guard let tree = trees.firstIndex(where: { $0.kind != .index && isSame($0.name, table.name) }),
        trees[tree].hasRowids == table.hasRowids
      else { continue }
      for (place, page) in table.leaves.enumerated() where page <= map.pageCount {
        owners[page] = tree
        if table.sums.indices.contains(place) { bySum[table.sums[place], default: []].append((tree, page)) }
      }
    }
    var buffer = reader.makeBuffer()
    for page in 1...map.pageCount where map.fate(page) == .unclaimed {
      let look = map.look(page)
      guard look == .tableLeaf || look == .indexLeaf || look == .indexInterior,
        try reader.readPlace(page, into: &buffer)
      else { continue }
      let found = bySum.isEmpty ? nil : bySum[RecoveryKit.sum(of: buffer)]
      if let known = found?.first(where: { trees[$0.tree].hasRowids == (look == .tableLeaf) }) {
        if known.page != page, try isThere(known.page, buffer) {
          bury(page)
          continue
        }
        take(page, for: known.tree)
        if known.page != page, reader.moved[known.page] == nil { reader.moved[known.page] = page }
      } else if let tree = owners[page], trees[tree].hasRowids, look == .tableLeaf, map.fieldCount(page) > 0,
        try choice(for: page, &buffer, where: { $0 == tree }) != nil,
        !overlaps(tree, map.firstKey(page), map.lastKey(page))
      {
        take(page, for: tree)
      }
    }
    for tree in trees.indices where trees[tree].hasRowids {
      claimed[tree] = map.sorted(trees[tree].leaves)
    }
  }

  private mutating func take(_ page: UInt32, for tree: Int) {
    map.claim(page, .placed, owner: tree)
    if map.look(page) == .indexInterior {
      trees[tree].innerPages.append(page)
    } else {
      trees[tree].leaves.append(page)
    }
  }

  private func isThere(_ page: UInt32, _ bytes: [UInt8]) throws -> Bool {
    switch map.fate(page) {
    case .tree, .placed: break
    case .unclaimed, .damaged, .overflow, .free, .special, .dead: return false
    }
    var other = reader.makeBuffer()
    return try reader.readPlace(page, into: &other) && other == bytes
  }
}
