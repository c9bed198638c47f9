internal import SQLiteFormat

/// Reads rows of table pages before their owner is known.
struct PageRows {
  /// A row without its overflow pages.
  struct Row {
    var rowid: Int64
    var record: Record
  }

  private let reader: PageReader

  init(_ reader: PageReader) { self.reader = reader }

  /// - Parameter step: takes one row in so many.
  func forEach(on page: UInt32, step: Int = 1, _ body: (Row) -> Void) throws {
    try forEach(on: page, kind: .tableLeaf, step: step) { rowid, record in body(Row(rowid: rowid, record: record)) }
  }

  func forEachEntry(
    on page: UInt32, kind: PageKind = .indexLeaf, _ body: (Record) -> Void
  ) throws {
    try forEach(on: page, kind: kind, step: 1) { _, record in body(record) }
  }

  private func forEach(
    on page: UInt32, kind: PageKind, step: Int, _ body: (Int64, Record) -> Void
  ) throws {
    var buffer = reader.makeBuffer()
    guard try reader.readPlace(page, into: &buffer) else { return }
    let start = page == 1 && buffer[0] != kind.rawValue ? DatabaseHeader.length : 0
    guard start + 8 < buffer.count, buffer[start] == kind.rawValue, let count = buffer.span.uint16(at: start + 3) else {
      return
    }
    // No byte of a sound page belongs to two cells; without this bound a page could occupy a reader for long.
    var room = reader.usableSize
    for index in stride(from: 0, to: count, by: max(1, step)) {
      guard let offset = buffer.span.uint16(at: start + kind.headerLength + 2 * index),
        let cell = LeafCell(buffer.span, kind: kind, at: offset, index: index, geometry: reader.geometry),
        room >= cell.end - cell.offset,
        let record = Record(
          payload: buffer[cell.payload..<(cell.payload + cell.local)], payloadLength: cell.length,
          encoding: reader.layout.encoding), record.isWellFormed
      else { continue }
      room -= cell.end - cell.offset
      body(cell.rowid, record)
    }
  }

  /// Returns the leaves of a table's tree, and whether they are complete.
  func leaves(
    of root: UInt32, shape: RecordShape, _ map: PageMap
  ) throws -> (pages: [UInt32], isWhole: Bool) {
    var tree = Tree(name: "", kind: .table, root: root, shape: shape)
    tree.isListed = true
    var crawl = Crawl(reader: reader, map: map, trees: [tree])
    try crawl.walkRoots()
    return (crawl.trees[0].leaves, crawl.trees[0].gaps.isEmpty)
  }
}
