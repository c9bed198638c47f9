/// The places of a record's fields within bytes: its serial types, and where each begins; its storage is used again.
struct RecordFields {
  /// The serial types of the fields.
  private(set) var codes: [Int64] = []

  /// Where each field begins, counted as the bytes are that were read.
  private(set) var starts: [Int] = []

  /// Where the last field that was asked for ends.
  private(set) var end = 0

  /// Reads the first fields of a record; false where its header is not wholly there or makes no sense.
  @inline(__always)
  mutating func read(_ bytes: Span<UInt8>, in range: Range<Int>, upTo count: Int) -> Bool {
    codes.removeAll(keepingCapacity: true)
    starts.removeAll(keepingCapacity: true)
    var offset = range.lowerBound
    guard let length = Varint.read(bytes, at: &offset, before: range.upperBound), length > 0,
      length <= Int64(range.count)
    else { return false }
    let headerEnd = range.lowerBound &+ Int(length)
    var body = headerEnd
    end = body
    while offset < headerEnd, codes.count < count {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength
      else { return false }
      codes.append(code)
      starts.append(body)
      body &+= width
    }
    end = body
    return true
  }
}
