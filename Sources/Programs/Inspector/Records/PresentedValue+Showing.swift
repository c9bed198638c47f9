import HTTPServer
import RecordBrowsing
import StoreFiles

extension PresentedValue {
  /// The value for programs: numbers and booleans as such, dates, UUIDs and decimals as text, bytes as an object.
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

  /// The value as a field of CSV.
  var csv: String { form == .null ? "" : text }

  /// The value in a cell of a table, on one line.
  var html: HTML {
    switch form {
    case .null: return "<span class=\"null\">null</span>"
    case .text, .uri:
      let more: HTML = isCut ? "<span class=\"soft\">…</span>" : .empty
      return "\(Self.line(text))\(more)"
    case .bytes: return "<span class=\"soft\">\(text), \(Words.size(Int64(byteCount ?? 0)))</span>"
    case .file: return "<span class=\"soft\">in a file</span>"
    case .unexpected: return "<span class=\"odd\" title=\"not of the property's type\">\(Self.line(text))</span>"
    case .date: return "<time datetime=\"\(text)\">\(Self.moment(text))</time>"
    case .uuid: return "<code>\(text)</code>"
    case .integer, .real, .decimal, .boolean, .reference: return HTML(escaping: text)
    }
  }

  /// The value as a cell of a list: the longer a text is, the wider its column, so that few lines are a row.
  var cell: HTML {
    if isNumber { return "<td class=\"number\">\(html)</td>" }
    guard form == .text || form == .uri || form == .unexpected, text.utf8.count > Self.wide else {
      return "<td>\(html)</td>"
    }
    return text.utf8.count > Self.long ? "<td class=\"long\">\(html)</td>" : "<td class=\"wide\">\(html)</td>"
  }

  /// From how many bytes on a text has a wider column.
  private static let wide = 30

  /// From how many bytes on its column is as wide as a paragraph.
  private static let long = 90

  /// Whether it is aligned as numbers are.
  var isNumber: Bool { form == .integer || form == .real || form == .decimal }

  /// A date as it is read most easily: without the letters of RFC 3339.
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
  /// The state as a tag; none for what is certain.
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
  /// The numbers by the names of the states.
  var byName: [String: Int64] { [String: Int64](uniqueKeysWithValues: map { ($0.key.rawValue, $0.value) }) }
}
