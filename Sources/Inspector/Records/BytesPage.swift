import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import SQLiteFormat
import Salvage

/// The bytes of a page in the store's files, with their roles.
struct BytesPage: StoreSubpage {
  let store: ListedStore
  let number: UInt32
  let image: EvidencePages.Image
  let pageCount: UInt32
  let pageSize: Int
  let frames: [EvidencePages.Frame]
  let content: EvidencePages.Content
  let anatomy: PageAnatomy

  let marked: Int?

  /// The names of a cell's values, if known.
  let names: [String]

  private static let valueLength = 40

  private static let valueCount = 12

  init(
    _ store: ListedStore, _ number: Int64, _ query: Query, _ pages: EvidencePages, names: (UInt32) throws -> [String]
  ) throws {
    guard let number = UInt32(exactly: number), number > 0, number <= pages.pageCount else {
      throw Refusal(.notFound, "the store has no such page")
    }
    let image = try EvidencePages.Image(query["image"] ?? "current")
      .orRefuse(.badRequest, "there is no such image of a page")
    let content = try pages.page(number, image).orRefuse(.notFound, "no byte of this page is there")
    self.store = store
    self.number = number
    self.image = image
    self.content = content
    pageCount = pages.pageCount
    pageSize = pages.pageSize
    frames = pages.frames[number] ?? []
    let anatomy = PageAnatomy(content.bytes, number: number, geometry: pages.geometry, encoding: pages.encoding)
    self.anatomy = anatomy
    self.names = anatomy.kind == .tableLeaf ? try names(number) : []
    if let cell = query["cell"].flatMap({ Int($0) }) {
      marked = anatomy.cells.contains { $0.index == cell } ? cell : nil
    } else {
      marked = query["row"].flatMap { Int64($0) }.flatMap { anatomy.cell(ofRow: $0) }
    }
  }

  var title: String { "Page \(grouped(number))" }

  private func target(_ number: UInt32, _ items: [Query.Item] = []) -> RequestTarget {
    .store(store.id, "pages", String(number), query: items)
  }

  // MARK: JSON

  func encode(to encoder: any Encoder) throws {
    let regions = anatomy.regions.map { region -> JSON.Object in
      ["from": region.bytes.lowerBound, "to": region.bytes.upperBound, "part": Self.code(region.part)]
    }
    let frames = frames.map { frame -> JSON.Object in ["number": frame.number, "isOfThisRound": frame.isOfThisRound] }
    try encoder.encode([
      "store": store.id.text, "page": number, "pageCount": pageCount, "pageSize": pageSize, "file": content.part,
      "offset": content.offset, "frame": JSON.orNull(content.frame), "present": content.presentCount, "kind": kind.code,
      "regions": regions, "cells": anatomy.cells.map(Self.payload), "names": names.map(printable),
      "marked": JSON.orNull(marked), "frames": frames, "bytes": content.bytes.hexadecimal,
    ])
  }

  private static func payload(_ cell: PageAnatomy.CellFacts) -> JSON.Object {
    [
      "cell": cell.index, "from": JSON.orNull(cell.bytes?.lowerBound), "to": JSON.orNull(cell.bytes?.upperBound),
      "rowid": JSON.orNull(cell.rowid), "payload": cell.payloadLength, "overflowPage": JSON.orNull(cell.overflowPage),
      "leftChild": JSON.orNull(cell.leftChild), "values": cell.values.map(json),
    ]
  }

  private static func json(_ value: Value) -> JSON.Value {
    switch value {
    case .null: .null
    case .integer(let number): .integer(number)
    case .real(let number): .real(number)
    case .text(let text): .string(text.string)
    case .blob(let bytes): ["bytes": .integer(Int64(bytes.count)), "beginning": .string(bytes.prefix(16).hexadecimal)]
    }
  }

  private static func code(_ part: PageAnatomy.Part) -> String {
    switch part {
    case .databaseHeader: "database-header"
    case .pageHeader: "page-header"
    case .pointers: "cell-pointers"
    case .cell(let index): "cell \(index)"
    case .freeblock: "free-block"
    case .unallocated: "unallocated"
    case .reserved: "reserved"
    case .other: "other"
    }
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title) <span class="soft">of \(grouped(pageCount))</span></h1>
    <p class="soft">\(place)</p></div>\(ways)</div>
    \(StoreTab.bar(store, nil))\(images)\(doubts)
    <div class="columns"><div>\(HexDump(bytes: content.bytes, regions: anatomy.regions, marked: marked).html)\(Self.key)</div>
    <div>\(facts)\(markedCell)</div></div>
    \(cells)
    """
  }

  private var place: HTML {
    let from = grouped(content.offset)
    if let frame = content.frame {
      return "From frame \(grouped(frame)) of the write-ahead log, at byte \(from) of it."
    }
    return content.part == .journal
      ? "From the rollback journal, at byte \(from) of it." : "From the database file, at byte \(from) of it."
  }

  private var ways: HTML {
    func link(_ number: UInt32, _ relation: String) -> HTML {
      "<a class=\"button\" rel=\"\(relation)\" href=\"\(target(number))\">Page \(grouped(number))</a>"
    }
    let back: HTML = number > 1 ? link(number - 1, "prev") : .empty
    let on: HTML = number < pageCount ? link(number + 1, "next") : .empty
    return "<nav class=\"row no-print\" aria-label=\"Pages\">\(back)\(on)</nav>"
  }

  private var images: HTML {
    guard !frames.isEmpty || content.part != .main else { return .empty }
    var shown: [(words: HTML, image: EvidencePages.Image)] = [("What counts", .current), ("Database file", .main)]
    for frame in frames.suffix(20) {
      let round = frame.isOfThisRound ? "" : " (of an earlier round)"
      shown.append(("Frame \(grouped(frame.number))\(round)", .frame(frame.number)))
    }
    return .tabs(
      "Images of the page",
      shown.map { ($0.words, target(number, [.init("image", $0.image.name ?? "current")]), $0.image == image) })
  }

  private var doubts: HTML {
    var notes: [String] = []
    if content.isDoubtful { notes.append("SQLite would not have read this image: the log is malformed before it.") }
    if content.presentCount < pageSize {
      notes.append("The file ends after \(grouped(content.presentCount)) bytes of this page; zeros stand for the rest.")
    }
    if anatomy.page?.isHeaderPlausible == false { notes.append("The numbers in the page's header are impossible.") }
    if !anatomy.isFreeListSound { notes.append("The chain of free blocks is malformed.") }
    let lost = anatomy.cells.count { $0.bytes == nil }
    if lost > 0 {
      notes.append("\(counted(lost, "cell pointer")) of the page \(lost == 1 ? "leads" : "lead") to no cell.")
    }
    return notes.isEmpty ? .empty : "<div class=\"note warn\">\(notes.map { "<p>\($0)</p>" as HTML })</div>"
  }

  private var facts: HTML {
    var facts: [(String, HTML?)] = [("Kind", HTML(escaping: kind.words))]
    if let page = anatomy.page {
      let hasChild = !page.kind.isLeaf && page.rightMostChild > 0 && page.rightMostChild <= pageCount
      facts += [
        ("Cells", "\(grouped(page.storedCellCount))"), ("Cell content from", "\(grouped(page.contentStart))"),
        ("First free block", page.firstFreeblock == 0 ? "none" : "\(grouped(page.firstFreeblock))"),
        ("Fragmented bytes", "\(grouped(page.fragmentedBytes))"),
        ("Right-most child", hasChild ? link(page.rightMostChild) : nil),
      ]
    } else if let next = content.bytes.span.uint32(at: 0) {
      facts.append(("First number", link(next)))
    }
    return .panel("Header", .facts(facts + [("Page size", "\(grouped(pageSize))")]))
  }

  private var markedCell: HTML {
    guard let cell = anatomy.cells.first(where: { $0.index == marked }) else { return .empty }
    let facts: [(String, HTML?)] = [
      ("Bytes", cell.bytes.map { "\($0.lowerBound) – \($0.upperBound - 1)" }),
      ("Rowid", cell.rowid.map { "\(String($0))" }),
      ("Payload", cell.payloadLength > 0 ? "\(readableSize(Int64(cell.payloadLength)))" : nil),
      ("Goes on at", cell.overflowPage.map(link)),
    ]
    let values = cell.values.prefix(60).enumerated().map { index, value -> (String, HTML?) in
      (names.indices.contains(index) ? printable(names[index]) : "Field \(index)", Self.html(value, length: 200))
    }
    return .panel("Cell \(cell.index)", .facts(facts + values))
  }

  /// A page number, linked if the page exists.
  private func link(_ number: UInt32) -> HTML {
    number > 0 && number <= pageCount ? "<a href=\"\(target(number))\">\(grouped(number))</a>" : "\(grouped(number))"
  }

  private var kind: (code: String, words: String) {
    switch anatomy.kind {
    case .tableLeaf: ("table-leaf", "leaf of a table")
    case .tableInterior: ("table-interior", "inner page of a table")
    case .indexLeaf: ("index-leaf", "leaf of an index, or of a table without rowids")
    case .indexInterior: ("index-interior", "inner page of an index, or of a table without rowids")
    case nil where content.bytes.allSatisfy({ $0 == 0 }): ("other", "zeros only")
    case nil:
      ("other", "of no tree: the rest of a long value, a free page, or damaged; the first number may be the next page")
    }
  }

  private static let key: HTML = """
    <ul class="legend" aria-label="Colours"><li><span class="h-header">00</span> header</li>\
    <li><span class="h-pointers">00</span> cell pointers</li><li><span class="h-even">00</span> \
    <span class="h-odd">00</span> cells, in turn</li><li><span class="h-free">00</span> free block</li><li><span class="h-none">00</span> nothing uses it</li></ul>
    """

  private var cells: HTML {
    guard !anatomy.cells.isEmpty else { return .empty }
    let rows = anatomy.cells.map { cell -> HTML in
      let isMarked: HTML = cell.index == marked ? " class=\"marked\" aria-current=\"true\"" : .empty
      let items = [image.name.map { Query.Item("image", $0) }, Query.Item("cell", String(cell.index))]
      let bytes: HTML =
        cell.bytes.map { "\($0.lowerBound) – \($0.upperBound - 1)" } ?? "<span class=\"tag bad\">nowhere</span>"
      let row: HTML = cell.rowid.map { "\(String($0))" } ?? .empty
      var leads = HTML.empty
      if let child = cell.leftChild { leads += "child \(link(child)) " }
      if let page = cell.overflowPage { leads += "goes on at \(link(page))" }
      return """
        <tr\(isMarked)><td class="number"><a href="\(target(number, items.compactMap(\.self)))#marked">\(cell.index)</a></td>\
        <td class="number">\(bytes)</td><td class="number">\(row)</td><td>\(leads)</td><td>\(values(cell))</td></tr>
        """
    }
    let columns: [TableColumn] = [.number("Cell"), .number("Bytes"), .number("Rowid"), "Leads to", "Values"]
    return "<h2>Cells</h2>" + .records("Cells", columns, rows)
  }

  private static func html(_ value: Value, length: Int) -> HTML {
    switch value {
    case .null: "<span class=\"null\">null</span>"
    case .integer(let number): "\(String(number))"
    case .real(let number): "\(String(number))"
    case .text(let text): "“\(cut(text.string, length))”"
    case .blob(let bytes): "<span class=\"soft\">\(readableSize(Int64(bytes.count)))</span>"
    }
  }

  private static func cut(_ text: String, _ length: Int) -> String {
    text.count > length ? String(text.prefix(length)) + "…" : text
  }

  private func values(_ cell: PageAnatomy.CellFacts) -> HTML {
    let shown = cell.values.prefix(Self.valueCount).map { Self.html($0, length: Self.valueLength) }
    var result = HTML.empty
    for (index, value) in shown.enumerated() {
      let name = HTML.when(names.indices.contains(index), "<span class=\"soft\">\(printable(names[index]))</span> ")
      result += (index == 0 ? HTML.empty : " · ") + name + value
    }
    return cell.values.count > Self.valueCount ? result + " · …" : result
  }
}

extension EvidencePages.Image {
  /// Parses the name in a URL.
  init?(_ name: String) {
    switch name {
    case "current": self = .current
    case "main": self = .main
    default:
      guard name.hasPrefix("frame-"), let frame = Int(name.dropFirst(6)), frame > 0 else { return nil }
      self = .frame(frame)
    }
  }

  /// The name in a URL; nil for the usual image.
  var name: String? {
    switch self {
    case .current: nil
    case .main: "main"
    case .frame(let number): "frame-\(number)"
    }
  }
}

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

  private func column(_ index: Int) -> StoredColumn? { columns.indices.contains(index) ? columns[index] : nil }

  private func name(_ index: Int) -> String { column(index)?.shownName ?? "value \(index)" }

  /// The cell as JSON.
  var payload: JSON.Object {
    let fields = cell.fields.enumerated().map { index, range -> JSON.Object in
      [
        "name": printable(name(index)), "column": column(index)?.name,
        "from": range.lowerBound, "to": range.upperBound, "bytes": first(4096, of: range).hexadecimal,
      ]
    }
    return [
      "page": page, "cell": cell.index, "image": image?.name, "file": file, "offset": offset,
      "payload": cell.payloadLength, "overflowPage": cell.overflowPage, "fields": fields,
    ]
  }

  private func first(_ count: Int, of range: Range<Int>) -> ArraySlice<UInt8> {
    bytes[range.clamped(to: bytes.indices).prefix(count)]
  }

  /// The panel of bytes; `target` is their page.
  func html(_ target: RequestTarget) -> HTML {
    var rows: [HTML] = []
    if let header = cell.header, let all = cell.bytes {
      rows.append(row("length and key", all.lowerBound..<header.lowerBound, "\(cell.payloadLength) bytes", "cell"))
      rows.append(row("types of the values", header, "\(cell.fields.count) values", "cell"))
    }
    for (index, range) in cell.fields.enumerated() {
      let isKey = column(index)?.isRowid == true && range.isEmpty
      let words: HTML = isKey ? "the cell's key, \(cell.rowid.map(String.init) ?? "?")" : Self.words(cell.values[index])
      rows.append(row(name(index), range, words, index % 2 == 0 ? "h-even" : "h-odd"))
    }
    let rest: HTML =
      cell.overflowPage.map { next in "<p class=\"soft\">What is longer goes on at page \(grouped(next)).</p>" }
      ?? .empty
    let place =
      "\(grouped(offset)) of \(file == .main ? "the database file" : file == .wal ? "the log" : "the journal")"
    return .panel(
      "Its bytes",
      """
      <p class="soft">Cell \(cell.index) of <a href="\(target)#marked">page \(grouped(page))</a>, at byte \(place).</p>\
      \(HTML.table("Bytes of the record", ["Property", "Bytes", "Stored as"], rows))\(rest)
      """)
  }

  private func row(_ name: String, _ range: Range<Int>, _ words: HTML, _ style: HTML) -> HTML {
    let digits = first(Self.maximumBytes, of: range).map { [$0].hexadecimal }.joined(separator: " ")
    let more = range.count > Self.maximumBytes ? " …" : ""
    let shown: HTML = digits.isEmpty ? "<span class=\"null\">none</span>" : "\(digits)\(more)"
    return .row(
      "\(printable(name))", wraps: true, .cell("<code class=\"\(style)\">\(shown)</code>", "wrap"), .cell(words, "wrap")
    )
  }

  private static func words(_ value: Value) -> HTML {
    switch value {
    case .null: "<span class=\"null\">null</span>"
    case .integer(let number): "integer \(String(number))"
    case .real(let number): "real \(String(number))"
    case .text(let text): "text “\(String(text.string.prefix(60)))\(text.string.count > 60 ? "…" : "")”"
    case .blob(let bytes): "\(BytesKind(bytes).words), \(readableSize(Int64(bytes.count)))"
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
    guard let side = try parts.sides.existing(.evidence(files, sha256: store.sums)), let pages = side.report?.pages,
      let run = pages.runs.first(where: { $0.pages.contains(number) }), let place = run.owner,
      pages.owners.indices.contains(place), !pages.owners[place].isIndex
    else { return [] }
    let table = pages.owners[place].name.uppercased()
    let collection = side.store.collections.first { $0.tableSQL.filter { $0 != "\"" }.uppercased() == table }
    return try collection.map { try side.store.storedColumns(of: $0).map(\.shownName) } ?? []
  }
}
