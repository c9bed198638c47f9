internal import SQLiteFormat

/// The serial types and ranges of a record's fields.
struct ScrubbedRecordFields {
  private(set) var codes: [Int64] = []

  private(set) var starts: [Int] = []

  /// The offset of each serial type.
  private(set) var heads: [Int] = []

  private(set) var headerEnd = 0

  /// Whether header and length agree.
  private(set) var isWellFormed = false

  /// Reads a record's header; false if malformed.
  ///
  /// - Parameters:
  ///   - end: the end of the available bytes.
  ///   - length: the length of the whole record.
  mutating func read(_ bytes: Span<UInt8>, at start: Int, before end: Int, length: Int) -> Bool {
    codes.removeAll(keepingCapacity: true)
    starts.removeAll(keepingCapacity: true)
    heads.removeAll(keepingCapacity: true)
    isWellFormed = false
    var offset = start
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end &- start) else {
      return false
    }
    headerEnd = start &+ Int(header)
    var body = headerEnd
    while offset < headerEnd {
      heads.append(offset)
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength, codes.count < 32768
      else { return false }
      codes.append(code)
      starts.append(body)
      body &+= width
    }
    isWellFormed = body &- start == length
    return true
  }

  /// Returns a field's available bytes; nil for a partial number.
  @inline(__always)
  func range(_ field: Int, before end: Int) -> Range<Int>? {
    let start = starts[field]
    let code = codes[field]
    let width = SerialType.length(of: code) ?? 0
    if width <= end &- start { return start..<(start &+ width) }
    guard code >= 12, start < end else { return nil }
    return start..<end
  }
}
