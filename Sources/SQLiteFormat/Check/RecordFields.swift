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
    var body = headerEnd
    end = body
    while offset < headerEnd, count < most {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength
      else { return false }
      codes[count] = code
      starts[count] = body
      count &+= 1
      body &+= width
    }
    end = body
    return true
  }
}
