internal import SQLiteFormat

/// Which pages more than one cell or page leads to as to the next one of a long value.
///
/// Pages that are no longer in use lead to others too, so that a page with two claims is nothing but a reason to look
/// closely.
struct OverflowClaims {
  private var claimed = PageSet()

  /// Pages that are claimed twice or more often.
  private(set) var contested = PageSet()

  /// Whether anything leads to a page.
  func isClaimed(_ page: UInt32) -> Bool { claimed.contains(page) }

  /// Notes that something leads to a page.
  mutating func add(_ page: UInt32) {
    if !claimed.insert(page) { _ = contested.insert(page) }
  }

  /// Notes where the long values of a page's cells go on.
  mutating func addCells(_ bytes: Span<UInt8>, _ kind: PageKind, start: Int, _ reader: PageReader) {
    guard kind != .tableInterior, let count = bytes.uint16(at: start + 3) else { return }
    let pointers = start + kind.headerLength
    let longest = kind.isTable ? reader.geometry.maximumTableLocal : reader.geometry.maximumIndexLocal
    var index = 0
    while index < count {
      let pointer = pointers &+ 2 &* index
      index &+= 1
      guard var offset = bytes.uint16(at: pointer), offset < reader.usableSize &- 8 else { continue }
      let cellStart = offset
      if !kind.isLeaf { offset &+= 4 }
      guard let length = Varint.read(bytes, at: &offset, before: reader.usableSize), length > longest,
        let cell = LeafCell(bytes, kind: kind, at: cellStart, index: index, geometry: reader.geometry),
        cell.overflow >= 2, cell.overflow <= reader.pageCount
      else { continue }
      add(cell.overflow)
    }
  }
}
