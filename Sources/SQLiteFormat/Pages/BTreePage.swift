/// A b-tree page: its header and its cells, read from the page's bytes alone (SQLite file format, "B-tree Pages").
///
/// It needs no database around it, so pages that nothing leads to can be read as well.
public struct BTreePage: Sendable {
  /// The page's number; 0 where it is not known.
  public let number: UInt32

  /// The page's bytes.
  public let bytes: [UInt8]

  /// The kind of page.
  public let kind: PageKind

  /// How payloads are divided on it.
  public let geometry: PayloadGeometry

  /// Where its header begins: 100 on page 1, else 0.
  public let headerOffset: Int

  /// The offset of the first free block, or 0 for none.
  public let firstFreeblock: Int

  /// The number of cells as the header has it.
  public let storedCellCount: Int

  /// Where the cell content area begins; a stored 0 stands for 65536.
  public let contentStart: Int

  /// The number of bytes in fragments too small for a free block.
  public let fragmentedBytes: Int

  /// The page of the keys behind the last cell, on inner pages; 0 on leaves.
  public let rightMostChild: UInt32

  /// Reads a page's header; nil where the bytes are too few or the first one is of no b-tree page.
  public init?(_ bytes: [UInt8], number: UInt32, geometry: PayloadGeometry) {
    let headerOffset = number == 1 ? DatabaseHeader.length : 0
    guard bytes.count >= geometry.usableSize, let kind = PageKind(rawValue: bytes[headerOffset]) else { return nil }
    let span = bytes.span
    self.number = number
    self.bytes = bytes
    self.kind = kind
    self.geometry = geometry
    self.headerOffset = headerOffset
    firstFreeblock = span.uint16(at: headerOffset + 1) ?? 0
    storedCellCount = span.uint16(at: headerOffset + 3) ?? 0
    let start = span.uint16(at: headerOffset + 5) ?? 0
    contentStart = start == 0 ? 65536 : start
    fragmentedBytes = Int(bytes[headerOffset + 7])
    rightMostChild = kind.isLeaf ? 0 : span.uint32(at: headerOffset + 8) ?? 0
  }

  /// The offset of the cell pointer array.
  public var pointerArrayOffset: Int { headerOffset &+ kind.headerLength }

  /// The number of cells that can be there: the stored one, or as many pointers as fit on the page.
  public var cellCount: Int { min(storedCellCount, (geometry.usableSize &- pointerArrayOffset) / 2) }

  /// Whether the header's numbers are possible: as many cells as fit, and a content area inside the page.
  public var isHeaderPlausible: Bool {
    // A cell takes at least 4 bytes, and 2 for its pointer.
    let pointersEnd = pointerArrayOffset + 2 * storedCellCount
    return storedCellCount <= (geometry.usableSize - 8) / 6 && contentStart <= geometry.usableSize
      && contentStart >= pointersEnd && firstFreeblock <= geometry.usableSize - 4
  }

  /// The offset of a cell, counted from 0; nil where its pointer leads outside of where cells can be.
  public func cellOffset(at index: Int) -> Int? {
    guard index >= 0, index < cellCount, let offset = bytes.span.uint16(at: pointerArrayOffset &+ 2 &* index),
      offset >= pointerArrayOffset &+ 2 &* cellCount, offset <= geometry.usableSize &- 4
    else { return nil }
    return offset
  }

  /// A cell, counted from 0; nil where its pointer or its content is impossible.
  public func cell(at index: Int) -> Cell? {
    guard let offset = cellOffset(at: index) else { return nil }
    return Cell(bytes.span, kind: kind, at: offset, geometry: geometry)
  }

  /// The record of a cell whose payload is wholly on this page; nil where it is not, or has no readable header.
  public func localRecord(of cell: Cell, encoding: TextEncoding) -> Record? {
    guard cell.localPayload.upperBound <= bytes.count else { return nil }
    return Record(
      payload: bytes[cell.localPayload], payloadLength: cell.payloadLength, encoding: encoding)
  }

  /// The children of an inner page in order, the right-most last; nil stands for a cell that cannot be read.
  public var children: [UInt32?] {
    guard !kind.isLeaf else { return [] }
    return (0..<cellCount).map { child(at: $0) } + [rightMostChild]
  }

  /// The left child of a cell of an inner page, or the right-most child behind the last cell.
  func child(at index: Int) -> UInt32? {
    if index == cellCount { return rightMostChild }
    guard let offset = cellOffset(at: index) else { return nil }
    return bytes.span.uint32(at: offset)
  }
}

extension BTreePage {
  /// The free blocks of the page, in the order of their chain, which ascends; the second part tells whether the chain
  /// ends as it should.
  public var freeblocks: (blocks: [Range<Int>], isSound: Bool) {
    var blocks: [Range<Int>] = []
    var offset = firstFreeblock
    let span = bytes.span
    var lowest = pointerArrayOffset &+ 2 &* cellCount
    while offset != 0 {
      guard offset >= lowest, offset <= geometry.usableSize &- 4, let next = span.uint16(at: offset),
        let length = span.uint16(at: offset &+ 2), length >= 4, length <= geometry.usableSize &- offset
      else { return (blocks, false) }
      blocks.append(offset..<(offset &+ length))
      lowest = offset &+ length
      offset = next
    }
    return (blocks, true)
  }

  /// The bytes between the cell pointer array and the content area, which no cell uses; nil where there are none.
  public var unallocatedSpace: Range<Int>? {
    let start = pointerArrayOffset &+ 2 &* cellCount
    let end = min(contentStart, geometry.usableSize)
    return start < end ? start..<end : nil
  }
}

/// The four kinds of b-tree page, by the first byte of their header.
public enum PageKind: UInt8, Sendable, Hashable {
  /// An inner page of an index or of a table WITHOUT ROWID.
  case indexInterior = 2

  /// An inner page of a table.
  case tableInterior = 5

  /// A leaf of an index or of a table WITHOUT ROWID.
  case indexLeaf = 10

  /// A leaf of a table.
  case tableLeaf = 13

  /// Whether it is a leaf.
  public var isLeaf: Bool { rawValue & 8 != 0 }

  /// Whether it belongs to a table with rowids.
  public var isTable: Bool { rawValue & 1 != 0 }

  /// The number of bytes of the page's header: 8 on leaves, 12 on inner pages.
  public var headerLength: Int { isLeaf ? 8 : 12 }
}

/// How a payload is divided between its page and overflow pages, for one usable page size (SQLite file format, "B-tree
/// Cell Format": U, X, M and K).
public struct PayloadGeometry: Sendable, Hashable {
  /// The usable bytes of a page: U.
  public let usableSize: Int

  /// The largest payload that stays whole on a table leaf: X = U − 35.
  public let maximumTableLocal: Int

  /// The largest payload that stays whole on an index page: X = (U − 12) × 64 ÷ 255 − 23.
  public let maximumIndexLocal: Int

  /// The fewest bytes of a divided payload that stay on the page: M = (U − 12) × 32 ÷ 255 − 23.
  public let minimumLocal: Int

  /// The geometry of pages with the given number of usable bytes, at least 480.
  public init(usableSize: Int) {
    let usable = max(480, min(65536, usableSize))
    self.usableSize = usable
    maximumTableLocal = usable - 35
    maximumIndexLocal = (usable - 12) * 64 / 255 - 23
    minimumLocal = (usable - 12) * 32 / 255 - 23
  }

  /// The bytes of a payload of `length` bytes that are on the page itself.
  @inline(__always)
  public func localLength(of length: Int, onTableLeaf: Bool) -> Int {
    let maximum = onTableLeaf ? maximumTableLocal : maximumIndexLocal
    if length <= maximum { return length }
    let surplus = minimumLocal &+ (length &- minimumLocal) % (usableSize &- 4)
    return surplus <= maximum ? surplus : minimumLocal
  }

  /// How many overflow pages a payload of `length` bytes needs.
  public func overflowPageCount(of length: Int, onTableLeaf: Bool) -> Int {
    let rest = length &- localLength(of: length, onTableLeaf: onTableLeaf)
    return rest <= 0 ? 0 : (rest &+ usableSize &- 5) / (usableSize &- 4)
  }
}
