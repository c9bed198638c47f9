internal import SQLiteFormat

/// A leaf or index interior cell.
struct LeafCell {
  var offset: Int

  var end: Int

  var rowid: Int64

  var payload: Int

  /// The payload bytes on this page.
  var local: Int

  /// The full payload length.
  var length: Int

  /// The first overflow page, or 0.
  var overflow: UInt32

  /// The index in the cell pointer array; -1 without a pointer.
  var index: Int

  var isOutOfOrder = false

  var isOfUnknownEntity = false

  /// Whether a value has an unexpected storage class.
  var isUnusual = false

  /// Whether the next cell is missing, so that what overwrote it may extend into this one.
  var isBesideDamage = false

  var hasReservedTypes = false

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

  /// Reads a cell; nil if it exceeds the usable bytes.
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
      // Page 0 doesn't exist: the overflow is lost, not absent.
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
