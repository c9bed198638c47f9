/// Checks one b-tree page by itself: its header, its cell pointers, and that its bytes are used once.
///
/// Its storage is used again for the next page.
struct PageCheck {
  struct Problem {
    let kind: Finding.Kind
    var cell: Int?
  }

  /// The used stretches of the page: the start in the upper half, the last byte in the lower.
  private var used: [UInt32] = []

  mutating func check(_ page: BTreePage) -> [Problem] {
    var problems: [Problem] = []
    guard page.isHeaderPlausible else { return [Problem(kind: .pageHeaderInvalid)] }
    used.removeAll(keepingCapacity: true)
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
      add(offset..<(offset + cell.length))
    }
    let (blocks, isSound) = page.freeblocks
    for block in blocks { add(block) }
    let isFirstBlockInside = page.firstFreeblock == 0 || page.firstFreeblock >= page.contentStart
    if !isSound || !isFirstBlockInside { problems.append(Problem(kind: .freeblockInvalid)) }
    if problems.isEmpty, let kind = checkCoverage(of: page) { problems.append(Problem(kind: kind)) }
    return problems
  }

  private mutating func add(_ range: Range<Int>) {
    used.append(UInt32(truncatingIfNeeded: range.lowerBound) << 16 | UInt32(truncatingIfNeeded: range.upperBound - 1))
  }

  private var isSorted: Bool {
    var last: UInt32 = 0
    for stretch in used {
      guard stretch >= last else { return false }
      last = stretch
    }
    return true
  }

  /// Whether stretches overlap, and whether the gaps between them are as many bytes as the header says.
  private mutating func checkCoverage(of page: BTreePage) -> Finding.Kind? {
    // Cells mostly lie in the order of their pointers, from the end of the page: then turning them round is enough.
    if used.count > 1, used[0] > used[used.count - 1] { used.reverse() }
    if !isSorted { used.sort() }
    var end = page.contentStart
    var fragments = 0
    for stretch in used {
      let start = Int(stretch >> 16)
      guard start >= end else { return .cellsOverlap }
      fragments += start - end
      end = Int(stretch & 0xffff) + 1
    }
    fragments += page.geometry.usableSize - end
    return fragments == page.fragmentedBytes ? nil : .fragmentCountWrong
  }
}
