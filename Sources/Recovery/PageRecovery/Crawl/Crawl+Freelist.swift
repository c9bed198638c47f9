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
