import HTTPServer
internal import Platform

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

  init(
    _ place: RecordPlace, _ entity: String, _ key: String, _ property: String, _ fileSystem: FileSystem
  ) throws {
    let store = place.opened.store
    let collection = try store.collection(segment: entity)
    guard let column = collection.column(segment: property) else {
      throw Refusal(.notFound, "there is no such property")
    }
    let key = try RecordKey(key, of: collection)
    var bytes = try store.bytes(of: column.name, key: key, in: collection)
    if bytes == nil, let name = try store.fileName(of: column.name, key: key, in: collection) {
      bytes = try place.opened.externalValue(name, limit: Self.externalLimit, in: fileSystem)
      guard bytes != nil else {
        throw Refusal(.notFound, "the file that holds the value is not there")
      }
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
    place.crumbs + [
      Crumb("Records", place.entities), Crumb(collection.name, place.records(collection.name)),
      Crumb(key.description, place.record(key, in: collection.name)),
    ]
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
      <p class="soft">\(kind.words), \(Words.size(Int64(bytes.count))), of \(collection.name) \(key.description)</p></div>
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
    let dump = HexDump(Array(bytes.prefix(Self.hexLimit)), regions: [], marked: nil)
    let cut: HTML =
      bytes.count > Self.hexLimit
      ? "<p class=\"soft\">The first \(Words.number(Self.hexLimit)) bytes; the download has everything.</p>" : .empty
    return "\(dump.html)\(cut)"
  }
}
