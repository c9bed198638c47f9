internal import SQLiteFormat

/// Finds cells by their content alone, where no pointer leads to them.
enum Carving {
  /// Cells of a shape in a range of a page, none of which overlaps another.
  ///
  /// A cell is taken where its record fits exactly and, unless it has many fields, where it ends at a place where another
  /// cell or the page's content begins or ends: cells lie side by side.
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

  /// Whether a record fits so well that it is hardly chance: nothing unusual in it, and all text valid.
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
    // From the end of the page, as cells are laid down; the anchored ones first.
    for cell in candidates.reversed() where borders.contains(cell.end) && isFree(cell) { chosen.append(cell) }
    if isTelling {
      for cell in candidates.reversed() where !borders.contains(cell.end) && isFree(cell) { chosen.append(cell) }
    }
    return chosen.sorted { $0.offset < $1.offset }
  }
}
