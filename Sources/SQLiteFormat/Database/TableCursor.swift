public import Platform

/// A cursor over rows in rowid order, or index entries in key order.
///
/// It notes damage in ``findings`` and continues. Use it on its database's thread.
public struct TableCursor {
  private var walk: BTreeWalk
  private var page: BTreePage?
  private var nextCell = 0
  private var lastRowid: Int64?
  private let payloadLimit: Int
  private var budget = PageBudget()
  private let database: Database

  init(_ database: Database, root: UInt32, isTable: Bool, payloadLimit: Int) throws(FileError) {
    self.database = database
    self.payloadLimit = payloadLimit
    walk = try BTreeWalk(database: database, root: root, isTable: isTable)
  }

  /// The damage met so far.
  public var findings: Findings { walk.findings }

  /// Returns the next row, or nil at the end.
  ///
  /// A broken overflow chain leaves the row incomplete; see ``Record/isComplete``.
  public mutating func next() throws(FileError) -> Row? {
    while let place = try nextPlace() {
      guard let cell = place.page.cell(at: place.index) else {
        walk.findings.note(
          place.page.cellOffset(at: place.index) == nil ? .cellPointerInvalid : .cellInvalid,
          page: place.page.number, cell: place.index, root: walk.root)
        continue
      }
      guard budget.take(cell.length, of: place.page) else {
        walk.findings.note(.cellsOverlap, page: place.page.number, cell: place.index, root: walk.root)
        continue
      }
      let payload = try walk.payload(of: cell, on: place.page, limit: payloadLimit)
      guard let record = Record(payload: payload, payloadLength: cell.payloadLength, encoding: database.encoding) else {
        walk.findings.note(.recordMalformed, page: place.page.number, cell: place.index, root: walk.root)
        continue
      }
      if walk.isTable {
        if let lastRowid, cell.rowid <= lastRowid {
          walk.findings.note(.rowidOrder, page: place.page.number, cell: place.index, root: walk.root)
        }
        lastRowid = cell.rowid
      }
      return Row(rowid: cell.rowid, record: record, page: place.page.number, cell: place.index)
    }
    return nil
  }

  private mutating func nextPlace() throws(FileError) -> BTreeWalk.Place? {
    if let page, nextCell < page.cellCount {
      nextCell += 1
      return BTreeWalk.Place(page: page, index: nextCell - 1)
    }
    page = nil
    guard walk.isTable else { return try walk.nextCell() }
    while let leaf = try walk.nextPage() {
      guard leaf.cellCount > 0 else { continue }
      page = leaf
      nextCell = 1
      return BTreeWalk.Place(page: leaf, index: 0)
    }
    return nil
  }
}

extension Database {
  /// Returns a cursor over a table with rowids.
  ///
  /// Reads at most `payloadLimit` bytes of each record.
  public func rows(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FileError) -> TableCursor {
    try TableCursor(self, root: root, isTable: true, payloadLimit: payloadLimit)
  }

  /// Returns a cursor over an index or a table WITHOUT ROWID.
  public func entries(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FileError) -> TableCursor {
    try TableCursor(self, root: root, isTable: false, payloadLimit: payloadLimit)
  }
}

/// A table row or index entry.
public struct Row: Sendable {
  /// The rowid; 0 in indexes and tables WITHOUT ROWID.
  public var rowid: Int64

  /// The columns.
  public var record: Record

  /// The page of the cell.
  public var page: UInt32

  /// The cell's place in its page's cell pointer array, from 0.
  public var cell: Int
}

/// The bytes that a page's cells may still use.
///
/// Cells of a sound page share no byte. Without this bound, thousands of pointers to one long cell would turn a small
/// file into gigabytes of rows.
struct PageBudget {
  private var page: UInt32?
  private var rest = 0

  /// Takes a cell's bytes; returns false when the page is used up.
  @inline(__always) mutating func take(_ length: Int, of page: BTreePage) -> Bool {
    if self.page != page.number {
      self.page = page.number
      rest = page.geometry.usableSize
    }
    guard length <= rest else { return false }
    rest &-= length
    return true
  }
}

/// The allocation-free loops over a table leaf.
struct LeafScan {
  var rows = 0

  var columns = 0

  var contentBytes = 0

  var badCells = 0

  var overflowing = 0

  var checksum: UInt64 = 0

  mutating func add(_ page: BTreePage) {
    let bytes = page.bytes.span
    let count = page.cellCount
    var pointer = page.pointerArrayOffset
    let end = min(page.geometry.usableSize, bytes.count)
    let maximumLocal = page.geometry.maximumTableLocal
    // Cells of a sound page share no byte.
    var room = page.geometry.usableSize
    for _ in 0..<count {
      guard let start = bytes.uint16(at: pointer) else { return }
      pointer &+= 2
      var offset = start
      guard let length = Varint.read(bytes, at: &offset, before: end),
        let rowid = Varint.read(bytes, at: &offset, before: end), length >= 0,
        length <= Int64(Cell.maximumPayloadLength)
      else {
        badCells &+= 1
        continue
      }
      var local = Int(length)
      if local > maximumLocal {
        local = page.geometry.localLength(of: local, onTableLeaf: true)
        overflowing &+= 1
      }
      room &-= local
      guard local <= end &- offset, room >= 0 else {
        badCells &+= 1
        continue
      }
      checksum = (checksum &* 31) &+ UInt64(bitPattern: rowid)
      addRecord(bytes, from: offset, to: offset &+ local)
      rows &+= 1
    }
  }

  @inline(__always) private mutating func addRecord(_ bytes: Span<UInt8>, from start: Int, to end: Int) {
    var offset = start
    guard let length = Varint.read(bytes, at: &offset, before: end), length <= Int64(end &- start), length > 0 else {
      badCells &+= 1
      return
    }
    let headerEnd = start &+ Int(length)
    var body = headerEnd
    var sum: UInt64 = checksum
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd) else { break }
      columns &+= 1
      if code >= 12 {
        let count = min(Int((code &- 12) >> 1), end &- body)
        sum = sum &* 31 &+ LeafScan.sum(bytes, from: body, count: count)
        contentBytes &+= count
        body &+= count
      } else if let width = SerialType.length(of: code), width <= end &- body {
        // Reals count as bits; codes 8 and 9 are values.
        sum = sum &* 31
        sum &+= UInt64(bitPattern: bytes.signedInteger(at: body, length: width) ?? code)
        body &+= width
      } else {
        break
      }
    }
    checksum = sum
  }

  @inline(__always) private static func sum(_ bytes: Span<UInt8>, from start: Int, count: Int) -> UInt64 {
    let content = bytes.extracting(start..<(start &+ count))
    var sum: UInt64 = 0
    for index in content.indices { sum &+= UInt64(content[index]) }
    return sum
  }

  /// Returns a column's integer; nil for other values or overflow.
  @inline(__always) static func integer(inColumn column: Int, of bytes: Span<UInt8>, payload: Range<Int>) -> Int64? {
    let end = min(payload.upperBound, bytes.count)
    var offset = payload.lowerBound
    guard let length = Varint.read(bytes, at: &offset, before: end), length > 0,
      length <= Int64(end &- payload.lowerBound)
    else { return nil }
    let headerEnd = payload.lowerBound &+ Int(length)
    var body = headerEnd
    var index = 0
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= end &- body
      else { return nil }
      if index == column {
        switch code {
        case 1...6: return bytes.signedInteger(at: body, length: width)
        case 8: return 0
        case 9: return 1
        default: return nil
        }
      }
      body &+= width
      index &+= 1
    }
    return nil
  }
}
