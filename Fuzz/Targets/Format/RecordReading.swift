internal import SQLiteFormat

/// Reads bytes as a record.
enum RecordReading {
  static func run(_ bytes: [UInt8]) throws(FuzzFailure) {
    for encoding in [TextEncoding.utf8, .utf16LittleEndian, .utf16BigEndian] {
      for (start, length) in [(0, nil), (0, bytes.count + 100), (min(3, bytes.count), nil)] as [(Int, Int?)] {
        guard let record = Record(payload: bytes[start...], payloadLength: length, encoding: encoding) else { continue }
        try check(record)
      }
    }
    var offset = 0
    while offset < bytes.count {
      let before = offset
      guard Varint.read(bytes.span, at: &offset, before: bytes.count) != nil else { break }
      try expect(offset > before && offset <= before + 9, "a number of \(offset - before) bytes")
    }
  }

  /// Reads a record in every way, and compares the ways.
  static func check(_ record: Record) throws(FuzzFailure) {
    let values = record.values
    try expect(values.count == record.columnCount, "\(values.count) values in \(record.columnCount) columns")
    try expect(record.serialTypes.count == values.count, "other types than values")
    var decoded: [Value] = [.integer(1)]
    let isWhole = record.decode(into: &decoded)
    if record.isWellFormed && record.isComplete { try expect(isWhole, "a well-formed record is not whole") }
    var bytes = 0
    for (column, value) in values.enumerated() where column < 64 {
      bytes += value.bytes?.count ?? 0
      if let single = record.value(at: column) {
        try expect(single == value, "column \(column) differs when read alone")
      }
      if case .text(let text) = value {
        _ = text.string
        if let valid = text.validString {
          try expect(EncodedText(valid, encoding: text.encoding) == text, "valid text does not come back")
        }
      }
      _ = value.real
    }
    try expect(bytes <= record.payload.count, "more bytes in values than in the record")
    _ = record.value(at: -1)
    _ = record.value(at: .max)
  }
}
