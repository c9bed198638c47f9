/// A cursor over a table's rows in rowid order, or over an index's entries in key order.
///
/// Damage that it meets is noted in ``findings``, and the walk goes on behind it. It belongs to its database's thread.
public struct TableCursor {
  private var walk: BTreeWalk
  private var page: BTreePage?
  private var nextCell = 0
  private var lastRowid: Int64?
  private let payloadLimit: Int
  private var budget = PageBudget()
  private let database: Database

  init(_ database: Database, root: UInt32, isTable: Bool, payloadLimit: Int) throws(FormatError) {
    self.database = database
    self.payloadLimit = payloadLimit
    walk = try BTreeWalk(database: database, root: root, isTable: isTable)
  }

  /// What was wrong on the way so far.
  public var findings: Findings { walk.findings }

  /// The next row, or nil behind the last one.
  ///
  /// A row whose overflow chain is broken is given with the bytes that are there; ``Record/isComplete`` tells.
  public mutating func next() throws(FormatError) -> Row? {
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
      guard
        let record = Record(payload: payload, payloadLength: cell.payloadLength, encoding: database.encoding)
      else {
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

  private mutating func nextPlace() throws(FormatError) -> BTreeWalk.Place? {
    // Within a leaf no walk is needed.
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
  /// A cursor over the rows of a table with rowids, in rowid order.
  ///
  /// Of each record no more than `payloadLimit` bytes are read.
  public func rows(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FormatError) -> TableCursor {
    try TableCursor(self, root: root, isTable: true, payloadLimit: payloadLimit)
  }

  /// A cursor over the entries of an index, or over the rows of a table WITHOUT ROWID, in key order.
  public func entries(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FormatError) -> TableCursor {
    try TableCursor(self, root: root, isTable: false, payloadLimit: payloadLimit)
  }
}

/// A row of a table or an entry of an index as a cursor found it.
public struct Row: Sendable {
  /// The rowid; 0 in indexes and tables WITHOUT ROWID.
  public var rowid: Int64

  /// The columns.
  public var record: Record

  /// The page of the cell.
  public var page: UInt32

  /// The place of the cell in its page's cell pointer array, counted from 0.
  public var cell: Int
}

/// The bytes of a page that its cells may still take in all.
///
/// In a sound page no byte belongs to two cells. Without this bound, thousands of pointers to one long cell would make a
/// small file give gigabytes of rows.
struct PageBudget {
  private var page: UInt32?
  private var rest = 0

  /// Takes a cell's bytes from its page; false where the page has given more than it holds already.
  @inline(__always)
  mutating func take(_ length: Int, of page: BTreePage) -> Bool {
    if self.page != page.number {
      self.page = page.number
      rest = page.geometry.usableSize
    }
    guard length <= rest else { return false }
    rest &-= length
    return true
  }
}
