import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import SQLiteFormat
import Salvage

/// A record's bytes in a page, value by value.
struct RecordByteMap: Sendable {
  let page: UInt32

  /// The page image, if not the current one.
  let image: EvidencePages.Image?

  let file: StoreFileSet.Part

  /// The cell's offset in the file.
  let offset: Int64

  let cell: PageAnatomy.CellFacts

  private let bytes: [UInt8]

  private let columns: [StoredColumn]

  private static let maximumBytes = 32

  /// Returns nil if the cell is unknown or missing.
  init?(
    of provenance: RowProvenance, image: EvidencePages.Image?, in collection: RecordCollection, of opened: BrowsedStore,
    _ pages: EvidencePages
  ) throws {
    guard let number = provenance.page, ["main", "wal", "journal"].contains(provenance.source) else { return nil }
    guard let content = try pages.page(number, image ?? .current) else { return nil }
    let anatomy = PageAnatomy(content.bytes, number: number, geometry: pages.geometry, encoding: pages.encoding)
    let index = provenance.cell ?? provenance.storedKey.flatMap { anatomy.cell(ofRow: $0) }
    guard let cell = anatomy.cells.first(where: { $0.index == index }), let range = cell.bytes, !cell.fields.isEmpty,
      provenance.storedKey == nil || cell.rowid == nil || cell.rowid == provenance.storedKey
    else { return nil }
    page = number
    self.image = image
    file = content.part
    offset = content.offset + Int64(range.lowerBound)
    self.cell = cell
    bytes = content.bytes
    columns = try opened.storedColumns(of: collection)
  }

  /// The properties with a value, including those off this page.
  var declared: Set<String> {
    Set(zip(columns, cell.declared).compactMap { column, isThere in isThere ? column.property : nil })
  }

  private func name(_ index: Int) -> String {
    columns.indices.contains(index) ? columns[index].shownName : "value \(index)"
  }

  /// The cell as JSON.
  var payload: JSON.Object {
    let fields = cell.fields.enumerated().map { index, range -> JSON.Object in
      [
        "name": printable(name(index)), "column": columns.indices.contains(index) ? columns[index].name : nil,
        "from": range.lowerBound, "to": range.upperBound, "bytes": hexadecimal(range, limit: 4096),
      ]
    }
    return [
      "page": page, "cell": cell.index, "image": image?.name, "file": file, "offset": offset,
      "payload": cell.payloadLength,
      "overflowPage": cell.overflowPage, "fields": fields,
    ]
  }

  private func hexadecimal(_ range: Range<Int>, limit: Int) -> String {
    Array(bytes[range.clamped(to: bytes.indices).prefix(limit)]).hexadecimal
  }

  /// The panel of bytes; `target` is their page.
  func html(_ target: RequestTarget) -> HTML {
    var rows: [HTML] = []
    if let header = cell.header, let all = cell.bytes {
      rows.append(row("length and key", all.lowerBound..<header.lowerBound, "\(cell.payloadLength) bytes", "cell"))
      rows.append(row("types of the values", header, "\(cell.fields.count) values", "cell"))
    }
    for (index, range) in cell.fields.enumerated() {
      let isKey = columns.indices.contains(index) && columns[index].isRowid && range.isEmpty
      let words: HTML = isKey ? "the cell's key, \(cell.rowid.map(String.init) ?? "?")" : Self.words(cell.values[index])
      rows.append(row(name(index), range, words, index % 2 == 0 ? "h-even" : "h-odd"))
    }
    let rest: HTML =
      cell.overflowPage.map { next in
        "<p class=\"soft\">What is longer goes on at page \(Words.number(next)).</p>"
      } ?? .empty
    let place =
      "\(Words.number(offset)) of \(file == .main ? "the database file" : file == .wal ? "the log" : "the journal")"
    return .panel(
      "Its bytes",
      """
      <p class="soft">Cell \(cell.index) of <a href="\(target)#marked">page \(Words.number(page))</a>, at byte \(place).</p>\
      \(HTML.table("Bytes of the record", ["Property", "Bytes", "Stored as"], rows))\(rest)
      """)
  }

  private func row(_ name: String, _ range: Range<Int>, _ words: HTML, _ style: HTML) -> HTML {
    let digits = hexadecimal(range, limit: Self.maximumBytes)
    var groups: [Substring] = []
    var rest = digits[...]
    while !rest.isEmpty {
      groups.append(rest.prefix(2))
      rest = rest.dropFirst(2)
    }
    let more: HTML = range.count > Self.maximumBytes ? " …" : .empty
    let shown: HTML = groups.isEmpty ? "<span class=\"null\">none</span>" : "\(groups.joined(separator: " "))\(more)"
    return """
      <tr><th scope="row" class="wrap">\(printable(name))</th><td class="wrap"><code class="\(style)">\(shown)</code></td>\
      <td class="wrap">\(words)</td></tr>
      """
  }

  private static func words(_ value: Value) -> HTML {
    switch value {
    case .null: "<span class=\"null\">null</span>"
    case .integer(let number): "integer \(String(number))"
    case .real(let number): "real \(String(number))"
    case .text(let text): "text “\(String(text.string.prefix(60)))\(text.string.count > 60 ? "…" : "")”"
    case .blob(let bytes): "\(BytesKind(bytes).words), \(Words.size(Int64(bytes.count)))"
    }
  }
}

extension StoredColumn {
  /// The property, else Core Data's role for the column, else its name.
  var shownName: String {
    switch name.uppercased() {
    case "Z_PK": "key"
    case "Z_ENT": "entity"
    case "Z_OPT": "times saved"
    default: property ?? name
    }
  }
}

extension RecordSource {
  /// Returns the value names of a page's cells; empty until the store was read in the background.
  func names(onPage number: UInt32, of store: ListedStore) throws -> [String] {
    guard let files = store.files else { return [] }
    let sums = store.quarantined?.receipt?.files.map(\.sha256) ?? []
    guard let side = try parts.sides.existing(.evidence(files, sha256: sums)),
      let pages = side.report?.pages,
      let run = pages.runs.first(where: { $0.pages.contains(number) }), let place = run.owner,
      pages.owners.indices.contains(place), !pages.owners[place].isIndex
    else { return [] }
    let table = pages.owners[place].name.uppercased()
    let collection = side.store.collections.first { $0.tableSQL.filter { $0 != "\"" }.uppercased() == table }
    return try collection.map { try side.store.storedColumns(of: $0).map(\.shownName) } ?? []
  }
}
