import HTTPServer
internal import Platform
import SQLiteFormat

/// A record's value: text, pictures on demand, or hexadecimal.
struct ValuePage: InspectorPage {
  let place: RecordPlace
  let collection: RecordCollection
  let key: RecordKey
  let column: RecordColumn
  let bytes: [UInt8]
  let kind: BytesKind

  private static let externalLimit = 64 << 20

  private static let textLimit = 1 << 20

  private static let hexLimit = 8192

  init(_ place: RecordPlace, _ entity: String, _ key: String, _ property: String, _ fileSystem: FileSystem) throws {
    let store = place.opened.store
    let collection = try store.collection(segment: entity)
    let column = try collection.column(segment: property).orRefuse(.notFound, "there is no such property")
    let key = try RecordKey(key, of: collection)
    var bytes = try store.bytes(of: column.name, key: key, in: collection)
    if bytes == nil, let name = try store.fileName(of: column.name, key: key, in: collection) {
      bytes = try place.opened.externalValue(name, limit: Self.externalLimit, in: fileSystem)
      try Refusal.unless(bytes != nil, .notFound, "the file that holds the value is not there")
    }
    guard let bytes else { throw Refusal(.notFound, "the value is null") }
    self.place = place
    self.collection = collection
    self.key = key
    self.column = column
    self.bytes = bytes
    kind = BytesKind(bytes)
  }

  var title: String { column.name }
  var crumbs: [Crumb] {
    place.crumbs(below: collection) + [Crumb(key.description, place.record(key, in: collection.name))]
  }

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    try encoder.encode([
      "entity": collection.name, "key": key.description, "property": column.name, "bytes": bytes.count,
      "kind": kind.rawValue, "download": address("bytes"), "text": text?.text,
    ])
  }

  private func address(_ form: String) -> RequestTarget { place.value(column.name, of: key, in: collection, form) }

  /// Sends the bytes: pictures by their own signature, whatever the store claims, all else as a download.
  func download(_ request: Request) throws -> Response {
    let digest = FileDigest(of: bytes).hexadecimal
    guard let tag = EntityTag(digest) else { throw Refusal(.internalServerError, "the value has no tag") }
    let response = Response.ranges(BytesInMemory(bytes), tag: tag, type: kind.mediaType, for: request)
    return kind.isPicture ? response : response.downloaded(as: "\(collection.name)-\(key)-\(column.name).\(suffix)")
  }

  private var suffix: String {
    switch kind {
    case .binaryPropertyList: "plist"
    case .empty, .unknown: "bin"
    case .gzip: "gz"
    case .text: "txt"
    case .png, .jpeg, .gif, .webp, .heic, .pdf, .zip, .sqlite, .xml, .json: kind.rawValue
    }
  }

  private var text: (text: String, isCut: Bool)? {
    let isList = kind == .binaryPropertyList
    guard let whole = DecodedValue.text(isList ? bytes : Array(bytes.prefix(Self.textLimit * 4)), kind) else {
      return nil
    }
    guard whole.utf8.count > Self.textLimit else { return (whole, false) }
    return (String(whole.prefix(Self.textLimit)), true)
  }

  func content(_ frame: PageFrame) -> HTML {
    let download: HTML = kind.isPicture ? " download" : .empty
    return """
      <div class="head"><div><h1>\(title)</h1>
      <p class="soft">\(kind.words), \(readableSize(Int64(bytes.count))), of \(collection.name) \(key.description)</p></div>
      <a class="button no-print" href="\(address("bytes"))"\(download)>Download</a></div>
      \(shown)
      """
  }

  private var shown: HTML {
    if kind.isPicture {
      return """
        <figure class="panel picture"><img src="\(address("bytes"))" alt="The picture in \(column.name)">
        <figcaption class="soft">Shown as the \(kind.words) that its first bytes say it is.</figcaption></figure>
        """
    }
    if let text {
      let cut: HTML = text.isCut ? "<p class=\"soft\">The rest is left out; the download has everything.</p>" : .empty
      return "<pre class=\"text\" tabindex=\"0\">\(text.text)</pre>\(cut)"
    }
    guard !bytes.isEmpty else { return "<div class=\"empty\"><p>The value has no bytes.</p></div>" }
    let dump = HexDump(bytes: Array(bytes.prefix(Self.hexLimit)), regions: [], marked: nil)
    let cut: HTML =
      bytes.count > Self.hexLimit
      ? "<p class=\"soft\">The first \(grouped(Self.hexLimit)) bytes; the download has everything.</p>" : .empty
    return "\(dump.html)\(cut)"
  }
}

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
    if let entries = value.dictionary {
      write(entries.sorted { $0.key < $1.key }.map { ("\($0.key): ", $0.value) }, "{", "}", depth)
    } else if let items = value.array {
      write(items.map { ("", $0) }, "[", "]", depth)
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

  private mutating func write(
    _ entries: [(name: String, value: PropertyList)], _ open: String, _ close: String, _ depth: Int
  ) {
    let indent = String(repeating: "  ", count: depth)
    text += entries.isEmpty ? open : "\(open)\n"
    for (name, value) in entries {
      text += "\(indent)  \(name)"
      write(value, depth + 1)
      text += "\n"
    }
    text += entries.isEmpty ? close : indent + close
  }
}
