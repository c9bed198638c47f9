internal import SQLiteFormat

/// Reads the cells of one page of a known table or index; the storage is used again for the next page.
struct LeafScan {
  /// The cells that can be believed, in the order of the cell pointer array; carved ones come last.
  private(set) var cells: [LeafCell] = []

  /// How many pointers led to nothing that is a cell of the table.
  private(set) var badPointers = 0

  /// How many of these led to a record, but to none that fits the table.
  private(set) var unfitting = 0

  /// How many cells were found without their pointers.
  private(set) var carved = 0

  /// How many cells lie in a lost sector.
  private(set) var tornCells = 0

  /// The lost sectors of the page.
  private(set) var torn: [Range<Int>] = []

  /// Whether anything about the page is not as it should be.
  var isDamaged: Bool { badPointers > 0 || carved > 0 || !torn.isEmpty || !isHeaderSound }

  /// Whether rowids break the ascending order.
  private(set) var isOutOfOrder = false

  /// Whether the page's header could be used.
  private(set) var isHeaderSound = true

  /// Reads a page.
  ///
  /// - Parameters:
  ///   - start: where the page's header is: 100 on page 1, else 0.
  ///   - kind: what kind of page it should be.
  ///   - shape: what its records look like.
  ///   - keys: the rowids that it can hold.
  ///   - carves: whether cells are looked for where the pointers are lost.
  ///   - admits: whether rows with a value of another kind than its column's are believed, because nothing else of the
  ///     page is wrong.
  mutating func read(
    _ bytes: Span<UInt8>, start: Int, kind: PageKind, shape: RecordShape, geometry: PayloadGeometry,
    keys: ClosedRange<Int64> = Int64.min...Int64.max, carves: Bool = true, admits: Bool = false,
    encoding: TextEncoding = .utf8, present: Int = .max
  ) {
    cells.removeAll(keepingCapacity: true)
    badPointers = 0
    unfitting = 0
    carved = 0
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
      readPointers(bytes, pointers, count, kind, shape, geometry, admits)
    }
    // Nearly every sector has a byte that is not zero among its first ones, so this is quick.
    if contentStart < geometry.usableSize {
      torn = TornSectors.ranges(bytes, content: contentStart..<geometry.usableSize)
    }
    if present < geometry.usableSize { torn.append(present..<geometry.usableSize) }
    if !torn.isEmpty { removeTorn() }
    if kind == .tableLeaf { checkOrder() }
    if carves, isDamaged {
      let lowest = isHeaderSound ? contentStart : start + 8
      carve(bytes, from: lowest, kind, shape, geometry, keys, encoding)
    }
  }

  private mutating func readPointers(
    _ bytes: Span<UInt8>, _ pointers: Int, _ count: Int, _ kind: PageKind, _ shape: RecordShape,
    _ geometry: PayloadGeometry, _ admits: Bool
  ) {
    var strangers: [LeafCell] = []
    var areMostlyUsual = true
    // No byte of a sound page belongs to two cells; without this bound a small page could give gigabytes.
    var room = geometry.usableSize
    for index in 0..<count {
      guard let offset = bytes.uint16(at: pointers &+ 2 &* index), offset >= pointers &+ 2 &* count,
        var cell = LeafCell(bytes, kind: kind, at: offset, index: index, geometry: geometry),
        room >= cell.end &- cell.offset
      else {
        badPointers &+= 1
        continue
      }
      if shape.fit(bytes, at: cell.payload, before: cell.payload &+ cell.local, length: cell.length) == nil {
        guard shape.fitsButForEntity(bytes, cell) else {
          badPointers &+= 1
          if let fields = shape.strangeFields(bytes, cell) {
            unfitting &+= 1
            if fields.strange * 2 > fields.all { areMostlyUsual = false }
            room &-= cell.end &- cell.offset
            cell.isUnusual = true
            strangers.append(cell)
          }
          continue
        }
        cell.isOfUnknownEntity = true
      }
      room &-= cell.end &- cell.offset
      cells.append(cell)
    }
    guard admits, !strangers.isEmpty, unfitting == badPointers, areMostlyUsual,
      shape.entityNumbers != nil || strangers.count <= max(1, count / 2)
    else { return }
    cells = (cells + strangers).sorted { $0.index < $1.index }
    badPointers = 0
    unfitting = 0
  }

  private mutating func removeTorn() {
    let before = cells.count
    cells.removeAll { cell in torn.contains { $0.overlaps(cell.offset..<cell.end) } }
    tornCells = before - cells.count
  }

  /// Marks the cells whose rowids break the ascending order: all but the longest run that ascends.
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
      var low = 0
      var high = tails.count
      while low < high {
        let middle = (low + high) / 2
        if keys[tails[middle]] < key { low = middle + 1 } else { high = middle }
      }
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

extension LeafScan {
  /// Looks for cells in the parts of the content area that no known cell covers.
  private mutating func carve(
    _ bytes: Span<UInt8>, from lowest: Int, _ kind: PageKind, _ shape: RecordShape, _ geometry: PayloadGeometry,
    _ keys: ClosedRange<Int64>, _ encoding: TextEncoding
  ) {
    // With all pointers at hand only those that led nowhere can have more cells; the rest of the page is free space.
    guard !isHeaderSound || badPointers > 0 else { return }
    let covered = cells.map { $0.offset..<$0.end }.sorted { $0.lowerBound < $1.lowerBound }
    var found = Carving.cells(
      bytes, in: lowest..<geometry.usableSize, kind: kind, shape: shape, geometry: geometry, covered: covered,
      encoding: encoding)
    let known = Set(cells.map(\.rowid))
    found.removeAll { cell in
      torn.contains { $0.overlaps(cell.offset..<cell.end) }
        || kind == .tableLeaf && (known.contains(cell.rowid) || !keys.contains(cell.rowid))
    }
    if isHeaderSound, kind == .tableLeaf, let low = cells.first?.rowid, let high = cells.last?.rowid {
      // A lost pointer is one of a known number; its rowid is in the neighbourhood of the others.
      let slack = Int64(max(64, 4 * (cells.count + badPointers)))
      found.removeAll { $0.rowid < low.subtractingClamped(slack) || $0.rowid > high.addingClamped(slack) }
    }
    if isHeaderSound, found.count > badPointers { found.removeLast(found.count - badPointers) }
    carved = found.count
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
