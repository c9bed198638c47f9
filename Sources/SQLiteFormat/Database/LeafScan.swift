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

  @inline(__always)
  private mutating func addRecord(_ bytes: Span<UInt8>, from start: Int, to end: Int) {
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

  @inline(__always)
  private static func sum(_ bytes: Span<UInt8>, from start: Int, count: Int) -> UInt64 {
    let content = bytes.extracting(start..<(start &+ count))
    var sum: UInt64 = 0
    for index in content.indices { sum &+= UInt64(content[index]) }
    return sum
  }

  /// Returns a column's integer; nil for other values or overflow.
  @inline(__always)
  static func integer(inColumn column: Int, of bytes: Span<UInt8>, payload: Range<Int>) -> Int64? {
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
