internal import SQLiteFormat

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
