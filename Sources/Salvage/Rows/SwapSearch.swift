import SQLiteFormat

/// Finds overflow pages that stand at each other's places, from the rows whose long values could not be put together.
///
/// In: those rows. Out: in `PageReader.moved`, which page stands where.
struct SwapSearch {
  let context: RowContext

  /// Which overflow page follows which, by the pointer maps.
  private var successors: [UInt32: UInt32] = [:]

  private var reader: PageReader { context.reader }

  init(_ context: RowContext) { self.context = context }

  private struct Link {
    /// The number of the page.
    var page: UInt32

    /// How many pages the chain still needs, this one included.
    var needed: Int
  }

  /// What the pages that are not where they should be lead to.
  private struct Links {
    /// How many pages the chain still needs at each page of a broken chain, that page included.
    var needed: [UInt32: Int] = [:]

    /// The pages that lead to each page.
    var leadingTo: [UInt32: [UInt32]] = [:]
  }

  /// Finds pairs of overflow pages that changed places; whether there was any.
  ///
  /// SQLite takes new pages in ascending order, so a page of a chain mostly leads to the one with the next number. A page
  /// whose content leads somewhere else is foreign; its own content is found where a page leads to that next number and
  /// has the right number of pages behind it.
  mutating func run(_ broken: [FoundRow]) throws(SalvageError) -> Bool {
    try readSuccessors()
    var chains: [[Link]] = []
    var all = Links()
    for row in broken {
      let links = try links(of: row.cell)
      chains.append(links)
      for link in links { all.needed[link.page] = link.needed }
    }
    for page in all.needed.keys.sorted() + context.abandonedPages() {
      if let next = try next(of: page) { all.leadingTo[next, default: []].append(page) }
    }
    var found = false
    for links in chains {
      if try exchangeFirst(of: links, all) { found = true }
    }
    return found
  }

  /// Exchanges the first page of a chain that is foreign there; whether one was.
  private func exchangeFirst(of links: [Link], _ all: Links) throws(SalvageError) -> Bool {
    for link in links where reader.moved[link.page] == nil {
      guard let other = try partner(of: link, all) else { continue }
      reader.moved[link.page] = other
      if reader.moved[other] == nil { reader.moved[other] = link.page }
      // What stands where a page of a tree should be is no damage, but the page of a chain.
      if context.crawl.map.fate(other) == .damaged { context.crawl.map.claim(other, .unclaimed) }
      return true
    }
    return false
  }

  /// Reads from the pointer maps, where there are any, which overflow page follows which.
  private mutating func readSuccessors() throws(SalvageError) {
    let maps = try PointerMaps(reader)
    let last = context.crawl.map.pageCount
    guard successors.isEmpty, maps.isThere, last >= 2 else { return }
    for page in 2...last where successors.count < PendingRows.limit {
      guard let entry = try maps.entry(for: page), entry.kind == .overflowNext else { continue }
      successors[entry.parent] = page
    }
  }

  /// Where the content of a page is that stands in a chain and seems to be foreign there.
  private func partner(of link: Link, _ all: Links) throws(SalvageError) -> UInt32? {
    let here = try next(of: link.page)
    let natural = link.needed > 1 ? successors[link.page] ?? link.page + 1 : 0
    // What leads where it should is no foreign page.
    if let here, here == natural, link.needed > 1 { return nil }
    if let here, here > 2, here - 1 != link.page, reader.moved[here - 1] == nil, let there = try next(of: here - 1) {
      // What stands here leads on from there, and what stands there leads on from here: they are each other's.
      if link.needed > 1, there == natural { return here - 1 }
      if link.needed == 1, there == 0, all.needed[here - 1].map({ $0 > 1 }) ?? true,
        try !isCopy(link.page, of: here - 1)
      {
        return here - 1
      }
    }
    if here == 0, link.needed > 1 {
      let leading = (all.leadingTo[natural] ?? []).filter { $0 != link.page && reader.moved[$0] == nil }
      if leading.count == 1, let other = leading.first, all.needed[other].map({ $0 == 1 }) ?? true { return other }
    }
    return try bestPartner(of: link, here: here, natural: natural, all)
  }

  /// Of the pages that may have changed places with one, the one that fits best.
  ///
  /// - Parameters:
  ///   - here: what the content at the page's place leads to.
  ///   - natural: what its own content should lead to.
  private func bestPartner(
    of link: Link, here: UInt32?, natural: UInt32, _ all: Links
  ) throws(SalvageError) -> UInt32? {
    var candidates: [UInt32] = []
    if let here, here > 2 { candidates.append(here - 1) }
    if link.needed > 1 { candidates += all.leadingTo[natural] ?? [] }
    var best: (page: UInt32, score: Int)?
    for other in Set(candidates).sorted() where other != link.page && reader.moved[other] == nil {
      guard try length(from: other) == link.needed, try !isCopy(link.page, of: other) else { continue }
      var score = try next(of: other) == natural ? 1 : 0
      if let theirs = all.needed[other] {
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
    guard context.crawl.map.look(place) == .linked else { return nil }
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
