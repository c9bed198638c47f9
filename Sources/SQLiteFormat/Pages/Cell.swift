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
