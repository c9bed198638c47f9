internal import SQLiteFormat

/// A cell of a leaf, or of an inner page of an index: where it is and what it leads to.
struct LeafCell {
  /// The offset of its first byte on the page.
  var offset: Int

  /// Where it ends on the page.
  var end: Int

  /// The rowid; 0 where there is none.
  var rowid: Int64

  /// The offset of its payload.
  var payload: Int

  /// The bytes of the payload on this page.
  var local: Int

  /// The bytes of the whole payload.
  var length: Int

  /// The first overflow page, or 0 where the whole payload is on this page.
  var overflow: UInt32

  /// Its place in the cell pointer array; -1 where it was found without.
  var index: Int

  /// Whether its rowid contradicts those of its neighbours.
  var isOutOfOrder = false

  /// Whether the entity number of its row is none of its table's.
  var isOfUnknownEntity = false

  /// Whether a value of its row is of another kind than the column is declared for.
  var isUnusual = false

  /// Whether another cell should begin behind it and none does: what was written over that one may reach into it.
  var isBesideDamage = false

  /// Whether its row has fields of serial types that SQLite keeps for itself.
  var hasReservedTypes = false

  /// A cell that is on no page any more.
  init(rowid: Int64) {
    offset = 0
    end = 0
    self.rowid = rowid
    payload = 0
    local = 0
    length = 0
    overflow = 0
    index = -1
  }

  /// Reads a cell; nil where it does not end within the usable bytes.
  @inline(__always)
  init?(_ bytes: Span<UInt8>, kind: PageKind, at start: Int, index: Int, geometry: PayloadGeometry) {
    let end = geometry.usableSize
    guard start >= 0, start <= end &- 4 else { return nil }
    var offset = start
    if !kind.isLeaf { offset &+= 4 }
    guard let size = Varint.read(bytes, at: &offset, before: end), size > 0,
      size <= Int64(Cell.maximumPayloadLength)
    else { return nil }
    var rowid: Int64 = 0
    if kind == .tableLeaf {
      guard let value = Varint.read(bytes, at: &offset, before: end) else { return nil }
      rowid = value
    }
    let length = Int(size)
    let local = geometry.localLength(of: length, onTableLeaf: kind == .tableLeaf)
    guard local <= end &- offset else { return nil }
    var cellEnd = offset &+ local
    var overflow: UInt32 = 0
    if local < length {
      guard let page = bytes.uint32(at: cellEnd), cellEnd <= end &- 4 else { return nil }
      // No page is page 0: the rest is lost, and the cell must not be taken for one that has no rest.
      overflow = page == 0 ? .max : page
      cellEnd &+= 4
    }
    self.offset = start
    self.end = max(cellEnd, start &+ 4)
    self.rowid = rowid
    self.payload = offset
    self.local = local
    self.length = length
    self.overflow = overflow
    self.index = index
  }
}
