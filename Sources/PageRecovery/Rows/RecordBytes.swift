internal import SQLiteFormat

/// Records made from values, for rows that do not stand as records in the evidence.
package enum RecordBytes {
  /// Encodes the stored columns of a row, the rowid's alias as NULL.
  static func encode(
    _ values: [Value], alias: Int?, _ definition: TableDefinition, into payload: inout [UInt8]
  ) {
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
    let length = header.count + 1 < 128 ? header.count + 1 : header.count + 2
    payload.removeAll(keepingCapacity: true)
    appendVarint(Int64(length), &payload)
    payload += header
    payload += body
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
  package static func appendVarint(_ value: Int64, _ bytes: inout [UInt8]) {
    var groups: [UInt8] = [UInt8(value & 0x7f)]
    var rest = value >> 7
    while rest > 0, groups.count < 9 {
      groups.append(UInt8(rest & 0x7f) | 0x80)
      rest >>= 7
    }
    bytes += groups.reversed()
  }
}
