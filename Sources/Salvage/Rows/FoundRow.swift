/// Where a cell is.
struct CellPlace: Hashable {
  /// The page.
  var page: UInt32

  /// The offset of its payload on it.
  var payload: Int
}

/// A row of a table, as it stands on a page, before it is written.
struct FoundRow {
  /// The number of its tree.
  var tree: Int

  /// The page that its cell is on.
  var page: UInt32

  /// Its cell.
  var cell: LeafCell

  /// Why it is doubtful; nil where it is not.
  var doubtReason: DoubtReason?
}

/// Room for reading one page after the other, used again.
struct PageRoom {
  /// The bytes of the page.
  var buffer: [UInt8]

  /// The bytes of a row that is put together.
  var payload: [UInt8] = []

  /// The cells of the page.
  var scan = LeafScan()

  init(_ reader: PageReader) { buffer = reader.makeBuffer() }
}
