internal import SQLiteFormat

/// Encodes records that the evidence lacks.
enum RecordBytes {
  /// Encodes a row's stored columns, the rowid alias as NULL.
  static func encode(_ values: [Value], alias: Int?, _ definition: TableDefinition) -> [UInt8] {
    var header: [UInt8] = []
    var body: [UInt8] = []
    var next = 0
    for place in definition.storedColumns {
      if place == alias {
        header.append(0)
      } else if next < values.count {
        append(values[next], &header, &body)
        next += 1
      }
    }
    return record(header, body)
  }

  /// Returns a truncated record with partial text and NULL for other missing fields; nil without a complete header.
  static func part(_ beginning: [UInt8], encoding: TextEncoding) -> [UInt8]? {
    let bytes = beginning.span
    var offset = 0
    guard let length = Varint.read(bytes, at: &offset, before: bytes.count), length > Int64(offset),
      length <= Int64(bytes.count)
    else { return nil }
    var header: [UInt8] = []
    var body: [UInt8] = []
    var place = Int(length)
    while offset < Int(length) {
      guard let code = Varint.read(bytes, at: &offset, before: Int(length)), let width = SerialType.length(of: code)
      else { return nil }
      let left = max(0, bytes.count - place)
      if width <= left {
        appendVarint(code, &header)
        body += beginning[place..<(place + width)]
      } else if code >= 13, code & 1 == 1 {
        let text = wholeCharacters(beginning[(bytes.count - left)...], encoding)
        if text.isEmpty { header.append(0) } else { appendVarint(Int64(13 + 2 * text.count), &header) }
        body += text
      } else {
        header.append(0)
      }
      // Widths are bounded by the file, and so is their sum.
      place = width <= left ? place + width : bytes.count
    }
    return record(header, body)
  }

  /// Removes an incomplete character from a text's end.
  private static func wholeCharacters(_ text: ArraySlice<UInt8>, _ encoding: TextEncoding) -> ArraySlice<UInt8> {
    var text = text
    switch encoding {
    case .utf8:
      // At most three bytes precede the last byte of a character.
      var behind = 0
      while behind < min(4, text.count) {
        let byte = text[text.endIndex - 1 - behind]
        behind += 1
        guard byte & 0xc0 == 0x80 else {
          let needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
          if needed > behind { text.removeLast(behind) }
          break
        }
      }
    case .utf16LittleEndian, .utf16BigEndian:
      if !text.count.isMultiple(of: 2) { text.removeLast() }
      guard text.count >= 2 else { break }
      let unit = encoding == .utf16BigEndian ? text[text.endIndex - 2] : text[text.endIndex - 1]
      if unit & 0xfc == 0xd8 { text.removeLast(2) }
    }
    return text
  }

  private static func record(_ header: [UInt8], _ body: [UInt8]) -> [UInt8] {
    var length = header.count + 1
    while length < header.count + Varint.length(of: Int64(length)) { length += 1 }
    var record: [UInt8] = []
    appendVarint(Int64(length), &record)
    record += header
    record += body
    return record
  }

  private static func append(_ value: Value, _ header: inout [UInt8], _ body: inout [UInt8]) {
    switch value {
    case .null: header.append(0)
    case .integer(let number):
      header.append(6)
      for shift in stride(from: 56, through: 0, by: -8) { body.append(UInt8(truncatingIfNeeded: number >> shift)) }
    case .real(let number):
      header.append(7)
      let bits = number.bitPattern
      for shift in stride(from: 56, through: 0, by: -8) {
        body.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
      }
    case .text(let text):
      appendVarint(Int64(13 + 2 * text.bytes.count), &header)
      body += text.bytes
    case .blob(let bytes):
      appendVarint(Int64(12 + 2 * bytes.count), &header)
      body += bytes
    }
  }

  /// Appends a number of up to 63 bits as a varint.
  @inlinable
  static func appendVarint(_ value: Int64, _ bytes: inout [UInt8]) {
    var groups: [UInt8] = [UInt8(value & 0x7f)]
    var rest = value >> 7
    while rest > 0, groups.count < 9 {
      groups.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    bytes += groups.reversed()
  }
}
