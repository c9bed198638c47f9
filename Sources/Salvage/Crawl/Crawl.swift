internal import SQLiteFormat

/// Finds out which pages belong to which table: first by walking the trees from their roots, then by evidence.
///
/// The order is that of certainty. What a tree claims is its; a page that no tree claims goes to a table only where the
/// evidence is decisive, and nowhere else.
struct Crawl {
  let reader: PageReader
  var map: PageMap
  var trees: [Tree]

  /// Pages that fit several tables equally well, or none; their rows go to no table.
  var unplaced: [UInt32] = []

  /// The leaves below inner pages that no root leads to; only their content tells whose they are.
  var ofFragments = PageSet()

  /// The leaves of tables that their trees lead to, in the order of their keys.
  var claimed: [Int: [UInt32]] = [:]

  /// Pages that were part of a tree and are no longer.
  var dead: [UInt32] = []

  /// Leaves that a transaction wrote which never ended: those behind the end of the database as its header has it, and
  /// where there are any, those within it that nothing leads to.
  var pagesBehindEnd: [UInt32] = []

  /// The tables that have such leaves: a transaction wrote to them that never ended, and any row may be of it.
  var unfinishedTrees: Set<Int> = []

  /// What the values of tables are like, as far as that had to be found out.
  var profiles: [Int: TableProfile] = [:]

  /// What the indexes of tables have of their rows, as far as that had to be found out.
  var indexedValues: [Int: [IndexedValues]] = [:]

  /// The pages that more than one tree leads to, with the places of these trees.
  private(set) var contested: [UInt32: Set<Int>] = [:]

  /// What the first walk of all trees showed.
  var firstWalk = FirstWalk()

  /// Pages that were given to a table although more than one could have them: what tells is only likeness.
  var likened = PageSet()

  /// The pages that are not the trees' that lead to them.
  var strangers = Strangers()

  /// The leaves of tables some of whose keys are not between those that their parent allows.
  var outsideSpan = PageSet()

  /// What speaks against rows of whole pages.
  var contradictions = Contradictions()

  /// What the pointer maps say; nil until that is asked for.
  var pointerMaps: PointerMaps?

  /// The last page of the database by its header, where the file is longer and nothing leads to the rest.
  var endOfDatabase = UInt32.max

  /// Whether the rows of each leaf are compared with its table, because something is known to be damaged.
  var isThorough = false

  /// Whether no other table than those of the trees can have rows; else a page may be of one that nothing tells of.
  var hasAllTables = true

  /// Whether the store's own schema lists all of them, so that a tree without gaps has all rows of its table.
  var hasWholeSchema = true

  /// Whether the list of free pages in the header is to be believed.
  var isFreelistSound = true

  /// Whether that list has as many pages as the header says, so that no page is free that is not on it.
  var isFreelistWhole = false

  /// Whether pages with rows show that there was a table that neither the store's list of tables nor a model has.
  var lacksUnknownTable = false

  /// The tables that the model has and a list of tables that seemed whole lacks, and that pages belong to.
  var unlistedTrees: Set<Int> = []

  /// The pages that hold the list of free pages.
  var trunks = PageSet()

  /// Pages on the list of free pages.
  var freeCount = 0

  /// How many pages the header says are free; nil where it is lost, or says more than there are pages.
  var statedFreeCount: Int?

  /// Whether a page that no tree leads to may be a free one, with rows of another time or of a table that is no more: the
  /// store has free pages that the list, as far as it is there, does not name.
  var mayBeFree: Bool { statedFreeCount.map { $0 > freeCount } ?? false }

  /// A recovery kit of the store; nil where there is none.
  var kit: RecoveryKit?

  /// No b-tree of SQLite's is deeper.
  static let maximumDepth = 20

  /// Whether only its content tells whose a page is.
  func isByContent(_ page: UInt32) -> Bool { map.fate(page) == .placed || ofFragments.contains(page) }

  /// How many places of listed trees lack their page.
  var damage: Int { trees.reduce(0) { $0 + ($1.isListed ? $1.gaps.count : 0) } }

  /// Whether the list of tables leads to any page that rows are on, be they many or none.
  var hasListedRows: Bool { trees.contains { $0.isListed && !$0.leaves.isEmpty } }

  /// Pages behind the end of the database as log or journal have it belong to nothing: a transaction that did not end, or
  /// one that made the file shorter.
  mutating func buryCutOffPages() {
    guard let count = reader.overlay?.pageCount, count > 0, count < map.pageCount else { return }
    for page in (count + 1)...map.pageCount { bury(page) }
  }

  /// Takes the pages behind the end of the database, as its header has it, for no live ones.
  ///
  /// So does SQLite: a transaction that needs more pages writes them first, and the new end last. Where a tree leads there,
  /// the header is wrong, and they count.
  mutating func buryPagesBehindEnd() throws(SalvageError) {
    guard reader.overlay == nil, let header = reader.layout.header, header.hasMagic, header.isPageCountValid,
      header.pageCount > 0, header.pageCount < map.pageCount
    else { return }
    let behind = (header.pageCount + 1)...map.pageCount
    let isReached = behind.contains { map.fate($0) == .tree || map.fate($0) == .free }
    var buffer = reader.makeBuffer()
    guard !isReached, try !isLedTo(behindPage: header.pageCount, &buffer) else { return }
    endOfDatabase = header.pageCount
    for page in behind where map.fate(page) == .unclaimed {
      // Bytes that only stand behind the database are no sign of a transaction.
      if map.look(page) == .tableLeaf, map.fieldCount(page) > 0,
        let choice = try choice(for: page, &buffer, where: { trees[$0].definition != nil })
      {
        pagesBehindEnd.append(page)
        if choice.isDecisive { unfinishedTrees.insert(choice.tree) }
      }
      map.claim(page, .dead)
    }
  }

  /// Whether a gap of a tree is at a page behind the end, or a long value goes on there.
  private func isLedTo(behindPage end: UInt32, _ buffer: inout [UInt8]) throws(SalvageError) -> Bool {
    let behind = (end + 1)...map.pageCount
    for tree in trees where tree.isListed {
      if tree.gaps.contains(where: { behind.contains($0.page) }) { return true }
    }
    // Where no page behind it has rows, nothing but a long value can lead there.
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

  /// Walks all trees whose roots are known.
  ///
  /// Where the file lacks a root, all of its tree is missing but for what is found by other means.
  mutating func walkRoots() throws(SalvageError) {
    for index in trees.indices where trees[index].rootBehindEnd > 0 && !trees[index].isWalked {
      trees[index].gaps.append(Tree.Gap(page: trees[index].rootBehindEnd, above: .min, upTo: .max))
    }
    for index in trees.indices where trees[index].root > 0 && !trees[index].isWalked {
      let root = trees[index].root
      trees[index].isWalked = true
      try walk(root, tree: index, above: .min, upTo: .max, depth: 0)
    }
  }

  /// Walks from a page down; what does not fit leaves a gap.
  mutating func walk(
    _ page: UInt32, tree: Int, above low: Int64, upTo high: Int64, depth: Int
  ) throws(SalvageError) {
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
      // The cells of an index's inner page are rows or entries too, and tell whose it is.
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

  /// Notes that a tree leads to a page that another one has, where it could be the tree's as well.
  private mutating func noteContest(_ page: UInt32, tree: Int, above low: Int64, upTo high: Int64) {
    guard map.fate(page) == .tree, let owner = map.owner(page), owner != tree, owner > 0,
      trees[owner].hasRowids, trees[tree].hasRowids, fits(page, tree: tree, above: low, upTo: high)
    else { return }
    contested[page, default: [owner]].insert(tree)
  }

  /// Whether a page is a leaf that a tree leads to.
  private func isLeaf(_ page: UInt32, of tree: Int) -> Bool {
    let look = map.look(page)
    return map.fate(page) == .tree && map.owner(page) == tree && (look == .tableLeaf || look == .indexLeaf)
  }

  /// Whether a page that a tree leads to has rows of that tree.
  ///
  /// What leads to it decides, unless its rows speak against it: values of classes that the columns are not declared for, or
  /// fewer values than columns where another tree, which lacks pages, has as many columns.
  func hasRows(_ page: UInt32, of tree: Int) throws(SalvageError) -> Bool {
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
    // Other pages of the table are as odd, and those of the other one are not.
    if let own, firstWalk.isOrdinary(own.oddness, in: tree), firstWalk.odd[best.tree] == nil { return true }
    let isOther = !best.fit.isShort && !best.fit.isUnusual
    guard let own else {
      // Values of other classes than their columns are declared for are less than rows that are not the other's either.
      let start = page == 1 && buffer[0] != 13 && buffer[0] != 10 ? DatabaseHeader.length : 0
      return trees[tree].hasRowids && !isOther
        && PageScore.isFull(buffer.span, start: start, trees[tree].shape.ofAnyClass, geometry: reader.geometry)
    }
    // Keys tell whose a page with rowids is; where there are none, an index can look much like a table.
    return !isOther || best.fit.rank - own.rank < (trees[tree].hasRowids ? 1 : 0.25)
  }

  /// Whether a page can be one of a tree, by its keys and the number of its fields.
  func fits(_ page: UInt32, tree: Int, above low: Int64, upTo high: Int64) -> Bool {
    let shape = trees[tree].shape
    if trees[tree].hasRowids {
      let first = map.firstKey(page)
      let last = map.lastKey(page)
      let isEmpty = first == 0 && last == 0 && map.fieldCount(page) == 0
      if map.look(page) == .tableLeaf, isEmpty, low != .min || high != .max { return false }
      // One of the two may be hit; both out of range is another page.
      let isFirstIn = first > low && first <= high
      let isLastIn = last > low && last <= high
      if !isEmpty, !isFirstIn, !isLastIn { return false }
      if !isEmpty, isFirstIn != isLastIn, low != .min, high != .max, last - first > 0 {
        // A page of another place that overlaps by chance has most of its rows outside.
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

/// The children of an inner page.
struct InnerPage {
  /// The children in order, the right-most last; they may lie behind the end of a file that was cut off.
  var children: [UInt32] = []

  /// The largest rowids below each child but the last; empty on pages without rowids.
  var keys: [Int64] = []

  /// Whether some cells could not be read.
  var isDamaged = false

  init(_ number: UInt32, _ reader: PageReader) throws(SalvageError) {
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

  /// How many cells account for every byte of an inner page that is not free; nil where no number does.
  private static func cellCount(_ bytes: Span<UInt8>, _ kind: PageKind, _ start: Int, _ reader: PageReader) -> Int? {
    let free = LeafScan.freeBytes(bytes, start, start + kind.headerLength, reader.geometry)
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

  /// The highest number that is taken for a page's where the file lacks it.
  static let highestPage: UInt32 = 1 << 31

  /// Whether every cell of an inner page is as it should be, so that a child behind the end of the file is a page that the
  /// file lacks, whatever the header says of its length; else such a number is taken for damage of its cell.
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

/// What trees lead to behind the end of the file.
///
/// The header's number of pages does not tell: it may be damaged, or be that of the file as it was cut off.
extension Crawl {
  /// Whether pages of a tree are behind the end of the file, so that nothing tells which rows they had: its root is, or one
  /// that an inner page of it leads to, and no page was found that belongs in that place.
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

  /// Whether nothing but a single wrong number in the list of tables leads behind the end, and the pages of that table are
  /// there.
  private func isOnlyRootMisnamed(_ index: Int) -> Bool {
    guard trees[index].leaves.contains(where: { map.fate($0) == .placed || map.fate($0) == .tree }),
      let header = reader.layout.header, header.hasMagic, header.isPageCountValid,
      reader.statedPageCount == map.pageCount
    else { return false }
    return trees.indices.allSatisfy { other in
      other == index || !trees[other].isListed || !trees[other].gaps.contains { $0.page > map.pageCount }
    }
  }

  /// The pages behind the end of the file that trees lead to, in ascending order, where no page was found that belongs there.
  func pagesLackedBehindEnd() -> [UInt32] {
    var pages: Set<UInt32> = []
    for index in trees.indices where lacksPagesBehindEnd(of: index) {
      for gap in trees[index].gaps where gap.page > map.pageCount && reader.moved[gap.page] == nil {
        pages.insert(gap.page)
      }
    }
    return pages.sorted()
  }

  /// Whether no page but the first is one that a table that is not listed may have had: all of them are free.
  var hasFreePagesOnly: Bool {
    guard isFreelistSound, unplaced.isEmpty, dead.isEmpty, reader.statedPageCount == map.pageCount else { return false }
    return stride(from: UInt32(2), through: map.pageCount, by: 1).allSatisfy {
      map.fate($0) == .free || map.fate($0) == .special
    }
  }
}

extension Crawl {
  /// How many rows of a page are compared with those of the table.
  private static let comparedRows = 16

  /// Whether a page that has no place in a table holds what that was once, and nothing that is missing.
  ///
  /// A tree without gaps has all rows of its table. Where the page may be of a table that nothing tells of, or the tree
  /// has gaps, the table must have the rows: the same keys, and values that are the same, all of them where nothing but
  /// values tells one table's rows from another's.
  func isObsolete(_ page: UInt32, of tree: Int) throws(SalvageError) -> Bool {
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

  /// Whether a record is a version of another one with its key.
  ///
  /// - Parameter isTold: whether entity numbers tell whose the rows are; then some values may differ.
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

  /// The leaf of a table that has a rowid within its range; nil where none has.
  private func leaf(of tree: Int, with key: Int64) -> UInt32? {
    leaf(of: tree, endingFrom: key).flatMap { map.firstKey($0) <= key ? $0 : nil }
  }
}

extension Crawl {
  /// Gives pages whose first sector is lost to the tables whose rows the rest of them holds.
  ///
  /// Where the page that led to such a page is lost too, nothing but its rows tells whose it is: they fit a table, and
  /// their rowids are those of a gap in it.
  mutating func placeTornPages() throws(SalvageError) {
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

  /// The rows of a table in what is left of a page: between which rowids they are, and how many bytes they take; nil where
  /// they are too few, or not those of a gap.
  private func fit(_ bytes: Span<UInt8>, from start: Int, tree: Int) -> (keys: ClosedRange<Int64>, bytes: Int)? {
    let cells = Carving.cells(
      bytes, in: start..<reader.usableSize, kind: .tableLeaf, shape: trees[tree].shape, geometry: reader.geometry,
      covered: [], encoding: reader.layout.encoding)
    var keys: ClosedRange<Int64>?
    var covered = 0
    for cell in cells {
      // A gap whose own page is looked through already is that of a leaf, and this page is another time's.
      let isMissing = trees[tree].gaps.contains {
        $0.above < cell.rowid && cell.rowid <= $0.upTo && map.fate($0.page) != .damaged
      }
      guard isMissing, !overlaps(tree, cell.rowid, cell.rowid) else { continue }
      keys = min(keys?.lowerBound ?? cell.rowid, cell.rowid)...max(keys?.upperBound ?? cell.rowid, cell.rowid)
      covered += cell.end - cell.offset
    }
    // All of a page's content is cells, but for the one that the lost sector cuts.
    guard let keys, covered * 2 > reader.usableSize - start else { return nil }
    return (keys, covered)
  }
}
