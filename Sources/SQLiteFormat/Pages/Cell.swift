/// A cell of a b-tree page: where its parts are, and what leads on from it (SQLite file format, "B-tree Cell Format").
public struct Cell: Sendable, Hashable {
  /// The longest payload that is believed: 2³¹ − 1 bytes, the most that SQLite can hold.
  public static let maximumPayloadLength = Int(Int32.max)

  /// The offset of its first byte on the page.
  public var offset: Int

  /// The number of bytes that it takes on the page, at least 4.
  public var length: Int

  /// The page of the keys before this one, on inner pages.
  public var leftChild: UInt32?

  /// The rowid, on pages of tables with rowids; 0 elsewhere.
  public var rowid: Int64

  /// The number of bytes of the whole payload; 0 on inner pages of tables.
  public var payloadLength: Int

  /// Where on the page the first bytes of the payload are.
  public var localPayload: Range<Int>

  /// The first overflow page, where the payload does not fit on this one.
  public var overflowPage: UInt32?
}

extension Cell {
  /// Reads the cell at an offset of a page; nil where it does not end within the usable bytes.
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
