/// The columns of a row or index entry, decoded on demand (SQLite file format, "Record Format").
public struct Record: Sendable {
  /// The header and body, shorter than ``payloadLength`` if unreadable or not requested.
  public let payload: ArraySlice<UInt8>

  /// The record's length according to its cell.
  public let payloadLength: Int

  /// The text encoding.
  public let encoding: TextEncoding

  /// The header's length in bytes, including its own length field.
  public let headerLength: Int

  private let firstSerialType: Int

  /// Creates a record; nil without a complete header.
  ///
  /// `payloadLength` comes from the cell and exceeds `payload` if a part is missing.
  public init?(payload: ArraySlice<UInt8>, payloadLength: Int? = nil, encoding: TextEncoding) {
    let bytes = payload.span
    var offset = 0
    guard let length = Varint.read(bytes, at: &offset, before: bytes.count), length >= Int64(offset),
      length <= Int64(bytes.count)
    else { return nil }
    self.payload = payload
    self.payloadLength = payloadLength ?? payload.count
    self.encoding = encoding
    self.headerLength = Int(length)
    self.firstSerialType = offset
  }

  /// Whether all bytes are present.
  public var isComplete: Bool { payload.count >= payloadLength }

  /// Whether the header fits the payload exactly, with legal serial types.
  public var isWellFormed: Bool {
    var body = headerLength
    var isLegal = true
    let headerEnd = forEachSerialType { code in
      guard let length = SerialType.length(of: code), length <= payloadLength &- body else {
        isLegal = false
        return false
      }
      body &+= length
      return true
    }
    return isLegal && headerEnd && body == payloadLength
  }

  /// The number of columns in the header.
  public var columnCount: Int {
    var count = 0
    _ = forEachSerialType { _ in
      count &+= 1
      return true
    }
    return count
  }

  /// The columns' serial types.
  public var serialTypes: [SerialType] {
    var types: [SerialType] = []
    _ = forEachSerialType { code in
      types.append(SerialType(rawValue: code))
      return true
    }
    return types
  }

  /// Returns a column's value, counting from 0; nil if the column or its bytes are missing.
  public func value(at column: Int) -> Value? {
    var body = headerLength
    var index = 0
    var wanted: Int64?
    _ = forEachSerialType { code in
      if index == column {
        wanted = code
        return false
      }
      index &+= 1
      guard let length = SerialType.length(of: code), length <= payload.count &- body else { return false }
      body &+= length
      return true
    }
    guard let wanted, column >= 0 else { return nil }
    return SerialType.value(of: wanted, in: payload.span, at: body, encoding: encoding)
  }

  /// The values of all columns; NULL replaces missing ones.
  public var values: [Value] {
    var values: [Value] = []
    decode(into: &values)
    return values
  }

  /// Decodes all columns into a reused array; returns whether all were present.
  @discardableResult public func decode(into values: inout [Value]) -> Bool {
    values.removeAll(keepingCapacity: true)
    let bytes = payload.span
    var body = headerLength
    var allThere = true
    let headerEnd = forEachSerialType { code in
      guard allThere, let length = SerialType.length(of: code), length <= payload.count &- body,
        let value = SerialType.value(of: code, in: bytes, at: body, encoding: encoding)
      else {
        allThere = false
        values.append(.null)
        return true
      }
      values.append(value)
      body &+= length
      return true
    }
    return allThere && headerEnd
  }

  /// Calls `body` with each serial type until it returns false; returns whether the header ends exactly.
  @inline(__always) private func forEachSerialType(_ body: (Int64) -> Bool) -> Bool {
    let bytes = payload.span
    var offset = firstSerialType
    while offset < headerLength {
      guard let code = Varint.read(bytes, at: &offset, before: headerLength) else { return false }
      if !body(code) { return true }
    }
    return true
  }
}

/// A record header's code for a column's type and length (SQLite file format, "Serial Type Codes Of The Record
/// Format").
public struct SerialType: RawRepresentable, Sendable, Hashable {
  /// The stored code.
  public var rawValue: Int64

  /// Creates a serial type.
  public init(rawValue: Int64) { self.rawValue = rawValue }

  @inlinable @inline(__always) package static func length(of code: Int64) -> Int? {
    if code >= 12 { return Int((code &- 12) >> 1) }
    guard code >= 0, code < 10 else { return nil }
    // The lengths of codes 0 to 9, four bits each, lowest first: 0, 1, 2, 3, 4, 6, 8, 8, 0, 0.
    return (0x00_8864_3210 as Int) >> Int(4 &* code) & 0xf
  }

  static func value(of code: Int64, in bytes: Span<UInt8>, at offset: Int, encoding: TextEncoding) -> Value? {
    switch code {
    case 0: return .null
    case 8: return .integer(0)
    case 9: return .integer(1)
    case 1, 2, 3, 4, 5, 6:
      guard let length = length(of: code), let value = bytes.signedInteger(at: offset, length: length) else {
        return nil
      }
      return .integer(value)
    case 7:
      guard let bits = bytes.signedInteger(at: offset, length: 8) else { return nil }
      let value = Double(bitPattern: UInt64(bitPattern: bits))
      return value.isNaN ? .null : .real(value)
    default:
      guard let length = length(of: code), offset >= 0, length <= bytes.count &- offset else { return nil }
      let content = Array(copying: bytes.extracting(offset..<(offset &+ length)))
      return code & 1 == 0 ? .blob(content) : .text(EncodedText(bytes: content, encoding: encoding))
    }
  }
}

extension Array where Element == UInt8 {
  package init(copying span: Span<UInt8>) {
    self.init(capacity: span.count) { (output: inout OutputSpan<UInt8>) in
      for index in span.indices { output.append(span[index]) }
    }
  }
}

/// A record's serial types and offsets, in reused storage.
struct RecordFields {
  private(set) var codes: [Int64] = []

  private(set) var starts: [Int] = []

  /// The fields read; later items are of an earlier record.
  private(set) var count = 0

  private(set) var end = 0

  /// Reads a record's first fields; returns false for an incomplete or invalid header.
  @inline(__always) mutating func read(_ bytes: Span<UInt8>, in range: Range<Int>, upTo most: Int) -> Bool {
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

  @inline(__always) private static func read(
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
