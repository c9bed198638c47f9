import HTTPServer
import Platform
import SQLiteFormat

/// Bytes shown as a picture or text among a record's values.
enum DecodedValue: Sendable {
  /// A picture safe for browsers.
  case picture

  /// Text, JSON, or a property list's content, cut to a length.
  case text(String, isCut: Bool, kind: BytesKind)

  private static let maximumBytes = 1 << 20

  /// The largest picture in bytes shown unasked.
  private static let maximumPicture = 4 << 20

  private static let maximumLength = 4_000

  /// Decodes bytes; nil if only their own page shows them.
  init?(_ bytes: [UInt8]) {
    let kind = BytesKind(bytes)
    if kind.isPicture {
      guard bytes.count <= Self.maximumPicture else { return nil }
      self = .picture
      return
    }
    guard bytes.count <= Self.maximumBytes, let whole = Self.text(bytes, kind) else { return nil }
    let cut = String(whole.prefix(Self.maximumLength))
    self = .text(cut, isCut: cut.utf8.count < whole.utf8.count, kind: kind)
  }

  static func all(
    of row: RecordPage.Row, _ columns: [RecordColumn], _ key: RecordKey, _ collection: RecordCollection,
    in store: BrowsedStore
  ) throws -> [String: DecodedValue] {
    var result: [String: DecodedValue] = [:]
    for (column, value) in zip(columns, row.values) where value.form == .bytes {
      guard let count = value.byteCount, count > 0, count <= maximumPicture,
        let bytes = try store.bytes(of: column.name, key: key, in: collection)
      else { continue }
      result[column.name] = DecodedValue(bytes)
    }
    return result
  }

  static func text(_ bytes: [UInt8], _ kind: BytesKind) -> String? {
    switch kind {
    case .json, .text, .xml: return String(utf8: bytes)
    case .binaryPropertyList:
      // An invalid property list is shown as bytes.
      return (try? PropertyList(bytes)).map { PropertyListText($0).text }
    case .empty, .png, .jpeg, .gif, .webp, .heic, .pdf, .gzip, .zip, .sqlite, .unknown: return nil
    }
  }

  /// - Parameter address: the URL of the raw bytes.
  func html(_ name: String, at address: RequestTarget) -> HTML {
    switch self {
    case .picture:
      return """
        <figure class="picture small"><img src="\(address)" loading="lazy" alt="The picture in \(name)"></figure>
        """
    case .text(let text, let isCut, let kind):
      let cut: HTML = isCut ? " <span class=\"soft\">The rest is left out here.</span>" : .empty
      return """
        <details open><summary>\(kind.words)</summary><pre class="text" tabindex="0" aria-label="\(name)">\(text)</pre>\(cut)</details>
        """
    }
  }
}

/// A property list as indented text, bounded in depth and length.
struct PropertyListText {
  private(set) var text = ""

  private static let maximumDepth = 40
  private static let maximumLength = 2 << 20

  init(_ list: PropertyList) { write(list, 0) }

  private mutating func write(_ value: PropertyList, _ depth: Int) {
    guard text.utf8.count < Self.maximumLength else { return }
    guard depth < Self.maximumDepth else {
      text += "…"
      return
    }
    let indent = String(repeating: "  ", count: depth + 1)
    if let entries = value.dictionary {
      text += entries.isEmpty ? "{}" : "{\n"
      for (key, entry) in entries.sorted(by: { $0.key < $1.key }) {
        text += "\(indent)\(key): "
        write(entry, depth + 1)
        text += "\n"
      }
      if !entries.isEmpty { text += String(indent.dropLast(2)) + "}" }
    } else if let items = value.array {
      text += items.isEmpty ? "[]" : "[\n"
      for item in items {
        text += indent
        write(item, depth + 1)
        text += "\n"
      }
      if !items.isEmpty { text += String(indent.dropLast(2)) + "]" }
    } else if let string = value.string {
      text += "“\(string)”"
    } else if let data = value.data {
      text += "\(data.count) bytes: " + data.prefix(32).hexadecimal
      if data.count > 32 { text += "…" }
    } else if let uid = value.uid {
      text += "object \(uid)"
    } else if let boolean = value.boolean {
      text += boolean ? "true" : "false"
    } else if let integer = value.integer {
      text += String(integer)
    } else if let real = value.real {
      text += "\(real)"
    } else {
      text += "\(value)"
    }
  }
}
