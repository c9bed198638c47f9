import SQLiteFormat

/// Finds swapped overflow pages of incomplete long values for `PageReader.moved`.
struct SwapSearch {
  let context: RowContext

  /// The next overflow pages by the pointer maps.
  private var successors: [UInt32: UInt32] = [:]

  /// The pages still needed from each page of a broken chain on.
  private var needed: [UInt32: Int] = [:]

  /// The pages with a link to a page.
  private var leadingTo: [UInt32: [UInt32]] = [:]

  private var reader: PageReader { context.reader }

  init(_ context: RowContext) { self.context = context }

  private struct Link {
    var page: UInt32

    /// The pages still needed, including this one.
    var needed: Int
  }

  /// Finds swapped overflow pages; returns whether any exists.
  ///
  /// SQLite allocates ascending pages, so a chain mostly continues with the next number. A page with another link is
  /// foreign; its own content links to that number and has the right number of successors.
  mutating func run(_ broken: [FoundRow]) throws -> Bool {
    try readSuccessors()
    var chains: [[Link]] = []
    (needed, leadingTo) = ([:], [:])
    for row in broken {
      let links = try links(of: row.cell)
      chains.append(links)
      for link in links { needed[link.page] = link.needed }
    }
    for page in needed.keys.sorted() + context.abandonedPages() {
      if let next = try next(of: page) { leadingTo[next, default: []].append(page) }
    }
    var found = false
    for links in chains { if try exchangeFirst(of: links) { found = true } }
    return found
  }

  /// Exchanges a chain's first foreign page.
  private func exchangeFirst(of links: [Link]) throws -> Bool {
    for link in links where reader.moved[link.page] == nil {
      guard let other = try partner(of: link) else { continue }
      reader.moved[link.page] = other
      if reader.moved[other] == nil { reader.moved[other] = link.page }
      // The place of a tree's page has a chain's page: no damage.
      if context.crawl.map.fate(other) == .damaged { context.crawl.map.claim(other, .unclaimed) }
      return true
    }
    return false
  }

  private mutating func readSuccessors() throws {
    let maps = try PointerMaps(reader)
    let last = context.crawl.map.pageCount
    guard successors.isEmpty, maps.isThere, last >= 2 else { return }
    for page in 2...last where successors.count < PendingRows.limit {
      guard let entry = try maps.entry(for: page), entry.kind == .overflowNext else { continue }
      successors[entry.parent] = page
    }
  }

  /// Returns the place of the content of an apparently foreign page.
  private func partner(of link: Link) throws -> UInt32? {
    let here = try next(of: link.page)
    let natural = link.needed > 1 ? successors[link.page] ?? link.page + 1 : 0
    // A page with the right link is not foreign.
    if let here, here == natural, link.needed > 1 { return nil }
    if let here, here > 2, here - 1 != link.page, reader.moved[here - 1] == nil, let there = try next(of: here - 1) {
      // Each content has the other place's link: they were swapped.
      if link.needed > 1, there == natural { return here - 1 }
      if link.needed == 1, there == 0, needed[here - 1].map({ $0 > 1 }) ?? true, try !isCopy(link.page, of: here - 1) {
        return here - 1
      }
    }
    if here == 0, link.needed > 1 {
      let leading = (leadingTo[natural] ?? []).filter { $0 != link.page && reader.moved[$0] == nil }
      if leading.count == 1, let other = leading.first, needed[other].map({ $0 == 1 }) ?? true { return other }
    }
    return try bestPartner(of: link, here: here, natural: natural)
  }

  /// Returns the best-fitting page that may have been swapped.
  ///
  /// - Parameters:
  ///   - here: the link of the content in place.
  ///   - natural: the expected link.
  private func bestPartner(of link: Link, here: UInt32?, natural: UInt32) throws -> UInt32? {
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

  /// Whether one page was overwritten with the other, so neither was swapped.
  private func isCopy(_ page: UInt32, of other: UInt32) throws -> Bool {
    var buffer = reader.makeBuffer()
    var another = reader.makeBuffer()
    guard try reader.readPlace(page, into: &buffer), try reader.readPlace(other, into: &another) else { return false }
    return buffer == another
  }

  private func links(of cell: LeafCell) throws -> [Link] {
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

  /// Returns 0 at the end; nil if it is no overflow page.
  private func next(of page: UInt32) throws -> UInt32? {
    let place = reader.moved[page] ?? page
    guard context.crawl.map.look(place) == .linked else { return nil }
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(place, into: &buffer) else { return nil }
    return buffer.span.uint32(at: 0)
  }

  /// Returns the number of pages to the chain's end; nil for an endless or broken chain.
  private func length(from page: UInt32) throws -> Int? {
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

/// Exchanges chain tails that fit each other's place much better.
struct ChainEndExchange {
  /// Each suspect keeps a page in memory.
  private static let maximumSuspects = 256

  /// The minimum gain of an exchange, and its lead over any other.
  private static let leastGain = 0.3
  private static let leastLead = 0.1

  let context: RowContext

  let statistics: TextStatistics

  let traits: ChainTraits

  /// The digests of tails in more than one place.
  let copies: Set<UInt64>

  private var reader: PageReader { context.reader }

  private struct Offer {
    /// The other row; nil for a page without one.
    var other: Int?

    var place: UInt32

    /// The improvement for both rows.
    var gain: Double
    var mine: ChainEnd.Judgement
    var theirs: ChainEnd.Judgement?
  }

  private struct Suspect {
    var row: Int

    /// Empty for a copy, which has no other origin.
    var content: [UInt8]

    /// The best exchange, and the gain of the second best.
    var best: Offer?
    var secondGain = 0.0

    mutating func consider(_ offer: Offer) {
      if offer.gain > best?.gain ?? 0 {
        secondGain = best?.gain ?? 0
        best = offer
      } else {
        secondGain = max(secondGain, offer.gain)
      }
    }
  }

  func run(_ waiting: inout [WaitingRow]) throws -> Bool {
    var suspects = try suspects(among: waiting)
    guard !suspects.isEmpty else { return false }
    var buffer = reader.makeBuffer()
    let ends = waiting.indices.map { (page: waiting[$0].end.page, row: Int?.some($0)) }
    for (page, row) in ends + context.abandonedPages().map({ ($0, nil) }) where reader.moved[page] == nil {
      guard try reader.readPlace(page, into: &buffer), row != nil || buffer.span.uint32(at: 0) == 0,
        !copies.contains(context.digest(ofPage: buffer))
      else { continue }
      consider(page, buffer, of: row, waiting, &suspects)
    }
    return exchange(suspects, &waiting)
  }

  private func suspects(among waiting: [WaitingRow]) throws -> [Suspect] {
    let rows = waiting.indices.filter { waiting[$0].isSuspect && reader.moved[waiting[$0].end.page] == nil }
      .sorted { waiting[$0].judgement.value < waiting[$1].judgement.value }
      .prefix(Self.maximumSuspects)
    return try rows.map { row in
      var buffer = reader.makeBuffer()
      _ = try reader.read(waiting[row].end.page, into: &buffer)
      return Suspect(row: row, content: copies.contains(context.digest(ofPage: buffer)) ? [] : buffer)
    }
  }

  /// Tries a content for all suspects.
  ///
  /// - Parameter other: the row that has it now.
  private func consider(
    _ place: UInt32, _ content: [UInt8], of other: Int?, _ waiting: [WaitingRow], _ suspects: inout [Suspect]
  ) {
    for number in suspects.indices where suspects[number].row != other {
      let suspect = suspects[number]
      let row = waiting[suspect.row]
      let mine = row.end.judge(content, statistics, traits)
      guard mine.isGood else { continue }
      var offer = Offer(other: other, place: place, gain: mine.value - row.judgement.value, mine: mine)
      if let other {
        guard let theirs = judge(suspect.content, at: waiting[other]) else { continue }
        offer.gain += theirs.value - waiting[other].judgement.value
        offer.theirs = theirs
      }
      suspects[number].consider(offer)
    }
  }

  /// Returns how well a suspect's content fits another row.
  private func judge(_ content: [UInt8], at other: WaitingRow) -> ChainEnd.Judgement? {
    guard !content.isEmpty else { return nil }
    let judged = other.end.judge(content, statistics, traits)
    // Content that fits its place well came from no other.
    guard !other.judgement.isGood || judged.value >= other.judgement.value,
      judged.isGood || judged.value >= other.judgement.value
    else { return nil }
    return judged
  }

  private func exchange(_ suspects: [Suspect], _ waiting: inout [WaitingRow]) -> Bool {
    var isChanged = false
    for suspect in suspects.sorted(by: { ($0.best?.gain ?? 0) > ($1.best?.gain ?? 0) }) {
      let page = waiting[suspect.row].end.page
      guard let offer = suspect.best, offer.gain >= Self.leastGain,
        offer.gain - suspect.secondGain >= Self.leastLead || isMutual(offer, suspect, suspects),
        reader.moved[page] == nil, reader.moved[offer.place] == nil
      else { continue }
      reader.moved[page] = offer.place
      reader.moved[offer.place] = page
      waiting[suspect.row].judgement = offer.mine
      if let other = offer.other, let theirs = offer.theirs { waiting[other].judgement = theirs }
      context.crawl.map.claim(offer.place, .overflow, owner: waiting[suspect.row].row.tree)
      isChanged = true
    }
    return isChanged
  }

  /// Whether each row is the other's best match.
  private func isMutual(_ offer: Offer, _ suspect: Suspect, _ suspects: [Suspect]) -> Bool {
    guard let other = offer.other, let theirs = suspects.first(where: { $0.row == other }) else { return false }
    return theirs.best?.other == suspect.row
  }
}

/// An assembled row with a long value, checked again before it is written because pages of the store changed places.
struct WaitingRow {
  var row: FoundRow

  var end: ChainEnd

  /// The assessment of the present content.
  var judgement = ChainEnd.Judgement(share: 0.5, isBroken: false)

  var doubt: String?

  /// Whether other content may fit better; random bytes fit nowhere.
  var isSuspect: Bool { judgement.isBad || !judgement.isGood && end.fields.contains { $0.isText } }
}
