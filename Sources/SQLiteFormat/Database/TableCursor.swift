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

  init(_ database: Database, root: UInt32, isTable: Bool, payloadLimit: Int) throws(FormatError) {
    self.database = database
    self.payloadLimit = payloadLimit
    walk = try BTreeWalk(database: database, root: root, isTable: isTable)
  }

  /// The damage met so far.
  public var findings: Findings { walk.findings }

  /// Returns the next row, or nil at the end.
  ///
  /// A broken overflow chain leaves the row incomplete; see ``Record/isComplete``.
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
  public func rows(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FormatError) -> TableCursor {
    try TableCursor(self, root: root, isTable: true, payloadLimit: payloadLimit)
  }

  /// Returns a cursor over an index or a table WITHOUT ROWID.
  public func entries(root: UInt32, payloadLimit: Int = Cell.maximumPayloadLength) throws(FormatError) -> TableCursor {
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
