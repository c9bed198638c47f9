internal import GRDB
import HTTPServer
internal import PersistentStore
internal import Platform

/// A record's value for display: text for people, typed for programs.
package struct PresentedValue: Sendable, Hashable {
  package enum Form: String, Sendable, Hashable {
    case null, integer, real, decimal, boolean, text, date, uuid, uri, bytes

    case file

    case reference

    /// A value of an unexpected type.
    case unexpected
  }

  package var form: Form

  /// The text, or a description of bytes.
  package var text: String

  package var isCut = false

  /// The bytes' or cut text's length.
  package var byteCount: Int?

  var destination: String?

  var number: Double?

  init(_ form: Form, _ text: String, number: Double? = nil) {
    self.form = form
    self.text = text
    self.number = number
  }

  /// - Parameter limit: the most characters of text.
  init(_ value: DatabaseValue, of column: RecordColumn, entityNames: [Int: String], limit: Int) {
    if value.isNull {
      self.init(.null, "")
      return
    }
    switch column.kind {
    case .key: self = Self.plain(value, limit: limit)
    case .entity:
      let number = Int64.fromDatabaseValue(value).flatMap { Int(exactly: $0) }
      self.init(.text, number.flatMap { entityNames[$0] } ?? Self.plain(value, limit: limit).text)
    case .toOne(let destination):
      guard let key = Int64.fromDatabaseValue(value) else {
        self = Self.unexpected(value, limit: limit)
        return
      }
      self.init(.reference, String(key))
      self.destination = destination
    case .stored: self = Self.plain(value, limit: limit)
    case .attribute(let type, let isMarked):
      self = Self.attribute(
        RecordValue(StoredValue(value), type: type, allowsExternalStorage: isMarked), value, limit: limit)
    }
  }

  private static func attribute(_ value: RecordValue, _ stored: DatabaseValue, limit: Int) -> PresentedValue {
    switch value {
    case .null: return PresentedValue(.null, "")
    case .integer(let number): return .init(.integer, String(number), number: Double(number))
    case .real(let number): return .init(.real, "\(number)", number: number)
    case .decimal(let text): return cut(.decimal, text, limit)
    case .boolean(let flag): return PresentedValue(.boolean, flag ? "true" : "false")
    case .string(let text): return cut(.text, text, limit)
    case .date(let seconds): return .init(.date, date(seconds), number: seconds)
    case .uuid(let bytes): return PresentedValue(.uuid, uuid(bytes))
    case .uri(let text): return cut(.uri, text, limit)
    case .data(let bytes): return self.bytes(bytes)
    case .externalData(let name): return PresentedValue(.file, name)
    case .unexpected: return unexpected(stored, limit: limit)
    }
  }

  static func plain(_ value: DatabaseValue, limit: Int) -> PresentedValue {
    switch value.storage {
    case .null: return PresentedValue(.null, "")
    case .int64(let number): return .init(.integer, String(number), number: Double(number))
    case .double(let number): return .init(.real, "\(number)", number: number)
    case .string(let text): return cut(.text, text, limit)
    case .blob(let data): return bytes([UInt8](data))
    }
  }

  private static func unexpected(_ value: DatabaseValue, limit: Int) -> PresentedValue {
    var result = plain(value, limit: limit)
    result.form = .unexpected
    return result
  }

  private static func cut(_ form: Form, _ text: String, _ limit: Int) -> PresentedValue {
    guard text.utf8.count > limit, text.count > limit else { return PresentedValue(form, text) }
    var result = PresentedValue(form, String(text.prefix(limit)))
    result.isCut = true
    result.byteCount = text.utf8.count
    return result
  }

  private static func bytes(_ bytes: [UInt8]) -> PresentedValue {
    var result = PresentedValue(.bytes, BytesKind(bytes).words)
    result.byteCount = bytes.count
    return result
  }

  /// A date in RFC 3339 with fractional seconds; outside the years 1 to 9999, in seconds.
  static func date(_ seconds: Double) -> String {
    guard seconds.isFinite, abs(seconds) < 250_000_000_000 else { return "\(seconds) s since 2001" }
    let whole = seconds.rounded(.down)
    let moment = Timestamp(secondsSince1970: Int64(whole) + 978_307_200)
    guard moment.secondsSince1970 > -62_135_596_800 else { return "\(seconds) s since 2001" }
    let thousandths = Int(((seconds - whole) * 1000).rounded(.down))
    guard thousandths > 0 else { return moment.rfc3339 }
    let digits = String(1000 + thousandths).dropFirst()
    return "\(moment.rfc3339.dropLast()).\(digits)Z"
  }

  static func uuid(_ bytes: [UInt8]) -> String {
    var result: [UInt8] = []
    result.reserveCapacity(36)
    for (index, byte) in bytes.enumerated() {
      if index == 4 || index == 6 || index == 8 || index == 10 { result.append(UInt8(ascii: "-")) }
      for half in [byte >> 4, byte & 15] {
        result.append(half < 10 ? UInt8(ascii: "0") + half : UInt8(ascii: "A") + half - 10)
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// The JSON value: numbers and booleans as such, dates, UUIDs and decimals as text, bytes as an object.
  var json: JSON.Value {
    switch form {
    case .null: return .null
    case .integer, .reference: return Int64(text).map { .integer($0) } ?? .string(text)
    case .boolean: return .boolean(text == "true")
    case .real:
      guard let number, number.isFinite else { return .string(text) }
      return .real(number)
    case .decimal, .date, .uuid: return .string(text)
    case .text, .uri: return isCut ? ["cut": .string(text), "bytes": .integer(Int64(byteCount ?? 0))] : .string(text)
    case .bytes: return ["bytes": .integer(Int64(byteCount ?? 0)), "kind": .string(text)]
    case .file: return ["file": .string(text)]
    case .unexpected: return ["unexpected": .string(text)]
    }
  }

  var csv: String { form == .null ? "" : text }

  var html: HTML {
    switch form {
    case .null: return "<span class=\"null\">null</span>"
    case .text, .uri:
      let more: HTML = isCut ? "<span class=\"soft\">…</span>" : .empty
      return "\(Self.line(text))\(more)"
    case .bytes: return "<span class=\"soft\">\(text), \(readableSize(Int64(byteCount ?? 0)))</span>"
    case .file: return "<span class=\"soft\">in a file</span>"
    case .unexpected: return "<span class=\"odd\" title=\"not of the property's type\">\(Self.line(text))</span>"
    case .date: return "<time datetime=\"\(text)\">\(Self.moment(text))</time>"
    case .uuid: return "<code>\(text)</code>"
    case .integer, .real, .decimal, .boolean, .reference: return HTML(escaping: text)
    }
  }

  /// The list cell; longer texts get wider columns, to keep rows low.
  var cell: HTML {
    if isNumber { return "<td class=\"number\">\(html)</td>" }
    guard form == .text || form == .uri || form == .unexpected, text.utf8.count > Self.wide else {
      return "<td>\(html)</td>"
    }
    return text.utf8.count > Self.long ? "<td class=\"long\">\(html)</td>" : "<td class=\"wide\">\(html)</td>"
  }

  /// The bytes from which a column is wider.
  private static let wide = 30

  /// The bytes from which a column is paragraph-wide.
  private static let long = 90

  var isNumber: Bool { form == .integer || form == .real || form == .decimal }

  /// A date without the letters of RFC 3339.
  private static func moment(_ text: String) -> String {
    var bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"), bytes[10] == UInt8(ascii: "T") else { return text }
    bytes.removeLast()
    bytes[10] = UInt8(ascii: " ")
    if bytes.count == 19, bytes[11...].elementsEqual("00:00:00".utf8) { bytes.removeLast(9) }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func line(_ text: String) -> HTML {
    guard text.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D || $0 == 0x09 }) else { return HTML(escaping: text) }
    return HTML(escaping: text.replacing("\r\n", with: "⏎").replacing("\n", with: "⏎").replacing("\t", with: " "))
  }
}

extension RowState {
  /// The state as a tag; empty if certain.
  var tag: HTML {
    switch self {
    case .certain: .empty
    case .probable: "<span class=\"tag accent\">\(words)</span>"
    case .doubtful, .part: "<span class=\"tag warn\">\(words)</span>"
    case .deleted, .uncommitted, .version: "<span class=\"tag bad\">\(words)</span>"
    }
  }
}

extension [RowState: Int64] {
  var byName: [String: Int64] { [String: Int64](uniqueKeysWithValues: map { ($0.key.rawValue, $0.value) }) }
}

/// The type of bytes, recognized by their beginning.
enum BytesKind: String, Sendable, Hashable, CaseIterable {
  case empty, png, jpeg, gif, webp, heic, pdf, gzip, zip, sqlite
  case binaryPropertyList = "binary-plist"
  case xml, json, text, unknown

  init(_ bytes: [UInt8]) {
    func begins(_ prefix: [UInt8], at start: Int = 0) -> Bool {
      bytes.count >= start + prefix.count && bytes[start..<(start + prefix.count)].elementsEqual(prefix)
    }
    if bytes.isEmpty {
      self = .empty
    } else if begins(Array("RIFF".utf8)), begins(Array("WEBP".utf8), at: 8) {
      self = .webp
    } else if let known = Self.signatures.first(where: { begins($0.bytes, at: $0.start) }) {
      self = known.kind
    } else if let text = Self.text(bytes) {
      let first = text.unicodeScalars.first { !$0.properties.isWhitespace }
      self = first == "{" || first == "[" ? .json : .text
    } else {
      self = .unknown
    }
  }

  private static let signatures: [(kind: BytesKind, start: Int, bytes: [UInt8])] = [
    (.png, 0, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]), (.jpeg, 0, [0xFF, 0xD8, 0xFF]),
    (.gif, 0, Array("GIF87a".utf8)), (.gif, 0, Array("GIF89a".utf8)), (.heic, 4, Array("ftyphei".utf8)),
    (.heic, 4, Array("ftypmif1".utf8)), (.pdf, 0, Array("%PDF-".utf8)), (.gzip, 0, [0x1F, 0x8B]),
    (.zip, 0, [0x50, 0x4B, 0x03, 0x04]), (.sqlite, 0, Array("SQLite format 3\0".utf8)),
    (.binaryPropertyList, 0, Array("bplist0".utf8)), (.xml, 0, Array("<?xml".utf8)),
  ]

  /// Whether browsers may receive the bytes as an image.
  var isPicture: Bool { [.png, .jpeg, .gif, .webp].contains(self) }

  /// The media type of an image; plain bytes for all else.
  var mediaType: String { isPicture ? "image/\(rawValue)" : "application/octet-stream" }

  var words: String {
    switch self {
    case .empty: "no bytes"
    case .png: "PNG picture"
    case .jpeg: "JPEG picture"
    case .gif: "GIF picture"
    case .webp: "WebP picture"
    case .heic: "HEIC picture"
    case .pdf: "PDF document"
    case .gzip: "gzip data"
    case .zip: "ZIP archive"
    case .sqlite: "SQLite database"
    case .binaryPropertyList: "property list"
    case .xml: "XML"
    case .json: "JSON"
    case .text: "text"
    case .unknown: "bytes"
    }
  }

  /// The first thousand bytes as text, if valid.
  private static func text(_ bytes: [UInt8]) -> String? {
    var head = Array(bytes.prefix(1024))
    // A character split by the cut is dropped.
    if bytes.count > head.count { while let last = head.last, last >= 0x80 { head.removeLast() } }
    guard !head.isEmpty, !head.contains(where: { $0 < 0x20 && ![0x09, 0x0A, 0x0D].contains($0) }) else { return nil }
    return String(utf8: head)
  }
}
