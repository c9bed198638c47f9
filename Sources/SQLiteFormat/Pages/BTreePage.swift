/// A b-tree page (SQLite file format, "B-tree Pages").
///
/// It needs no database, so orphan pages can be read too.
public struct BTreePage: Sendable {
  /// The page number; 0 if unknown.
  public let number: UInt32

  /// The page's bytes.
  public let bytes: [UInt8]

  /// The kind of page.
  public let kind: PageKind

  /// How payloads are divided.
  public let geometry: PayloadGeometry

  /// The header's offset: 100 on page 1, else 0.
  public let headerOffset: Int

  /// The first free block's offset, or 0.
  public let firstFreeblock: Int

  /// The header's cell count.
  public let storedCellCount: Int

  /// The start of the cell content area; a stored 0 stands for 65536.
  public let contentStart: Int

  /// The bytes in fragments too small for a free block.
  public let fragmentedBytes: Int

  /// The right-most child of an interior page; 0 on leaves.
  public let rightMostChild: UInt32

  /// Reads a page's header; nil if the bytes are too few or of no b-tree page.
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

  /// The cell count, limited to the pointers that fit on the page.
  public var cellCount: Int { min(storedCellCount, (geometry.usableSize &- pointerArrayOffset) / 2) }

  /// Whether all cells fit and the content area lies inside the page.
  public var isHeaderPlausible: Bool {
    // A cell takes at least 4 bytes, plus 2 for its pointer.
    let pointersEnd = pointerArrayOffset + 2 * storedCellCount
    return storedCellCount <= (geometry.usableSize - 8) / 6 && contentStart <= geometry.usableSize
      && contentStart >= pointersEnd && firstFreeblock <= geometry.usableSize - 4
  }

  /// Returns a cell's offset, counting from 0; nil if its pointer is out of range.
  public func cellOffset(at index: Int) -> Int? {
    guard index >= 0, index < cellCount, let offset = bytes.span.uint16(at: pointerArrayOffset &+ 2 &* index),
      offset >= pointerArrayOffset &+ 2 &* cellCount, offset <= geometry.usableSize &- 4
    else { return nil }
    return offset
  }

  /// Returns a cell, counting from 0; nil if its pointer or content is invalid.
  public func cell(at index: Int) -> Cell? {
    guard let offset = cellOffset(at: index) else { return nil }
    return Cell(bytes.span, kind: kind, at: offset, geometry: geometry)
  }

  /// Returns a cell's record; nil if it overflows or has no readable header.
  public func localRecord(of cell: Cell, encoding: TextEncoding) -> Record? {
    guard cell.localPayload.upperBound <= bytes.count else { return nil }
    return Record(payload: bytes[cell.localPayload], payloadLength: cell.payloadLength, encoding: encoding)
  }

  /// The children of an interior page, right-most last; nil for an unreadable cell.
  public var children: [UInt32?] {
    guard !kind.isLeaf else { return [] }
    return (0..<cellCount).map { child(at: $0) } + [rightMostChild]
  }

  /// Returns a left child, or the right-most one after the last cell.
  func child(at index: Int) -> UInt32? {
    if index == cellCount { return rightMostChild }
    guard let offset = cellOffset(at: index) else { return nil }
    return bytes.span.uint32(at: offset)
  }
}

extension BTreePage {
  /// The page's free blocks in ascending chain order, and whether the chain ends properly.
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

  /// The unused bytes between cell pointer array and content area, if any.
  public var unallocatedSpace: Range<Int>? {
    let start = pointerArrayOffset &+ 2 &* cellCount
    let end = min(contentStart, geometry.usableSize)
    return start < end ? start..<end : nil
  }
}

/// The four kinds of b-tree page, by their first byte.
public enum PageKind: UInt8, Sendable, Hashable {
  /// Also of a table WITHOUT ROWID.
  case indexInterior = 2

  case tableInterior = 5

  /// Also of a table WITHOUT ROWID.
  case indexLeaf = 10

  case tableLeaf = 13

  /// Whether it is a leaf.
  public var isLeaf: Bool { rawValue & 8 != 0 }

  /// Whether it belongs to a table with rowids.
  public var isTable: Bool { rawValue & 1 != 0 }

  /// The length of the page header in bytes.
  public var headerLength: Int { isLeaf ? 8 : 12 }
}

/// The division of payloads between a page and overflow pages (SQLite file format, "B-tree Cell Format": U, X, M and
/// K).
public struct PayloadGeometry: Sendable, Hashable {
  /// The usable bytes of a page: U.
  public let usableSize: Int

  /// The largest payload without overflow on a table leaf: X = U − 35.
  public let maximumTableLocal: Int

  /// The largest payload without overflow on an index page: X = (U − 12) × 64 ÷ 255 − 23.
  public let maximumIndexLocal: Int

  /// The fewest local bytes of an overflowing payload: M = (U − 12) × 32 ÷ 255 − 23.
  public let minimumLocal: Int

  /// Creates the geometry for at least 480 usable bytes.
  public init(usableSize: Int) {
    let usable = max(480, min(65536, usableSize))
    self.usableSize = usable
    maximumTableLocal = usable - 35
    maximumIndexLocal = (usable - 12) * 64 / 255 - 23
    minimumLocal = (usable - 12) * 32 / 255 - 23
  }

  /// Returns the bytes of a payload on the page itself.
  @inline(__always) public func localLength(of length: Int, onTableLeaf: Bool) -> Int {
    let maximum = onTableLeaf ? maximumTableLocal : maximumIndexLocal
    if length <= maximum { return length }
    let surplus = minimumLocal &+ (length &- minimumLocal) % (usableSize &- 4)
    return surplus <= maximum ? surplus : minimumLocal
  }

  /// Returns the number of overflow pages for a payload.
  public func overflowPageCount(of length: Int, onTableLeaf: Bool) -> Int {
    let rest = length &- localLength(of: length, onTableLeaf: onTableLeaf)
    return rest <= 0 ? 0 : (rest &+ usableSize &- 5) / (usableSize &- 4)
  }
}

/// A cell of a b-tree page (SQLite file format, "B-tree Cell Format").
public struct Cell: Sendable, Hashable {
  /// The longest accepted payload: 2³¹ − 1 bytes, SQLite's limit.
  public static let maximumPayloadLength = Int(Int32.max)

  /// The cell's offset on the page.
  public var offset: Int

  /// The cell's length on the page, at least 4.
  public var length: Int

  /// The left child, on interior pages.
  public var leftChild: UInt32?

  /// The rowid, on pages of tables with rowids; 0 elsewhere.
  public var rowid: Int64

  /// The total payload length in bytes; 0 on interior table pages.
  public var payloadLength: Int

  /// The payload's range on the page.
  public var localPayload: Range<Int>

  /// The first overflow page, if any.
  public var overflowPage: UInt32?
}

extension Cell {
  /// Reads the cell at an offset; nil if it exceeds the usable bytes.
  ///
  /// It needs no database, so it can be tried at any offset of any bytes.
  public init?(_ bytes: Span<UInt8>, kind: PageKind, at start: Int, geometry: PayloadGeometry) {
    let end = min(geometry.usableSize, bytes.count)
    guard start >= 0, start <= end &- 4 else { return nil }
    var offset = start
    var child: UInt32?
    if !kind.isLeaf {
      child = bytes.uint32(at: offset)
      offset &+= 4
    }
    var payloadLength = 0
    var rowid: Int64 = 0
    if kind != .tableInterior {
      guard let length = Varint.read(bytes, at: &offset, before: end), length >= 0,
        length <= Int64(Cell.maximumPayloadLength)
      else { return nil }
      payloadLength = Int(length)
    }
    if kind.isTable {
      guard let value = Varint.read(bytes, at: &offset, before: end) else { return nil }
      rowid = value
    }
    let local = kind == .tableInterior ? 0 : geometry.localLength(of: payloadLength, onTableLeaf: kind == .tableLeaf)
    guard local <= end &- offset else { return nil }
    let payload = offset..<(offset &+ local)
    offset &+= local
    var overflow: UInt32?
    if local < payloadLength {
      guard offset <= end &- 4, let page = bytes.uint32(at: offset) else { return nil }
      overflow = page
      offset &+= 4
    }
    self.offset = start
    self.length = max(4, offset &- start)
    self.leftChild = child
    self.rowid = rowid
    self.payloadLength = payloadLength
    self.localPayload = payload
    self.overflowPage = overflow
  }
}
