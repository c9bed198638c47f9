import HTTPServer
import Platform
import SQLiteFormat

/// A value of bytes as it is shown beside the other values of its record: a picture, or its text.
enum DecodedValue: Sendable {
  /// A picture that a browser may be handed.
  case picture

  /// Text, JSON, or what a property list holds, cut to a length.
  case text(String, isCut: Bool, kind: BytesKind)

  /// The most bytes of a value that is decoded for it.
  private static let maximumBytes = 1 << 20

  /// The most bytes of a picture that is shown without being asked for.
  private static let maximumPicture = 4 << 20

  private static let maximumLength = 4_000

  /// What bytes are decoded to; nil for those that only their own page shows.
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

  /// The decoded values of bytes of a record, by the names of their properties.
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

  /// Bytes as text, where they are some.
  static func text(_ bytes: [UInt8], _ kind: BytesKind) -> String? {
    switch kind {
    case .json, .text, .xml: return String(utf8: bytes)
    case .binaryPropertyList:
      // What begins like a property list and is none is shown as bytes.
      return (try? PropertyList(bytes)).map { PropertyListText($0).text }
    case .empty, .png, .jpeg, .gif, .webp, .heic, .pdf, .gzip, .zip, .sqlite, .unknown: return nil
    }
  }

  /// The value as part of a page.
  ///
  /// - Parameters:
  ///   - name: the property.
  ///   - address: the bytes as such.
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

/// A property list as indented text for people, bounded in depth and length.
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
