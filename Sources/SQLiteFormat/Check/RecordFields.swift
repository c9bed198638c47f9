/// The places of a record's fields within bytes: its serial types, and where each begins; its storage is used again.
struct RecordFields {
  /// The serial types of the fields.
  private(set) var codes: [Int64] = []

  /// Where each field begins, counted as the bytes are that were read.
  private(set) var starts: [Int] = []

  /// How many fields were read; what lies behind them in the lists is of an earlier record.
  private(set) var count = 0

  /// Where the last field that was asked for ends.
  private(set) var end = 0

  /// Reads the first fields of a record; false where its header is not wholly there or makes no sense.
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

  /// Reads the serial types in a record's header.
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

/// Tells whether a cell's record fits its own header, as far as the header is on the page.
enum RecordCheck {
  /// Whether the serial types are legal and their lengths add up to the payload's.
  static func isWellFormed(_ bytes: Span<UInt8>, cell: Cell) -> Bool {
    // An inner page of a table has keys only.
    guard cell.payloadLength > 0 else { return cell.localPayload.isEmpty }
    let start = cell.localPayload.lowerBound
    var offset = start
    guard let length = Varint.read(bytes, at: &offset, before: cell.localPayload.upperBound), length > 0,
      length <= Int64(cell.payloadLength)
    else { return false }
    let headerEnd = start &+ Int(length)
    // A header that goes on behind the page is left to those who gather the payload.
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
