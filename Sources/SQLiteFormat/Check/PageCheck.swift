/// Checks one b-tree page alone, with reused storage.
struct PageCheck {
  struct Problem {
    let kind: Finding.Kind
    var cell: Int?
  }

  /// The last page's cells in order; empty if it has a problem.
  private(set) var cells: [Cell] = []

  /// A bit per byte used by a cell or free block.
  private var used: [UInt64] = []

  private var usedCount = 0
  private var overlaps = false

  mutating func check(_ page: BTreePage) -> [Problem] {
    var problems: [Problem] = []
    cells.removeAll(keepingCapacity: true)
    guard page.isHeaderPlausible else { return [Problem(kind: .pageHeaderInvalid)] }
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
    return problems
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
