import Platform
internal import SQLiteFormat

/// Reads the cells of a known tree's page; reuses its storage.
struct LeafCellScan {
  /// The credible cells in pointer order, then carved ones.
  private(set) var cells: [LeafCell] = []

  /// Pointers without a cell of the table.
  private(set) var badPointers = 0

  /// Bad pointers to a record that doesn't fit.
  private(set) var unfitting = 0

  /// Records that can't be rows of the table, kept for `lazaret_lost_and_found`.
  private(set) var misfits: [Misfit] = []

  /// Cells with mostly unexpected values.
  private(set) var mostlyStrange = 0

  /// Whether rows have unexpected values, but every byte of the page is accounted for, so that only the values are
  /// suspicious.
  private(set) var isWholeWithStrangers = false

  private var badOffsets: [Int] = []

  private var hasStrangers = false

  struct Misfit {
    var cell: LeafCell

    var fields: Int
  }

  /// The treatment of well-formed records that don't fit the table.
  enum Admission {
    case none

    case misfits

    /// Rows, if most values are as expected.
    case mostlyUsual

    /// Rows, unless impossible: more fields than columns, or no value as expected.
    case all
  }

  /// Cells found without pointers.
  private(set) var carved = 0

  /// Whether pointers and page bytes gave all cells in spite of a wrong header.
  private(set) var isMended = false

  /// Whether carving gave all cells: those of the pointers, or as many as the header states with every byte in use.
  private(set) var isCarvedWhole = false

  /// The cells that the pointers of a page without a header lead to.
  private var pointed: [LeafCell] = []

  /// Whether bytes other than pointers follow those of ``pointed``.
  private var endsPointers = false

  /// Whether bytes are neither in cells nor free, so that a cell may be missing.
  private(set) var hasUnclaimedBytes = false

  private(set) var tornCells = 0

  private(set) var torn: [Range<Int>] = []

  var isDamaged: Bool {
    badPointers > 0 || carved > 0 || !torn.isEmpty || !isHeaderSound || isMended || hasUnclaimedBytes
  }

  private(set) var isOutOfOrder = false

  private(set) var isHeaderSound = true

  /// Reads a page.
  ///
  /// - Parameters:
  ///   - start: the page header's offset: 100 on page 1, else 0.
  ///   - keys: the possible rowids.
  ///   - carves: whether to search for cells with lost pointers.
  ///   - admission: the treatment of well-formed misfits.
  ///   - hole: the missing bytes.
  ///   - uncertain: the possibly wrong bytes.
  mutating func read(
    _ bytes: Span<UInt8>, start: Int, kind: PageKind, shape: RecordShape, geometry: PayloadGeometry,
    keys: ClosedRange<Int64> = Int64.min...Int64.max, carves: Bool = true,
    admission: Admission = .none,
    encoding: TextEncoding = .utf8, hole: Range<Int>? = nil,
    uncertain: Range<Int>? = nil
  ) {
    cells.removeAll(keepingCapacity: true)
    badPointers = 0
    unfitting = 0
    misfits.removeAll(keepingCapacity: true)
    mostlyStrange = 0
    hasStrangers = false
    badOffsets.removeAll(keepingCapacity: true)
    isWholeWithStrangers = false
    carved = 0
    isMended = false
    isCarvedWhole = false
    pointed.removeAll(keepingCapacity: true)
    hasUnclaimedBytes = false
    tornCells = 0
    torn = []
    isOutOfOrder = false
    isHeaderSound =
      bytes[start] == kind.rawValue && PageSurvey.isPossible(bytes, kind, start, geometry.usableSize)
    var contentStart = start + 8
    if isHeaderSound {
      let count = bytes.uint16(at: start + 3) ?? 0
      let pointers = start + kind.headerLength
      let content = bytes.uint16(at: start + 5) ?? 0
      contentStart = max(pointers + 2 * count, content == 0 ? 65536 : content)
      let used = readPointers(bytes, pointers, count, kind, shape, geometry, admission)
      isHeaderSound = !kind.isLeaf || (badPointers - unfitting) * 4 <= count * 3
      if isHeaderSound, kind.isLeaf {
        settleCount(bytes, start, kind, shape, geometry, used: used, pointersEnd: pointers + 2 * count)
      }
      if hasStrangers { settleStrangers(bytes, start, pointers + 2 * count, geometry) }
    }
    if !isHeaderSound, kind.isLeaf {
      contentStart = start + 8
      mend(bytes, start, kind, shape, geometry, keys)
    }
    // Fast, as most sectors have a nonzero byte near the start.
    if contentStart < geometry.usableSize {
      torn = TornSectors.ranges(bytes, content: contentStart..<geometry.usableSize)
    }
    if let hole { torn.append(hole) }
    if !torn.isEmpty { removeTorn() }
    markBesideDamage()
    if let uncertain {
      for index in cells.indices where uncertain.overlaps(cells[index].offset..<cells[index].end) {
        cells[index].isBesideDamage = true
      }
    }
    if kind == .tableLeaf { checkOrder() }
    if carves, isDamaged {
      let lowest = isHeaderSound ? contentStart : start + 8
      let isPossible = PageSurvey.isPossible(bytes, kind, start, geometry.usableSize)
      let blocks = isPossible ? Self.freeBlocks(bytes, start, start + kind.headerLength, geometry) ?? [] : []
      carve(bytes, from: lowest, besides: blocks, kind, shape, geometry, keys, encoding)
      let used = cells.reduce(0) { $0 + $1.end - $1.offset }
      let pointersEnd = start + kind.headerLength + 2 * cells.count
      isCarvedWhole =
        endsPointers && !pointed.isEmpty && pointed.count == cells.count
        || isPossible && bytes.uint16(at: start + 3) == cells.count
          && used + Self.freeBytes(bytes, start, pointersEnd, geometry) == geometry.usableSize
    }
  }

  /// Reads the cells by pointer; returns their total bytes.
  private mutating func readPointers(
    _ bytes: Span<UInt8>, _ pointers: Int, _ count: Int, _ kind: PageKind, _ shape: RecordShape,
    _ geometry: PayloadGeometry, _ admission: Admission
  ) -> Int {
    // Without this bound, overlapping cells of a small page could yield gigabytes.
    var room = geometry.usableSize
    for index in 0..<count {
      guard let offset = bytes.uint16(at: pointers &+ 2 &* index), offset >= pointers &+ 2 &* count,
        var cell = LeafCell(bytes, kind: kind, at: offset, index: index, geometry: geometry),
        room >= cell.end &- cell.offset
      else {
        badPointers &+= 1
        badOffsets.append(bytes.uint16(at: pointers &+ 2 &* index) ?? 0)
        continue
      }
      if shape.fit(bytes, at: cell.payload, before: cell.payload &+ cell.local, length: cell.length) == nil {
        switch judge(&cell, bytes, shape, admission) {
        case .row: break
        case .record:
          room &-= cell.end &- cell.offset
          continue
        case .nothing:
          badOffsets.append(offset)
          continue
        }
      }
      room &-= cell.end &- cell.offset
      cells.append(cell)
    }
    return geometry.usableSize &- room
  }

  /// Checks the cell count: each byte is in one cell or free.
  private mutating func settleCount(
    _ bytes: Span<UInt8>, _ start: Int, _ kind: PageKind, _ shape: RecordShape, _ geometry: PayloadGeometry,
    used: Int, pointersEnd: Int
  ) {
    let free = Self.freeBytes(bytes, start, pointersEnd, geometry)
    guard free >= 0 else { return }
    let unclaimed = geometry.usableSize &- used &- free
    if unclaimed == 0, badPointers == 0 { return }
    if unclaimed != 0 || badPointers > unfitting {
      mend(bytes, start, kind, shape, geometry, Int64.min...Int64.max)
    }
    hasUnclaimedBytes = !isMended && unclaimed > 0 && badPointers == 0
  }

  /// Reads a page by its pointers, ignoring the header's cell count.
  ///
  /// The pointers count if they give the stated number of cells while the header is wrong elsewhere, or if their cells
  /// account for every byte. Pointers of deleted rows may follow. Without a sound header, only zeros may lie between the
  /// pointers and the cells, and nothing between the cells.
  private mutating func mend(
    _ bytes: Span<UInt8>, _ start: Int, _ kind: PageKind, _ shape: RecordShape, _ geometry: PayloadGeometry,
    _ keys: ClosedRange<Int64>
  ) {
    let pointers = start + kind.headerLength
    let stated = bytes.uint16(at: start + 3) ?? 0
    var found: [LeafCell] = []
    var used = 0
    var whole: Int?
    let free = Self.freeBytes(bytes, start, pointers, geometry)
    if isHeaderSound, free == geometry.usableSize { whole = 0 }
    var offsets: Set<Int> = []
    while let offset = bytes.uint16(at: pointers + 2 * found.count), offset >= pointers + 2 * (found.count + 1),
      let cell = LeafCell(bytes, kind: kind, at: offset, index: found.count, geometry: geometry),
      cell.end - cell.offset <= geometry.usableSize - used, offsets.insert(offset).inserted,
      shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length) != nil,
      kind != .tableLeaf || keys.contains(cell.rowid) && cell.rowid > found.last?.rowid ?? Int64.min
    {
      found.append(cell)
      used += cell.end - cell.offset
      if used + free == geometry.usableSize { whole = found.count }
      if !isHeaderSound, found.count == stated {
        // The count is right; the header is wrong elsewhere.
        whole = stated
        break
      }
    }
    let end = pointers + 2 * found.count
    let content = found.map(\.offset).min() ?? 0
    if !isHeaderSound, content >= end, used == geometry.usableSize - content,
      PageSurvey.isZero(bytes.extracting(end..<content))
    {
      whole = found.count
    }
    guard let whole else {
      let ordered = found.ordered { $0.offset < $1.offset }
      guard !isHeaderSound, cells.isEmpty, zip(ordered, ordered.dropFirst()).allSatisfy({ $0.end <= $1.offset }) else {
        return
      }
      pointed = found
      for index in pointed.indices { pointed[index].index = -1 }
      let next = bytes.uint16(at: end) ?? 0
      endsPointers = next < end + 2 || next > geometry.usableSize - 4 || offsets.contains(next)
      return
    }
    found.removeLast(found.count - whole)
    let ordered = found.ordered { $0.offset < $1.offset }
    guard ordered.first.map({ $0.offset >= pointers + 2 * whole }) ?? true,
      zip(ordered, ordered.dropFirst()).allSatisfy({ $0.end <= $1.offset })
    else { return }
    // A cell with bytes of its own must stay.
    for cell in cells where cell.index >= whole {
      let low = ordered.partitioningIndex { $0.end > cell.offset }
      guard low < ordered.count, ordered[low].offset < cell.end else { return }
    }
    cells = found
    badPointers = 0
    unfitting = 0
    misfits.removeAll(keepingCapacity: true)
    mostlyStrange = 0
    hasStrangers = false
    isMended = true
  }

  private enum Judgement {
    case row

    case record

    case nothing
  }

  private mutating func judge(
    _ cell: inout LeafCell, _ bytes: Span<UInt8>, _ shape: RecordShape, _ admission: Admission
  ) -> Judgement {
    if shape.fitsButForEntity(bytes, cell) {
      cell.isOfUnknownEntity = true
      return .row
    }
    if admission == .all || admission == .mostlyUsual, shape.hasLongHeader(bytes, cell) { return .row }
    guard let strangeness = shape.strangeness(bytes, cell) else {
      badPointers &+= 1
      return .nothing
    }
    let isRow =
      switch admission {
      case .none, .misfits: false
      case .mostlyUsual: !strangeness.isTooLong && !strangeness.isMostlyStrange
      case .all: !strangeness.isTooLong && !(strangeness.isOfUnknownEntity && strangeness.isMostlyStrange)
      }
    guard isRow else {
      badPointers &+= 1
      unfitting &+= 1
      if admission != .none {
        hasStrangers = true
        misfits.append(Misfit(cell: cell, fields: strangeness.fields))
      }
      return .record
    }
    hasStrangers = true
    if strangeness.isMostlyStrange { mostlyStrange &+= 1 }
    cell.isUnusual = true
    cell.isOfUnknownEntity = strangeness.isOfUnknownEntity
    cell.hasReservedTypes = strangeness.hasReservedTypes
    return .row
  }

  /// Removes misfits that overlap other cells, as from a wrong pointer, and checks whether all bytes are accounted for.
  private mutating func settleStrangers(
    _ bytes: Span<UInt8>, _ start: Int, _ pointersEnd: Int, _ geometry: PayloadGeometry
  ) {
    var taken: [(range: Range<Int>, index: Int, isStranger: Bool)] = cells.map { cell in
      (cell.offset..<cell.end, cell.index, cell.isUnusual)
    }
    taken += misfits.map { ($0.cell.offset..<$0.cell.end, $0.cell.index, true) }
    taken.sort { $0.range.lowerBound < $1.range.lowerBound }
    var overlapping: Set<Int> = []
    // Only the cell that reaches farthest can overlap the next.
    var farthest = 0
    for place in taken.indices.dropFirst() {
      if taken[place].range.lowerBound < taken[farthest].range.upperBound {
        for one in [place, farthest] where taken[one].isStranger { overlapping.insert(taken[one].index) }
      }
      if taken[place].range.upperBound > taken[farthest].range.upperBound { farthest = place }
    }
    if !overlapping.isEmpty {
      let before = cells.count
      cells.removeAll { $0.isUnusual && overlapping.contains($0.index) }
      badPointers += before - cells.count
      let kept = misfits.count
      misfits.removeAll { overlapping.contains($0.cell.index) }
      unfitting -= kept - misfits.count
    }
    guard badPointers == 0, overlapping.isEmpty else { return }
    let used = taken.reduce(0) { $0 + $1.range.count }
    isWholeWithStrangers = used + Self.freeBytes(bytes, start, pointersEnd, geometry) == geometry.usableSize
  }

  /// The bytes outside cells, including those before the content area; -1 for a malformed free block list.
  static func freeBytes(
    _ bytes: Span<UInt8>, _ start: Int, _ pointersEnd: Int, _ geometry: PayloadGeometry
  ) -> Int {
    let content = bytes.uint16(at: start &+ 5) ?? 0
    guard let blocks = freeBlocks(bytes, start, pointersEnd, geometry) else { return -1 }
    return (content == 0 ? 65536 : content) &+ Int(bytes[start &+ 7]) &+ blocks.reduce(0) { $0 &+ $1.count }
  }

  private static func freeBlocks(
    _ bytes: Span<UInt8>, _ start: Int, _ pointersEnd: Int, _ geometry: PayloadGeometry
  ) -> [Range<Int>]? {
    var blocks: [Range<Int>] = []
    var block = bytes.uint16(at: start &+ 1) ?? 0
    var lowest = pointersEnd
    while block != 0 {
      guard block >= lowest, block <= geometry.usableSize &- 4, let next = bytes.uint16(at: block),
        let length = bytes.uint16(at: block &+ 2), length >= 4
      else { return nil }
      lowest = block &+ length
      blocks.append(block..<lowest)
      block = next
    }
    return blocks
  }

  private mutating func removeTorn() {
    let before = cells.count
    cells.removeAll { cell in torn.contains { $0.overlaps(cell.offset..<cell.end) } }
    tornCells = before - cells.count
    misfits.removeAll { misfit in torn.contains { $0.overlaps(misfit.cell.offset..<misfit.cell.end) } }
  }

  /// Marks cells before a bad pointer's offset.
  private mutating func markBesideDamage() {
    guard !badOffsets.isEmpty, !isMended else { return }
    let bad = badOffsets.sorted()
    for index in cells.indices {
      let end = cells[index].end
      let low = bad.partitioningIndex { $0 >= end }
      // Up to three bytes between cells are a fragment.
      if low < bad.count, bad[low] - end <= 3 { cells[index].isBesideDamage = true }
    }
  }

  /// Marks cells outside the longest ascending run of rowids.
  private mutating func checkOrder() {
    var isAscending = true
    var previous = Int64.min
    for index in cells.indices {
      if cells[index].rowid <= previous, index > 0 { isAscending = false }
      previous = cells[index].rowid
    }
    guard !isAscending else { return }
    isOutOfOrder = true
    let kept = Self.longestAscent(cells.map(\.rowid))
    for index in cells.indices where !kept.contains(index) { cells[index].isOutOfOrder = true }
  }

  private static func longestAscent(_ keys: [Int64]) -> Set<Int> {
    var tails: [Int] = []
    var previous = [Int](repeating: -1, count: keys.count)
    for (index, key) in keys.enumerated() {
      let low = tails.partitioningIndex { keys[$0] >= key }
      previous[index] = low > 0 ? tails[low - 1] : -1
      if low == tails.count { tails.append(index) } else { tails[low] = index }
    }
    var kept: Set<Int> = []
    var index = tails.last ?? -1
    while index >= 0 {
      kept.insert(index)
      index = previous[index]
    }
    return kept
  }
}

extension LeafCellScan {
  /// Searches for cells in the content area outside known cells and free blocks.
  private mutating func carve(
    _ bytes: Span<UInt8>, from lowest: Int, besides blocks: [Range<Int>], _ kind: PageKind, _ shape: RecordShape,
    _ geometry: PayloadGeometry,
    _ keys: ClosedRange<Int64>, _ encoding: TextEncoding
  ) {
    guard !isMended else { return }
    // Only bad pointers can have more cells.
    guard !isHeaderSound || badPointers > misfits.count else { return }
    pointed.removeAll { cell in torn.contains { $0.overlaps(cell.offset..<cell.end) } }
    cells += pointed
    let covered = (cells.map { $0.offset..<$0.end } + misfits.map { $0.cell.offset..<$0.cell.end } + blocks)
      .sorted { $0.lowerBound < $1.lowerBound }
    var found = Carving.cells(
      bytes, in: lowest..<geometry.usableSize, kind: kind, shape: shape, geometry: geometry, covered: covered,
      encoding: encoding)
    let known = Set(cells.map(\.rowid))
    found.removeAll { cell in
      torn.contains { $0.overlaps(cell.offset..<cell.end) }
        || kind == .tableLeaf && (known.contains(cell.rowid) || !keys.contains(cell.rowid))
    }
    if isHeaderSound, kind == .tableLeaf, let low = cells.first?.rowid, let high = cells.last?.rowid {
      // A lost cell's rowid is near the others.
      let slack = Int64(max(64, 4 * (cells.count + badPointers)))
      found.removeAll { $0.rowid < low.subtractingClamped(slack) || $0.rowid > high.addingClamped(slack) }
    }
    let lost = badPointers - misfits.count
    if isHeaderSound, found.count > lost { found.removeLast(found.count - lost) }
    carved = pointed.count + found.count
    cells += found
  }
}

extension Int64 {
  func subtractingClamped(_ other: Int64) -> Int64 {
    let (value, overflow) = subtractingReportingOverflow(other)
    return overflow ? .min : value
  }

  func addingClamped(_ other: Int64) -> Int64 {
    let (value, overflow) = addingReportingOverflow(other)
    return overflow ? .max : value
  }
}
