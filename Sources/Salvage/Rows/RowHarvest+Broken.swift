internal import SQLiteFormat

/// A row whose long value could not be put together at the first try.
struct BrokenRow {
  /// How many are kept at most.
  static let limit = 1 << 17

  var tree: Int
  var page: UInt32
  var cell: LeafCell

  /// Why the row is doubtful; nil where it is not.
  var doubtReason: DoubtReason?
}

extension RowHarvest {
  /// Tries rows again whose long values could not be put together, after looking for overflow pages that stand at each
  /// other's places.
  func harvestBroken() throws(SalvageError) {
    try settleRivals()
    for _ in 0..<8 where !broken.isEmpty {
      guard try resolveSwaps() else { break }
      try retry()
      try settleRivals()
    }
    try settleWaiting()
    isDeferring = false
    try retry()
    try settleRivals()
    try settleWaiting()
    chains.isDecided = true
  }

  private func retry() throws(SalvageError) {
    let rows = broken
    broken = []
    var buffer = reader.makeBuffer()
    var payload: [UInt8] = []
    var page: UInt32 = 0
    for row in rows {
      if row.page != page {
        guard try reader.readPlace(row.page, into: &buffer) else { continue }
        page = row.page
      }
      try writeLate(row, buffer.span, &payload)
    }
  }

  /// A page in a broken chain.
  private struct Link {
    /// The number of the page.
    var page: UInt32

    /// How many pages the chain still needs, this one included.
    var needed: Int
  }

  /// Finds pairs of overflow pages that changed places.
  ///
  /// SQLite takes new pages in ascending order, so a page of a chain mostly leads to the one with the next number. A page
  /// whose content leads somewhere else is foreign; its own content is found where a page leads to that next number and
  /// has the right number of pages behind it.
  private func resolveSwaps() throws(SalvageError) -> Bool {
    try readSuccessors()
    var chainsOfRows: [[Link]] = []
    var needed: [UInt32: Int] = [:]
    for row in broken {
      let links = try links(of: row.cell)
      chainsOfRows.append(links)
      for link in links { needed[link.page] = link.needed }
    }
    var leadingTo: [UInt32: [UInt32]] = [:]
    for page in needed.keys.sorted() + abandonedPages() {
      if let next = try next(of: page) { leadingTo[next, default: []].append(page) }
    }
    var found = false
    for links in chainsOfRows {
      for link in links where reader.moved[link.page] == nil {
        guard let other = try partner(of: link, needed: needed, leadingTo: leadingTo) else { continue }
        reader.moved[link.page] = other
        if reader.moved[other] == nil { reader.moved[other] = link.page }
        // What stands where a page of a tree should be is no damage, but the page of a chain.
        if crawl.map.fate(other) == .damaged { crawl.map.claim(other, .unclaimed) }
        found = true
        break
      }
    }
    return found
  }

  /// Reads from the pointer maps, where there are any, which overflow page follows which.
  private func readSuccessors() throws(SalvageError) {
    let maps = try PointerMaps(reader)
    guard successors.isEmpty, maps.isThere, crawl.map.pageCount >= 2 else { return }
    for page in 2...crawl.map.pageCount where successors.count < BrokenRow.limit {
      guard let entry = try maps.entry(for: page), entry.kind == .overflowNext else { continue }
      successors[entry.parent] = page
    }
  }

  /// The pages that look like overflow and belong to no one.
  func abandonedPages() -> [UInt32] {
    guard crawl.map.pageCount >= 2 else { return [] }
    var pages: [UInt32] = []
    for page in 2...crawl.map.pageCount where crawl.map.look(page) == .linked {
      switch crawl.map.fate(page) {
      case .unclaimed, .damaged: pages.append(page)
      default: continue
      }
      if pages.count >= BrokenRow.limit { break }
    }
    return pages
  }

  /// Where the content of a page is that stands in a chain and seems to be foreign there.
  private func partner(
    of link: Link, needed: [UInt32: Int], leadingTo: [UInt32: [UInt32]]
  ) throws(SalvageError) -> UInt32? {
    let here = try next(of: link.page)
    let natural = link.needed > 1 ? successors[link.page] ?? link.page + 1 : 0
    // What leads where it should is no foreign page.
    if let here, here == natural, link.needed > 1 { return nil }
    if let here, here > 2, here - 1 != link.page, reader.moved[here - 1] == nil, let there = try next(of: here - 1) {
      // What stands here leads on from there, and what stands there leads on from here: they are each other's.
      if link.needed > 1, there == natural { return here - 1 }
      if link.needed == 1, there == 0, needed[here - 1].map({ $0 > 1 }) ?? true, try !isCopy(link.page, of: here - 1) {
        return here - 1
      }
    }
    if here == 0, link.needed > 1 {
      let leading = (leadingTo[natural] ?? []).filter { $0 != link.page && reader.moved[$0] == nil }
      if leading.count == 1, let other = leading.first, needed[other].map({ $0 == 1 }) ?? true { return other }
    }
    var candidates: [UInt32] = []
    if let here, here > 2 { candidates.append(here - 1) }
    if link.needed > 1 { candidates += leadingTo[natural] ?? [] }
    var best: (page: UInt32, score: Int)?
    for other in Set(candidates).sorted() where other != link.page && reader.moved[other] == nil {
      guard try length(from: other) == link.needed, try !isCopy(link.page, of: other) else { continue }
      var score = try next(of: other) == natural ? 1 : 0
      if let theirs = needed[other] {
        guard try length(from: link.page) == theirs else { continue }
        score += here == (theirs > 1 ? other + 1 : 0) ? 2 : 1
      }
      if score > best?.score ?? 0 { best = (other, score) }
    }
    return best?.page
  }

  /// Whether two pages have the same content: then neither has the other's place, and one was written over.
  private func isCopy(_ page: UInt32, of other: UInt32) throws(SalvageError) -> Bool {
    var buffer = reader.makeBuffer()
    var another = reader.makeBuffer()
    guard try reader.readPlace(page, into: &buffer), try reader.readPlace(other, into: &another) else { return false }
    return buffer == another
  }

  /// The pages of a row's chain as far as it goes.
  private func links(of cell: LeafCell) throws(SalvageError) -> [Link] {
    let perPage = reader.usableSize - 4
    var rest = (cell.length - cell.local + perPage - 1) / perPage
    var page = cell.overflow
    var links: [Link] = []
    while rest > 0, page >= 2, page <= reader.pageCount, links.count < 4096 {
      links.append(Link(page: page, needed: rest))
      guard let next = try next(of: page) else { break }
      page = next
      rest -= 1
    }
    return links
  }

  /// The page that the content at a page's place leads to, 0 for none; nil where it is no overflow page.
  private func next(of page: UInt32) throws(SalvageError) -> UInt32? {
    let place = reader.moved[page] ?? page
    guard crawl.map.look(place) == .linked else { return nil }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(place, into: &buffer) else { return nil }
    return buffer.span.uint32(at: 0)
  }

  /// The number of pages from a page to the end of its chain; nil where it has none.
  private func length(from page: UInt32) throws(SalvageError) -> Int? {
    var page = page
    var count = 0
    while count < 65536 {
      guard let next = try next(of: page) else { return nil }
      count += 1
      if next == 0 { return count }
      guard next <= reader.pageCount else { return nil }
      page = next
    }
    return nil
  }
}
