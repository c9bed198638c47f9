internal import SQLiteFormat

/// A leaf or index interior cell.
struct LeafCell {
  var offset: Int

  var end: Int

  var rowid: Int64

  var payload: Int

  /// The payload bytes on this page.
  var local: Int

  /// The full payload length.
  var length: Int

  /// The first overflow page, or 0.
  var overflow: UInt32

  /// The index in the cell pointer array; -1 without a pointer.
  var index: Int

  var isOutOfOrder = false

  var isOfUnknownEntity = false

  /// Whether a value has an unexpected storage class.
  var isUnusual = false

  /// Whether the next cell is missing, so that what overwrote it may extend into this one.
  var isBesideDamage = false

  var hasReservedTypes = false

  init(rowid: Int64) {
    offset = 0
    end = 0
    self.rowid = rowid
    payload = 0
    local = 0
    length = 0
    overflow = 0
    index = -1
  }

  /// Reads a cell; nil if it exceeds the usable bytes.
  @inline(__always)
  init?(_ bytes: Span<UInt8>, kind: PageKind, at start: Int, index: Int, geometry: PayloadGeometry) {
    let end = geometry.usableSize
    guard start >= 0, start <= end &- 4 else { return nil }
    var offset = start
    if !kind.isLeaf { offset &+= 4 }
    guard let size = Varint.read(bytes, at: &offset, before: end), size > 0,
      size <= Int64(Cell.maximumPayloadLength)
    else { return nil }
    var rowid: Int64 = 0
    if kind == .tableLeaf {
      guard let value = Varint.read(bytes, at: &offset, before: end) else { return nil }
      rowid = value
    }
    let length = Int(size)
    let local = geometry.localLength(of: length, onTableLeaf: kind == .tableLeaf)
    guard local <= end &- offset else { return nil }
    var cellEnd = offset &+ local
    var overflow: UInt32 = 0
    if local < length {
      guard let page = bytes.uint32(at: cellEnd), cellEnd <= end &- 4 else { return nil }
      // Page 0 doesn't exist: the overflow is lost, not absent.
      overflow = page == 0 ? .max : page
      cellEnd &+= 4
    }
    self.offset = start
    self.end = max(cellEnd, start &+ 4)
    self.rowid = rowid
    self.payload = offset
    self.local = local
    self.length = length
    self.overflow = overflow
    self.index = index
  }
}

/// Finds cells without pointers by their content.
enum Carving {
  /// Finds nonoverlapping cells of a shape in a range.
  ///
  /// Records must fit exactly. With few fields, a cell must also end at another cell or the end of the page, as cells
  /// are contiguous.
  static func cells(
    _ bytes: Span<UInt8>, in range: Range<Int>, kind: PageKind, shape: RecordShape, geometry: PayloadGeometry,
    covered: [Range<Int>], encoding: TextEncoding
  ) -> [LeafCell] {
    var candidates: [LeafCell] = []
    var borders: Set<Int> = [geometry.usableSize]
    for cell in covered { borders.insert(cell.lowerBound) }
    var next = 0
    var offset = range.lowerBound
    while offset < range.upperBound - 3 {
      while next < covered.count, covered[next].upperBound <= offset { next += 1 }
      if next < covered.count, covered[next].contains(offset) {
        offset = covered[next].upperBound
        continue
      }
      if bytes[offset] != 0,
        let cell = LeafCell(bytes, kind: kind, at: offset, index: -1, geometry: geometry),
        next >= covered.count || cell.end <= covered[next].lowerBound,
        isRow(bytes, cell, shape, encoding)
      {
        candidates.append(cell)
        borders.insert(cell.offset)
      }
      offset += 1
    }
    return choice(of: candidates, borders: borders, isTelling: shape.fields.count >= 3)
  }

  /// Whether a record fits too well for chance.
  private static func isRow(
    _ bytes: Span<UInt8>, _ cell: LeafCell, _ shape: RecordShape, _ encoding: TextEncoding
  ) -> Bool {
    guard
      let fit = shape.fit(bytes, at: cell.payload, before: cell.payload + cell.local, length: cell.length),
      fit.unusual == 0, fit.usual > 0 || shape.isUntyped
    else { return false }
    return RecordText.isValid(bytes, at: cell.payload, before: cell.payload + cell.local, encoding: encoding)
  }

  private static func choice(of candidates: [LeafCell], borders: Set<Int>, isTelling: Bool) -> [LeafCell] {
    var chosen: [LeafCell] = []
    func isFree(_ cell: LeafCell) -> Bool {
      !chosen.contains { $0.offset < cell.end && cell.offset < $0.end }
    }
    // From the end, as SQLite fills pages; anchored cells first.
    for cell in candidates.reversed() where borders.contains(cell.end) && isFree(cell) { chosen.append(cell) }
    if isTelling {
      for cell in candidates.reversed() where !borders.contains(cell.end) && isFree(cell) { chosen.append(cell) }
    }
    return chosen.sorted { $0.offset < $1.offset }
  }
}
