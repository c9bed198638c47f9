/// A single `Range` (RFC 9110, section 14.2).
package enum ByteRange: Sendable, Hashable {
  /// The whole body: the field is missing, malformed or has several ranges.
  case whole

  case part(Range<Int64>)

  case unsatisfiable

  package init(_ field: String?, of count: Int64) { self = Self.single(field, of: count) ?? .whole }

  private static func single(_ field: String?, of count: Int64) -> ByteRange? {
    guard let field, field.utf8.count <= 200 else { return nil }
    let parts = field.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, parts[0].lowercased() == "bytes", !parts[1].contains(",") else { return nil }
    let ends = parts[1].trimmingSpaces.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2, ends.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } }) else { return nil }
    // A number beyond 64 bits is past any end.
    let first = ends[0].isEmpty ? nil : Int64(ends[0]) ?? .max
    let last = ends[1].isEmpty ? nil : Int64(ends[1]) ?? .max
    switch (first, last) {
    case (let first?, let last?) where first > last: return nil
    case (let first?, let last):
      let end = last.map { $0 >= count ? count : $0 + 1 } ?? count
      return first < count ? .part(first..<end) : .unsatisfiable
    case (nil, let last?): return last > 0 && count > 0 ? .part(max(0, count - last)..<count) : .unsatisfiable
    case (nil, nil): return nil
    }
  }
}

extension Response {
  /// Answers a request for tagged bytes with 304, 206, 416 or 200.
  package static func ranges(
    _ bytes: any RangeReadable, tag: EntityTag, type: String, for request: Request
  ) -> Response {
    var headers: HeaderFields = [
      "Content-Type": type, "ETag": tag.field, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache",
    ]
    if let list = request.headers["If-None-Match"], tag.isListed(in: list, weakCounts: true) {
      return Response(.notModified, headers: headers)
    }
    // Dates and weak tags are not strong enough.
    let isSame = request.headers["If-Range"].map { $0.trimmingSpaces == tag.field } ?? true
    let range = isSame && request.method.isSafe ? ByteRange(request.headers["Range"], of: bytes.count) : .whole
    switch range {
    case .whole: return Response(headers: headers, body: .ranges(bytes))
    case .part(let range):
      headers.add("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(bytes.count)")
      return Response(.partialContent, headers: headers, body: .ranges(PartOfBytes(whole: bytes, range: range)))
    case .unsatisfiable:
      headers.add("Content-Range", "bytes */\(bytes.count)")
      return Response(.rangeNotSatisfiable, headers: headers)
    }
  }
}

package struct BytesInMemory: RangeReadable {
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  package var count: Int64 { Int64(bytes.count) }

  package func read(at offset: Int64, length: Int) -> [UInt8] {
    guard offset >= 0, offset < count, length > 0 else { return [] }
    return Array(bytes[Int(offset)..<min(bytes.count, Int(offset) + min(length, bytes.count))])
  }
}

/// Bytes of known length with thread-safe random access.
package protocol RangeReadable: Sendable {
  var count: Int64 { get }

  /// Reads up to `length` bytes, fewer only at the end; an error breaks the connection.
  func read(at offset: Int64, length: Int) throws -> [UInt8]
}

struct PartOfBytes: RangeReadable {
  let whole: any RangeReadable
  let range: Range<Int64>

  var count: Int64 { range.upperBound - range.lowerBound }

  func read(at offset: Int64, length: Int) throws -> [UInt8] {
    guard offset >= 0, offset < count, length > 0 else { return [] }
    return try whole.read(at: range.lowerBound + offset, length: Int(min(Int64(length), count - offset)))
  }
}

/// A strong tag: equal tags, equal bytes (RFC 9110, section 8.8.3).
package struct EntityTag: Sendable, Hashable {
  /// The opaque part, unquoted.
  let value: String

  /// Accepts letters, digits, `-`, `_`, `.`, `+`, `/` and `=`.
  package init?(_ value: String) {
    guard !value.isEmpty, value.utf8.count <= 200,
      value.utf8.allSatisfy({ HeaderFields.Field.isTokenByte($0) || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "=") }
      )
    else { return nil }
    self.value = value
  }

  var field: String { "\"\(value)\"" }

  func isListed(in field: String, weakCounts: Bool) -> Bool {
    field.split(separator: ",").map(\.trimmingSpaces).contains { item in
      item == "*" || item == self.field || weakCounts && item == "W/" + self.field
    }
  }
}
