package import SQLiteFormat

/// What each byte of a page is, as far as the page itself tells: header, cell pointers, cells, free blocks, space that
/// nothing uses.
package struct PageAnatomy: Sendable {
  /// What some bytes are.
  package enum Part: Sendable, Hashable {
    case databaseHeader
    case pageHeader
    case pointers

    /// A cell, by its number from 0.
    case cell(Int)
    case freeblock

    /// Between the pointers and the cells.
    case unallocated

    /// Reserved at the end of each page.
    case reserved

    /// Of no part: fragments, or everything on a page that is not of a tree.
    case other
  }

  /// Bytes that are one part.
  package struct Region: Sendable, Hashable {
    package var bytes: Range<Int>
    package var part: Part
  }

  /// A cell with what it holds.
  package struct CellFacts: Sendable, Hashable {
    /// Its number, from 0.
    package var index: Int

    /// Its bytes on the page; nil where its pointer leads nowhere.
    package var bytes: Range<Int>?

    /// The rowid, on pages of tables.
    package var rowid: Int64?

    /// The bytes of the whole payload.
    package var payloadLength: Int

    /// The first overflow page, where the payload goes on there.
    package var overflowPage: UInt32?

    /// The page of the keys before this one, on inner pages.
    package var leftChild: UInt32?

    /// The bytes of the record's header on the page: its length, and the type of each value; nil where it cannot be read.
    package var header: Range<Int>?

    /// The bytes of each value on the page, empty for those that take none; as many as there are values.
    package var fields: [Range<Int>] = []

    /// The values, as far as they are on this page.
    package var values: [Value]

    /// Whether each value that the record declares is something else than null, also those that are not on this page.
    package var declared: [Bool] = []
  }

  /// The kind of page; nil for one of no tree.
  package let kind: PageKind?

  /// The page, where its header can be read.
  package let page: BTreePage?

  /// The regions, one behind the other, from the first byte to the last.
  package let regions: [Region]

  /// The cells in the order of their pointers.
  package let cells: [CellFacts]

  /// Whether the chain of free blocks ends as it should.
  package let isFreeListSound: Bool

  /// The most fields of a record that are decoded.
  private static let maximumValues = 200

  /// Looks at a page.
  package init(_ bytes: [UInt8], number: UInt32, geometry: PayloadGeometry, encoding: TextEncoding) {
    let page = BTreePage(bytes, number: number, geometry: geometry)
    self.page = page
    kind = page?.kind
    var parts = [Part](repeating: .other, count: bytes.count)
    func paint(_ range: Range<Int>, _ part: Part) {
      for index in range.clamped(to: 0..<bytes.count) { parts[index] = part }
    }
    if geometry.usableSize < bytes.count { paint(geometry.usableSize..<bytes.count, .reserved) }
    if number == 1 { paint(0..<DatabaseHeader.length, .databaseHeader) }
    guard let page else {
      regions = Self.runs(parts)
      cells = []
      isFreeListSound = true
      return
    }
    let (blocks, isSound) = page.freeblocks
    isFreeListSound = isSound
    if let space = page.unallocatedSpace { paint(space, .unallocated) }
    for block in blocks { paint(block, .freeblock) }
    var cells: [CellFacts] = []
    for index in 0..<page.cellCount {
      guard let cell = page.cell(at: index) else {
        cells.append(CellFacts(index: index, payloadLength: 0, values: []))
        continue
      }
      let range = cell.offset..<min(bytes.count, cell.offset + cell.length)
      paint(range, .cell(index))
      var facts = CellFacts(
        index: index, bytes: range, rowid: page.kind.isTable ? cell.rowid : nil, payloadLength: cell.payloadLength,
        overflowPage: cell.overflowPage, leftChild: cell.leftChild, values: [])
      Self.addValues(of: cell, on: page, encoding, to: &facts)
      cells.append(facts)
    }
    let pointersEnd = min(page.pointerArrayOffset + 2 * page.cellCount, bytes.count)
    paint(page.headerOffset..<page.pointerArrayOffset, .pageHeader)
    if page.pointerArrayOffset < pointersEnd { paint(page.pointerArrayOffset..<pointersEnd, .pointers) }
    self.cells = cells
    regions = Self.runs(parts)
  }

  /// The cell of a row; nil where the page has none with that rowid.
  package func cell(ofRow rowid: Int64) -> Int? {
    kind == .tableLeaf ? cells.first { $0.rowid == rowid }?.index : nil
  }

  private static func addValues(
    of cell: Cell, on page: BTreePage, _ encoding: TextEncoding, to facts: inout CellFacts
  ) {
    guard page.kind != .tableInterior, let record = page.localRecord(of: cell, encoding: encoding) else { return }
    let payload = cell.localPayload
    facts.header = payload.lowerBound..<min(payload.upperBound, payload.lowerBound + record.headerLength)
    facts.declared = record.serialTypes.prefix(maximumValues).map { $0.rawValue != 0 }
    var start = payload.lowerBound + record.headerLength
    for (index, type) in record.serialTypes.prefix(maximumValues).enumerated() {
      // What lies on overflow pages is left out; the count of values tells.
      guard let length = SerialType.length(of: type.rawValue), length <= payload.upperBound - start,
        let value = record.value(at: index)
      else { break }
      facts.values.append(value)
      facts.fields.append(start..<(start + length))
      start += length
    }
  }

  private static func runs(_ parts: [Part]) -> [Region] {
    var result: [Region] = []
    for (index, part) in parts.enumerated() {
      if let last = result.indices.last, result[last].part == part {
        result[last].bytes = result[last].bytes.lowerBound..<(index + 1)
      } else {
        result.append(Region(bytes: index..<(index + 1), part: part))
      }
    }
    return result
  }
}
