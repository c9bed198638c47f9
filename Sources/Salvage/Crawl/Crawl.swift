internal import SQLiteFormat

/// Assigns pages to tables: first by walking the trees, then by evidence.
///
/// A tree owns the pages that it claims; an orphan page goes to a table only on decisive evidence.
struct Crawl {
  let reader: PageReader
  var map: PageMap
  var trees: [Tree]

  /// Pages that fit no table, or several equally well.
  var unplaced: [UInt32] = []

  /// The leaves below orphan interior pages, identified by content alone.
  var ofFragments = PageSet()

  /// The leaves in each tree, sorted by key.
  var claimed: [Int: [UInt32]] = [:]

  var dead: [UInt32] = []

  /// Leaves of an unfinished transaction: past the header's end of the database and, if any exist, orphans within it.
  var pagesBehindEnd: [UInt32] = []

  /// The tables with such leaves, any row of which may be uncommitted.
  var unfinishedTrees: Set<Int> = []

  var profiles: [Int: TableProfile] = [:]

  var indexedValues: [Int: [IndexedValues]] = [:]

  /// Pages in several trees, with these trees' indices.
  private(set) var contested: [UInt32: Set<Int>] = [:]

  var firstWalk = FirstWalk()

  /// Pages assigned by likeness alone.
  var likened = PageSet()

  var strangers = MisplacedPages()

  /// Tables that were given the roots of others, as their indexes have it.
  var exchanged: [Int] = []

  /// Tables that may have the rows of others, as indexes have it.
  var disputed: Set<Int> = []

  /// Table leaves with keys outside their parent's range.
  var outsideSpan = PageSet()

  var contradictions = Contradictions()

  var pointerMaps: PointerMaps?

  /// The header's last page, if the file is longer and no tree leads past it.
  var endOfDatabase = UInt32.max

  /// Whether each leaf is compared with its table, because of known damage.
  var isThorough = false

  /// Whether only the listed trees can have rows.
  var hasAllTables = true

  /// Whether the store's schema lists all tables, so that a tree without gaps has all rows.
  var hasWholeSchema = true

  /// Whether the header's freelist is trusted.
  var isFreelistSound = true

  /// Whether every free page is on the freelist, by the header's count.
  var isFreelistWhole = false

  /// Whether pages reveal a table missing from both schema and model.
  var lacksUnknownTable = false

  /// Tables of the model with pages but no row in a seemingly whole schema table.
  var unlistedTrees: Set<Int> = []

  var trunks = PageSet()

  /// The number of pages on the freelist.
  var freeCount = 0

  /// The header's free page count; nil if lost or impossible.
  var statedFreeCount: Int?

  /// Whether orphan pages may be free, as a part of the freelist is missing.
  var mayBeFree: Bool { statedFreeCount.map { $0 > freeCount } ?? false }

  var kit: RecoveryKit?

  /// The depth that no SQLite b-tree exceeds.
  static let maximumDepth = 20

  /// Whether a page is identified by its content alone.
  func isByContent(_ page: UInt32) -> Bool { map.fate(page) == .placed || ofFragments.contains(page) }

  /// The number of gaps in listed trees.
  var damage: Int { trees.reduce(0) { $0 + ($1.isListed ? $1.gaps.count : 0) } }

  /// Whether the schema table leads to any leaf.
  var hasListedRows: Bool { trees.contains { $0.isListed && !$0.leaves.isEmpty } }

  /// Drops pages past the end by log or journal: a transaction was unfinished or shrank the file.
  mutating func buryCutOffPages() {
    guard let count = reader.overlay?.pageCount, count > 0, count < map.pageCount else { return }
    for page in (count + 1)...map.pageCount { bury(page) }
  }

  /// Drops pages past the header's end, like SQLite: transactions write new pages first and the new end last.
  ///
  /// If a tree leads there, the header is wrong and the pages count.
  mutating func dropPagesPastEnd() throws {
    guard reader.overlay == nil, let header = reader.layout.header, header.hasMagic, header.isPageCountValid,
      header.pageCount > 0, header.pageCount < map.pageCount
    else { return }
    let behind = (header.pageCount + 1)...map.pageCount
    let isReached = behind.contains { map.fate($0) == .tree || map.fate($0) == .free }
    var buffer = reader.makeBuffer()
    guard !isReached, try !isLedTo(behindPage: header.pageCount, &buffer) else { return }
    endOfDatabase = header.pageCount
    for page in behind where map.fate(page) == .unclaimed {
      if map.look(page) == .tableLeaf, map.fieldCount(page) > 0,
        let choice = try choice(for: page, &buffer, where: { trees[$0].definition != nil })
      {
        pagesBehindEnd.append(page)
        if choice.isDecisive { unfinishedTrees.insert(choice.tree) }
      }
      map.claim(page, .dead)
    }
  }

  private func isLedTo(behindPage end: UInt32, _ buffer: inout [UInt8]) throws -> Bool {
    let behind = (end + 1)...map.pageCount
    for tree in trees where tree.isListed {
      if tree.gaps.contains(where: { behind.contains($0.page) }) { return true }
    }
    // Without rows past the end, only an overflow chain can lead there.
    guard !behind.contains(where: { map.look($0) == .tableLeaf }) else { return false }
    var claims = OverflowClaims()
    for page in 1...end {
      let look = map.look(page)
      guard look == .linked || map.fate(page) == .tree, try reader.readPlace(page, into: &buffer) else { continue }
      if look == .linked {
        if let next = buffer.span.uint32(at: 0), next >= 2 { claims.add(next) }
      } else {
        let start = page == 1 ? DatabaseHeader.length : 0
        if let kind = PageKind(rawValue: buffer[start]) { claims.addCells(buffer.span, kind, start: start, reader) }
      }
    }
    return behind.contains { claims.isClaimed($0) }
  }

  /// Walks all trees with known roots; a root past the file's end leaves a gap for all keys.
  mutating func walkRoots() throws {
    for index in trees.indices where trees[index].rootBehindEnd > 0 && !trees[index].isWalked {
      trees[index].gaps.append(Tree.Gap(page: trees[index].rootBehindEnd, above: .min, upTo: .max))
    }
    for index in trees.indices where trees[index].root > 0 && !trees[index].isWalked {
      let root = trees[index].root
      trees[index].isWalked = true
      try walk(root, tree: index, above: .min, upTo: .max, depth: 0)
    }
  }

  /// Walks down from a page; misfits leave gaps.
  mutating func walk(
    _ page: UInt32, tree: Int, above low: Int64, upTo high: Int64, depth: Int
  ) throws {
    guard page > 0, page <= map.pageCount, map.fate(page) == .unclaimed, depth < Self.maximumDepth,
      page > 1 || !map.isFirstPageMisplaced, !strangers.contains(page, in: tree)
    else {
      noteContest(page, tree: tree, above: low, upTo: high)
      trees[tree].gaps.append(Tree.Gap(page: page, above: low, upTo: high))
      return
    }
    let hasRowids = trees[tree].hasRowids
    switch map.look(page) {
    case .tableLeaf where hasRowids, .indexLeaf where !hasRowids:
      guard fits(page, tree: tree, above: low, upTo: high) else { break }
      if isThorough, try !hasRows(page, of: tree) { break }
      map.claim(page, .tree, owner: tree)
      trees[tree].leaves.append(page)
      if hasRowids, map.fieldCount(page) > 0, map.firstKey(page) <= low && low != .min || map.lastKey(page) > high {
        _ = outsideSpan.insert(page)
      }
      return
    case .tableInterior where hasRowids, .indexInterior where !hasRowids:
      let node = try InnerPage(page, reader)
      guard !node.children.isEmpty, fits(page, tree: tree, above: low, upTo: high) else { break }
      // Cells of an index's interior page are entries too.
      if isThorough, !hasRowids, try !hasRows(page, of: tree) { break }
      map.claim(page, .tree, owner: tree)
      if !hasRowids { trees[tree].innerPages.append(page) }
      var below = low
      let known = trees[tree].gaps.count
      for (index, child) in node.children.enumerated() {
        let upper = hasRowids && index < node.keys.count ? node.keys[index] : high
        try walk(child, tree: tree, above: below, upTo: upper, depth: depth + 1)
        below = upper
      }
      // All leaves of a tree are at one depth.
      if trees[tree].gaps.count > known, node.children.contains(where: { isLeaf($0, of: tree) }) {
        trees[tree].noteLeaves(of: node, from: known)
      }
      if node.isDamaged { trees[tree].gaps.append(Tree.Gap(page: 0, above: low, upTo: high)) }
      return
    case .missing, .zero, .unknown, .tableLeaf, .tableInterior, .indexLeaf, .indexInterior, .broken, .linked: break
    }
    trees[tree].gaps.append(Tree.Gap(page: page, above: low, upTo: high))
  }

  private mutating func noteContest(_ page: UInt32, tree: Int, above low: Int64, upTo high: Int64) {
    guard map.fate(page) == .tree, let owner = map.owner(page), owner != tree, owner > 0,
      trees[owner].hasRowids, trees[tree].hasRowids, fits(page, tree: tree, above: low, upTo: high)
    else { return }
    contested[page, default: [owner]].insert(tree)
  }

  private func isLeaf(_ page: UInt32, of tree: Int) -> Bool {
    let look = map.look(page)
    return map.fate(page) == .tree && map.owner(page) == tree && (look == .tableLeaf || look == .indexLeaf)
  }

  /// Whether a page in a tree has its rows.
  ///
  /// True unless contradicted by unusual storage classes, or by short rows that exactly fit another, incomplete tree.
  func hasRows(_ page: UInt32, of tree: Int) throws -> Bool {
    guard map.fieldCount(page) > 0 else { return true }
    var buffer = reader.makeBuffer()
    let fits = try fits(of: page, &buffer) { _ in true }
    let own = fits.first { $0.tree == tree }?.fit
    if firstWalk.isOfAnother(than: tree, fits) { return false }
    if let own, !own.isUnusual { return true }
    guard let best = fits.max(by: { ($0.fit.rank, $1.tree) < ($1.fit.rank, $0.tree) }), best.tree != tree,
      fits.allSatisfy({ $0.tree == best.tree || best.fit.rank - $0.fit.rank >= 0.2 })
    else { return true }
    if !trees[tree].hasRowids, try hasEntries(page, of: tree, ratherThan: best.tree) { return true }
    if let own, firstWalk.isOrdinary(own.oddness, in: tree), firstWalk.odd[best.tree] == nil { return true }
    let isOther = !best.fit.isShort && !best.fit.isUnusual
    guard let own else {
      // Unusual classes weigh less than rows that don't fit the other table either.
      let start = page == 1 && buffer[0] != 13 && buffer[0] != 10 ? DatabaseHeader.length : 0
      return trees[tree].hasRowids && !isOther
        && PageScore.isFull(buffer.span, start: start, trees[tree].shape.ofAnyClass, geometry: reader.geometry)
    }
    // Without rowids, an index can resemble a table.
    return !isOther || best.fit.rank - own.rank < (trees[tree].hasRowids ? 1 : 0.25)
  }

  func fits(_ page: UInt32, tree: Int, above low: Int64, upTo high: Int64) -> Bool {
    let shape = trees[tree].shape
    if trees[tree].hasRowids {
      let first = map.firstKey(page)
      let last = map.lastKey(page)
      let isEmpty = first == 0 && last == 0 && map.fieldCount(page) == 0
      if map.look(page) == .tableLeaf, isEmpty, low != .min || high != .max { return false }
      // One of the two may be damaged; both out of range is another page.
      let isFirstIn = first > low && first <= high
      let isLastIn = last > low && last <= high
      if !isEmpty, !isFirstIn, !isLastIn { return false }
      if !isEmpty, isFirstIn != isLastIn, low != .min, high != .max, last - first > 0 {
        // A misplaced page that overlaps by chance has most rows outside.
        let inside = min(last, high).subtractingClamped(max(first, low.addingClamped(1)))
        let (span, overflow) = last.subtractingReportingOverflow(first)
        if overflow || inside < span / 2 { return false }
      }
    }
    let fields = map.fieldCount(page)
    guard fields > 0, fields < 255 else { return true }
    return fields <= shape.fields.count && fields >= shape.minimumFields
  }
}

struct InnerPage {
  /// The children in order, the right-most last; some may be past the end of a truncated file.
  var children: [UInt32] = []

  /// The largest rowid below each child but the last; empty without rowids.
  var keys: [Int64] = []

  var isDamaged = false

  init(_ number: UInt32, _ reader: PageReader) throws {
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(number, into: &buffer) else { return }
    let bytes = buffer.span
    let start = number == 1 && bytes[0] != 5 && bytes[0] != 2 ? DatabaseHeader.length : 0
    guard let kind = PageKind(rawValue: bytes[start]), !kind.isLeaf,
      PageSurvey.isPossible(bytes, kind, start, reader.usableSize)
    else { return }
    let stated = bytes.uint16(at: start + 3) ?? 0
    let accounted = Self.cellCount(bytes, kind, start, reader)
    isDamaged = accounted.map { $0 < stated } ?? true
    let count = max(stated, accounted ?? 0)
    let last = max(reader.statedPageCount, Self.isInOrder(bytes, kind, start, count, reader) ? Self.highestPage : 0)
    var previous = Int64.min
    for index in 0..<count {
      guard var offset = bytes.uint16(at: start + 12 + 2 * index), offset >= start + 12,
        offset <= reader.usableSize - 5,
        let child = bytes.uint32(at: offset), child > 0, child <= last
      else {
        isDamaged = true
        continue
      }
      if kind == .tableInterior {
        offset += 4
        guard let key = Varint.read(bytes, at: &offset, before: reader.usableSize), key > previous || index == 0 else {
          isDamaged = true
          continue
        }
        previous = key
        keys.append(key)
      }
      children.append(child)
    }
    if let right = bytes.uint32(at: start + 8), right > 0, right <= last {
      children.append(right)
    } else {
      isDamaged = true
    }
  }

  /// The cell count that accounts for every used byte, if any.
  private static func cellCount(_ bytes: Span<UInt8>, _ kind: PageKind, _ start: Int, _ reader: PageReader) -> Int? {
    let free = LeafCellScan.freeBytes(bytes, start, start + kind.headerLength, reader.geometry)
    guard free >= 0 else { return nil }
    var used = 0
    var count = 0
    while used + free < reader.usableSize {
      let pointer = start + kind.headerLength + 2 * count
      guard let offset = bytes.uint16(at: pointer), offset >= pointer + 2,
        let cell = Cell(bytes, kind: kind, at: offset, geometry: reader.geometry)
      else { return nil }
      used += cell.length
      count += 1
    }
    return used + free == reader.usableSize ? count : nil
  }

  /// The highest plausible number of a missing page.
  static let highestPage: UInt32 = 1 << 31

  /// Whether all cells are well-formed; then a child past the end of the file is a missing page rather than a damaged
  /// cell.
  private static func isInOrder(
    _ bytes: Span<UInt8>, _ kind: PageKind, _ start: Int, _ count: Int, _ reader: PageReader
  ) -> Bool {
    func isChild(_ page: UInt32?) -> Bool { page.map { $0 > 1 && $0 <= highestPage } ?? false }
    guard isChild(bytes.uint32(at: start + 8)) else { return false }
    var previous = Int64.min
    for index in 0..<count {
      guard var offset = bytes.uint16(at: start + 12 + 2 * index), offset >= start + 12,
        offset <= reader.usableSize - 5, isChild(bytes.uint32(at: offset))
      else { return false }
      guard kind == .tableInterior else { continue }
      offset += 4
      guard let key = Varint.read(bytes, at: &offset, before: reader.usableSize), key > previous || index == 0 else {
        return false
      }
      previous = key
    }
    return true
  }
}

/// Pages past the end of the file.
///
/// The header's page count may be damaged, or that of the truncated file.
extension Crawl {
  /// Whether a tree leads past the end of the file, and no found page fills the place.
  func lacksPagesBehindEnd(of index: Int) -> Bool {
    let tree = trees[index]
    guard tree.isListed else { return false }
    if tree.rootBehindEnd > 0, !tree.isWalked { return !isOnlyRootMisnamed(index) }
    let gaps = tree.gaps.filter { $0.page > map.pageCount && reader.moved[$0.page] == nil }
    guard !gaps.isEmpty else { return false }
    let placed = tree.leaves.filter { map.fate($0) == .placed }
    guard tree.hasRowids else { return gaps.count > placed.count }
    return gaps.contains { gap in
      !placed.contains { map.firstKey($0) > gap.above && map.lastKey($0) <= gap.upTo }
    }
  }

  /// Whether only a wrong root in the schema table leads past the end.
  private func isOnlyRootMisnamed(_ index: Int) -> Bool {
    guard trees[index].leaves.contains(where: { map.fate($0) == .placed || map.fate($0) == .tree }),
      let header = reader.layout.header, header.hasMagic, header.isPageCountValid,
      reader.statedPageCount == map.pageCount
    else { return false }
    return trees.indices.allSatisfy { other in
      other == index || !trees[other].isListed || !trees[other].gaps.contains { $0.page > map.pageCount }
    }
  }

  func pagesLackedBehindEnd() -> [UInt32] {
    var pages: Set<UInt32> = []
    for index in trees.indices where lacksPagesBehindEnd(of: index) {
      for gap in trees[index].gaps where gap.page > map.pageCount && reader.moved[gap.page] == nil {
        pages.insert(gap.page)
      }
    }
    return pages.sorted()
  }

  /// Whether all other pages are free or special, so that no unlisted table had any.
  var hasFreePagesOnly: Bool {
    guard isFreelistSound, unplaced.isEmpty, dead.isEmpty, reader.statedPageCount == map.pageCount else { return false }
    return stride(from: UInt32(2), through: map.pageCount, by: 1).allSatisfy {
      map.fate($0) == .free || map.fate($0) == .special
    }
  }
}

extension Crawl {
  private static let comparedRows = 16

  /// Whether a page that no table lacks is an obsolete version.
  ///
  /// A tree without gaps has all rows. Otherwise the table must have most of the page's rows with equal values, or with
  /// mostly equal ones if entity numbers identify the table.
  func isObsolete(_ page: UInt32, of tree: Int) throws -> Bool {
    if !areFreePagesTold, trees[tree].isDropped || hasWholeSchema && trees[tree].isComplete { return true }
    guard map.look(page) == .tableLeaf, overlaps(tree, map.firstKey(page), map.lastKey(page)) else { return false }
    var samples: [PageRows.Row] = []
    let rows = PageRows(reader)
    try rows.forEach(on: page) { row in if samples.count < Self.comparedRows { samples.append(row) } }
    let isTold = trees[tree].shape.entityNumbers != nil
    var present = 0
    var alike = 0
    var leaf: UInt32 = 0
    var known: [Int64: Record] = [:]
    for sample in samples {
      guard let place = self.leaf(of: tree, with: sample.rowid) else { continue }
      if place != leaf {
        leaf = place
        known.removeAll(keepingCapacity: true)
        try rows.forEach(on: place) { row in known[row.rowid] = row.record }
      }
      guard let record = known[sample.rowid] else { continue }
      present += 1
      if Self.isVersion(sample.record, of: record, isTold: isTold) { alike += 1 }
    }
    return present * 2 > samples.count && alike * 2 > present
  }

  /// Whether two records with one key are versions of each other.
  ///
  /// - Parameter isTold: whether entity numbers identify the table, so that some values may differ.
  private static func isVersion(_ one: Record, of other: Record, isTold: Bool) -> Bool {
    let (first, second) = (one.values, other.values)
    var same = 0
    var all = 0
    for index in 0..<max(first.count, second.count) {
      let left = index < first.count ? first[index] : .null
      let right = index < second.count ? second[index] : .null
      if left.isNull, right.isNull { continue }
      all += 1
      if left == right { same += 1 }
    }
    return isTold ? same * 2 >= all : same == all
  }

  private func leaf(of tree: Int, with key: Int64) -> UInt32? {
    leaf(of: tree, endingFrom: key).flatMap { map.firstKey($0) <= key ? $0 : nil }
  }
}

extension Crawl {
  /// Assigns pages with a lost first sector to the tables with gaps that their remaining rows fill, as their parents
  /// may be lost too.
  mutating func placeTornPages() throws {
    let sector = TornSectors.sector
    guard map.pageCount >= 2, reader.usableSize > sector else { return }
    let candidates = trees.indices.filter { trees[$0].hasRowids && !trees[$0].gaps.isEmpty && trees[$0].isWalked }
    guard !candidates.isEmpty else { return }
    var buffer = reader.makeBuffer()
    for page in 2...map.pageCount where map.fate(page) == .unclaimed && map.look(page) == .linked {
      guard try reader.readPlace(page, into: &buffer),
        ChainTraits.isZero(buffer.span, 0..<sector), !ChainTraits.isZero(buffer.span, sector..<(sector + 4))
      else { continue }
      var fits: [(tree: Int, keys: ClosedRange<Int64>, bytes: Int)] = []
      for tree in candidates {
        if let fit = fit(buffer.span, from: sector, tree: tree) { fits.append((tree, fit.keys, fit.bytes)) }
      }
      fits.sort { ($0.bytes, $1.tree) > ($1.bytes, $0.tree) }
      guard let best = fits.first, fits.count < 2 || fits[1].bytes * 5 < best.bytes * 4 else { continue }
      map.claim(page, .damaged, owner: best.tree)
      trees[best.tree].gaps.append(
        Tree.Gap(page: page, above: best.keys.lowerBound.subtractingClamped(1), upTo: best.keys.upperBound))
    }
  }

  /// The rowids and the total bytes of a table's rows in the rest of a page; nil if too few fall into gaps.
  private func fit(_ bytes: Span<UInt8>, from start: Int, tree: Int) -> (keys: ClosedRange<Int64>, bytes: Int)? {
    let cells = Carving.cells(
      bytes, in: start..<reader.usableSize, kind: .tableLeaf, shape: trees[tree].shape, geometry: reader.geometry,
      covered: [], encoding: reader.layout.encoding)
    var keys: ClosedRange<Int64>?
    var covered = 0
    for cell in cells {
      // A gap with its own damaged leaf is taken; this page is of another time.
      let isMissing = trees[tree].gaps.contains {
        $0.above < cell.rowid && cell.rowid <= $0.upTo && map.fate($0.page) != .damaged
      }
      guard isMissing, !overlaps(tree, cell.rowid, cell.rowid) else { continue }
      keys = min(keys?.lowerBound ?? cell.rowid, cell.rowid)...max(keys?.upperBound ?? cell.rowid, cell.rowid)
      covered += cell.end - cell.offset
    }
    guard let keys, covered * 2 > reader.usableSize - start else { return nil }
    return (keys, covered)
  }
}
