package import SQLiteFormat

/// The role of each byte of a page, judged from the page alone.
package struct PageAnatomy: Sendable {
  package enum Part: Sendable, Hashable {
    case databaseHeader, pageHeader, pointers

    /// A cell, by number from 0.
    case cell(Int)
    case freeblock

    /// The gap between cell pointers and cells.
    case unallocated

    /// The reserved end of a page.
    case reserved

    /// Fragments, or all of a page outside b-trees.
    case other
  }

  /// A byte range with one role.
  package struct Region: Sendable, Hashable {
    package var bytes: Range<Int>
    package var part: Part
  }

  package struct CellFacts: Sendable, Hashable {
    /// The number, from 0.
    package var index: Int

    /// The bytes on the page; nil if its pointer is invalid.
    package var bytes: Range<Int>?

    package var rowid: Int64?

    var payloadLength: Int

    var overflowPage: UInt32?

    /// The child page with lower keys, on interior pages.
    var leftChild: UInt32?

    /// The record header on the page; nil if unreadable.
    var header: Range<Int>?

    /// The bytes of each value on the page, empty for zero-length ones.
    var fields: [Range<Int>] = []

    var values: [Value]

    /// Whether each value is non-null, including those off this page.
    var declared: [Bool] = []
  }

  /// The kind of page; nil outside b-trees.
  let kind: PageKind?

  /// The page, if its header is readable.
  let page: BTreePage?

  /// The regions in order, covering the whole page.
  package let regions: [Region]

  /// The cells in pointer order.
  package let cells: [CellFacts]

  /// Whether the freeblock chain ends properly.
  let isFreeListSound: Bool

  private static let maximumValues = 200

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

  package func cell(ofRow rowid: Int64) -> Int? { kind == .tableLeaf ? cells.first { $0.rowid == rowid }?.index : nil }

  private static func addValues(
    of cell: Cell, on page: BTreePage, _ encoding: TextEncoding, to facts: inout CellFacts
  ) {
    guard page.kind != .tableInterior, let record = page.localRecord(of: cell, encoding: encoding) else { return }
    let payload = cell.localPayload
    facts.header = payload.lowerBound..<min(payload.upperBound, payload.lowerBound + record.headerLength)
    facts.declared = record.serialTypes.prefix(maximumValues).map { $0.rawValue != 0 }
    var start = payload.lowerBound + record.headerLength
    for (index, type) in record.serialTypes.prefix(maximumValues).enumerated() {
      // Values on overflow pages are omitted, as the count shows.
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
