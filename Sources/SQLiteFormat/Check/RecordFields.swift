/// A record's serial types and offsets, in reused storage.
struct RecordFields {
  private(set) var codes: [Int64] = []

  private(set) var starts: [Int] = []

  /// The fields read; later items are of an earlier record.
  private(set) var count = 0

  private(set) var end = 0

  /// Reads a record's first fields; returns false for an incomplete or invalid header.
  @inline(__always)
  mutating func read(_ bytes: Span<UInt8>, in range: Range<Int>, upTo most: Int) -> Bool {
    if codes.count < most {
      codes = [Int64](repeating: 0, count: most)
      starts = [Int](repeating: 0, count: most)
    }
    count = 0
    var offset = range.lowerBound
    guard let length = Varint.read(bytes, at: &offset, before: range.upperBound), length > 0,
      length <= Int64(range.count)
    else { return false }
    let headerEnd = range.lowerBound &+ Int(length)
    end = headerEnd
    return Self.read(bytes, &offset, before: headerEnd, upTo: most, &codes, &starts, &count, &end)
  }

  @inline(__always)
  private static func read(
    _ bytes: Span<UInt8>, _ offset: inout Int, before headerEnd: Int, upTo most: Int, _ codeList: inout [Int64],
    _ startList: inout [Int], _ count: inout Int, _ end: inout Int
  ) -> Bool {
    var codes = codeList.mutableSpan
    var starts = startList.mutableSpan
    while offset < headerEnd, count < most {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength
      else { return false }
      codes[count] = code
      starts[count] = end
      count &+= 1
      end &+= width
    }
    return true
  }
}

/// Checks a record's header as far as it is on the page.
enum RecordCheck {
  /// Whether serial types are legal and their lengths match the payload.
  static func isWellFormed(_ bytes: Span<UInt8>, cell: Cell) -> Bool {
    // Interior table pages have only keys.
    guard cell.payloadLength > 0 else { return cell.localPayload.isEmpty }
    let start = cell.localPayload.lowerBound
    var offset = start
    guard let length = Varint.read(bytes, at: &offset, before: cell.localPayload.upperBound), length > 0,
      length <= Int64(cell.payloadLength)
    else { return false }
    let headerEnd = start &+ Int(length)
    // An overflowing header is checked with the gathered payload.
    guard headerEnd <= cell.localPayload.upperBound else { return true }
    var body = Int(length)
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= cell.payloadLength &- body
      else { return false }
      body &+= width
    }
    return body == cell.payloadLength
  }
}
