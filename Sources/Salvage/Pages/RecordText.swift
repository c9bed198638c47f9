internal import SQLiteFormat

/// Validates text in records.
enum RecordText {
  /// Validates a record's text, up to where an overflow page continues it.
  static func isValid(_ bytes: Span<UInt8>, at start: Int, before end: Int, encoding: TextEncoding) -> Bool {
    var offset = start
    let end = min(end, bytes.count)
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end &- start) else {
      return false
    }
    let headerEnd = start &+ Int(header)
    var body = headerEnd
    while offset < headerEnd, body < end {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code)
      else {
        return false
      }
      if code >= 13, code & 1 == 1 {
        // A damaged record can claim a width that would overflow a sum.
        let isWhole = width <= end &- body
        let limit = isWhole ? body &+ width : end
        switch encoding {
        case .utf8:
          guard isUTF8(bytes, from: body, to: limit, mayBeCut: !isWhole) else { return false }
        case .utf16LittleEndian, .utf16BigEndian:
          guard
            isUTF16(bytes, from: body, to: limit, mayBeCut: !isWhole, isBigEndian: encoding == .utf16BigEndian)
          else { return false }
        }
      }
      guard width <= end &- body else { return true }
      body &+= width
    }
    return true
  }

  /// The record's length by its header, if readable.
  static func length(_ bytes: Span<UInt8>, at start: Int, before end: Int) -> Int? {
    var offset = start
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end &- start) else {
      return nil
    }
    let headerEnd = start &+ Int(header)
    var length = Int(header)
    while offset < headerEnd {
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength
      else { return nil }
      length &+= width
    }
    return length
  }

  /// Whether a piece of text is valid.
  ///
  /// - Parameters:
  ///   - isCutBefore: whether it may begin within a character.
  ///   - isCutBehind: whether it may end within one.
  static func isValid(
    _ bytes: Span<UInt8>, _ text: Range<Int>, isCutBefore: Bool, isCutBehind: Bool = false, _ encoding: TextEncoding
  ) -> Bool {
    var start = text.lowerBound
    switch encoding {
    case .utf8:
      if isCutBefore {
        let limit = min(start + 3, text.upperBound)
        while start < limit, bytes[start] & 0xc0 == 0x80 { start += 1 }
      }
      return isUTF8(bytes, from: start, to: text.upperBound, mayBeCut: isCutBehind)
    case .utf16LittleEndian, .utf16BigEndian:
      let isBigEndian = encoding == .utf16BigEndian
      if isCutBefore, start + 1 < text.upperBound {
        let unit = isBigEndian ? bytes[start] : bytes[start + 1]
        if unit >= 0xdc, unit <= 0xdf { start += 2 }
      }
      return isUTF16(bytes, from: start, to: text.upperBound, mayBeCut: isCutBehind, isBigEndian: isBigEndian)
    }
  }

  /// Whether bytes are UTF-8 (RFC 3629), with a possibly incomplete end.
  @inline(__always)
  private static func isUTF8(_ bytes: Span<UInt8>, from start: Int, to end: Int, mayBeCut: Bool) -> Bool {
    var all: UInt8 = 0
    let text = bytes.extracting(start..<end)
    for index in text.indices { all |= text[index] }
    guard all >= 0x80 else { return true }
    var index = start
    while index < end {
      let byte = bytes[index]
      if byte < 0x80 {
        index &+= 1
        continue
      }
      let length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
      guard byte >= 0xc2, byte <= 0xf4 else { return false }
      guard index &+ length <= end else { return mayBeCut }
      let second = bytes[index &+ 1]
      guard second & 0xc0 == 0x80 else { return false }
      switch byte {
      case 0xe0 where second < 0xa0, 0xed where second > 0x9f, 0xf0 where second < 0x90, 0xf4 where second > 0x8f:
        return false
      default: break
      }
      if length > 2, bytes[index &+ 2] & 0xc0 != 0x80 { return false }
      if length > 3, bytes[index &+ 3] & 0xc0 != 0x80 { return false }
      index &+= length
    }
    return true
  }

  private static func isUTF16(
    _ bytes: Span<UInt8>, from start: Int, to end: Int, mayBeCut: Bool, isBigEndian: Bool
  ) -> Bool {
    guard mayBeCut || (end - start).isMultiple(of: 2) else { return false }
    var index = start
    var isHighBefore = false
    while index + 1 < end {
      let unit = isBigEndian ? bytes[index] : bytes[index + 1]
      let isHigh = unit >= 0xd8 && unit <= 0xdb
      let isLow = unit >= 0xdc && unit <= 0xdf
      if isLow != isHighBefore { return false }
      isHighBefore = isHigh
      index += 2
    }
    return mayBeCut || !isHighBefore
  }
}
