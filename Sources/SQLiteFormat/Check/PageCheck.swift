internal import Platform

/// The tree that a page is checked for.
struct ExpectedTree: Sendable {
  let root: UInt32
  let isTable: Bool

  /// The rules of a table with rowids, if known.
  let rules: FieldRules?
}

/// The part of a page's check that needs no other page, with reused storage.
struct PageCheck: Sendable {
  struct Problem: Sendable {
    let kind: Finding.Kind
    var cell: Int?
  }

  /// The page; nil if it is missing or of another kind.
  private(set) var page: BTreePage?

  /// The page's first byte; nil if the page is missing.
  private(set) var firstByte: UInt8?

  private(set) var problems: [Problem] = []

  /// The cells in order, complete unless there is a problem.
  private(set) var cells: [Cell] = []

  /// The places of cells with malformed records, if all cells were read.
  private(set) var malformed: [Int] = []

  /// The checksum of a table leaf with rows.
  private(set) var leafSum: UInt64?

  /// Whether none of the leaf's rows fits the table.
  private(set) var isStranger = false

  /// A bit per byte used by a cell or free block.
  private var used: [UInt64] = []

  private var usedCount = 0
  private var overlaps = false

  var isDamaged: Bool { problems.contains { $0.kind.severity == .damage } }

  mutating func read(_ number: UInt32, of tree: ExpectedTree, from database: Database) throws(FileError) {
    (page, firstByte, leafSum, isStranger) = (nil, nil, nil, false)
    problems.removeAll(keepingCapacity: true)
    cells.removeAll(keepingCapacity: true)
    malformed.removeAll(keepingCapacity: true)
    guard let content = try database.page(number) else { return }
    firstByte = content.bytes.first ?? 0
    guard let page = BTreePage(content.bytes, number: number, geometry: database.geometry),
      page.kind.isTable == tree.isTable
    else { return }
    self.page = page
    checkCells(of: page)
    let span = page.bytes.span
    if cells.count == page.cellCount {
      for index in cells.indices where !RecordCheck.isWellFormed(span, cell: cells[index]) { malformed.append(index) }
    }
    guard page.kind == .tableLeaf, page.cellCount > 0, number > 1 else { return }
    leafSum = LeafCopies.sum(span)
    isStranger = tree.rules?.areAll(false, rowsOf: page, isStrict: false) == true
  }

  private mutating func checkCells(of page: BTreePage) {
    guard page.isHeaderPlausible else { return problems.append(Problem(kind: .pageHeaderInvalid)) }
    forgetUse(size: page.geometry.usableSize)
    let span = page.bytes.span
    for index in 0..<page.cellCount {
      guard let offset = page.cellOffset(at: index), offset >= page.contentStart else {
        problems.append(Problem(kind: .cellPointerInvalid, cell: index))
        continue
      }
      guard let cell = Cell(span, kind: page.kind, at: offset, geometry: page.geometry),
        cell.length <= page.geometry.usableSize - offset
      else {
        problems.append(Problem(kind: .cellInvalid, cell: index))
        continue
      }
      use(offset..<(offset + cell.length))
      cells.append(cell)
    }
    let (blocks, isSound) = page.freeblocks
    for block in blocks { use(block) }
    let isFirstBlockInside = page.firstFreeblock == 0 || page.firstFreeblock >= page.contentStart
    if !isSound || !isFirstBlockInside { problems.append(Problem(kind: .freeblockInvalid)) }
    if problems.isEmpty, let kind = checkCoverage(of: page) { problems.append(Problem(kind: kind)) }
  }

  private mutating func forgetUse(size: Int) {
    let words = (size + 63) >> 6
    if used.count == words {
      for index in used.indices { used[index] = 0 }
    } else {
      used = [UInt64](repeating: 0, count: words)
    }
    usedCount = 0
    overlaps = false
  }

  private mutating func use(_ range: Range<Int>) {
    usedCount += range.count
    let last = range.upperBound - 1
    var word = range.lowerBound >> 6
    var mask = UInt64.max << UInt64(truncatingIfNeeded: range.lowerBound & 63)
    while word < last >> 6 {
      if used[word] & mask != 0 { overlaps = true }
      used[word] |= mask
      mask = .max
      word += 1
    }
    mask &= .max >> UInt64(truncatingIfNeeded: 63 - last & 63)
    if used[word] & mask != 0 { overlaps = true }
    used[word] |= mask
  }

  /// Checks overlaps and the header's fragment count.
  private func checkCoverage(of page: BTreePage) -> Finding.Kind? {
    if overlaps { return .cellsOverlap }
    let fragments = page.geometry.usableSize - page.contentStart - usedCount
    return fragments == page.fragmentedBytes ? nil : .fragmentCountWrong
  }
}
