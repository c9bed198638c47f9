import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import SQLiteFormat
import Salvage

struct SingleRecordPage: InspectorPage {
  /// Another row with the same present or former key.
  struct Version: Sendable {
    var key: RecordKey
    var row: RecordPage.Row
    var provenance: RowProvenance?
  }

  let place: RecordPlace
  let collection: RecordCollection
  let key: RecordKey
  let detail: RecordDetail
  let provenance: RowProvenance?
  let versions: PagePart<[Version]>

  /// The page image, if not the current one.
  let image: EvidencePages.Image?

  /// The WAL frame of the cell.
  let frame: Int?

  /// The bytes, for a salvaged record those of its source row.
  let bytes: PagePart<RecordByteMap?>

  let decoded: [String: DecodedValue]

  init(_ place: RecordPlace, _ collection: RecordCollection, _ key: RecordKey, _ source: RecordSource) throws {
    let store = place.opened.store
    self.place = place
    self.collection = collection
    self.key = key
    detail = try store.detail(of: key, in: collection)
    let provenance = try store.provenance(of: key, in: collection)
    self.provenance = provenance
    versions = PagePart {
      guard let stored = provenance?.storedKey else { return [] }
      return try store.versions(of: stored, in: collection).filter { $0 != key }.map { other in
        Version(
          key: other, row: try store.detail(of: other, in: collection).row,
          provenance: try store.provenance(of: other, in: collection))
      }
    }
    let image = try provenance.flatMap { try Self.image($0, place.store, source) }
    self.image = image
    bytes = PagePart { try Self.bytes(provenance, image, place, collection, key, source) }
    decoded = try DecodedValue.all(of: detail.row, detail.columns, key, collection, in: store)
    frame = try provenance.flatMap { try Self.frame($0, place.store, source) }
  }

  /// Reads the bytes of a row, or of a record's source row.
  private static func bytes(
    _ provenance: RowProvenance?, _ image: EvidencePages.Image?, _ place: RecordPlace, _ collection: RecordCollection,
    _ key: RecordKey, _ source: RecordSource
  ) throws -> RecordByteMap? {
    guard let files = place.store.files else { return nil }
    let pages = try source.pages(of: place.store)
    if let provenance {
      return try RecordByteMap(of: provenance, image: image, in: collection, of: place.opened.store, pages)
    }
    guard place.side == .salvaged, place.sides.contains(.original) else { return nil }
    // Unread evidence isn't awaited; the link to the found row leads there.
    guard case .ready(let found) = try source.parts.sides.open(.evidence(files, sha256: place.store.sums), patience: 0),
      let other = found.store.collections.first(where: { $0.name == collection.name }),
      let origin = try found.store.provenance(of: key, in: other)
    else { return nil }
    return try RecordByteMap(
      of: origin, image: try Self.image(origin, place.store, source), in: other, of: found.store, pages)
  }

  private static func frame(_ provenance: RowProvenance, _ store: ListedStore, _ source: RecordSource) throws -> Int? {
    guard store.files != nil, provenance.source == "wal", let page = provenance.page else { return nil }
    let pages = try source.pages(of: store)
    return provenance.state == .uncommitted ? pages.frames[page]?.last?.number : try pages.page(page)?.frame
  }

  private static func image(
    _ provenance: RowProvenance, _ store: ListedStore, _ source: RecordSource
  ) throws -> EvidencePages.Image? {
    guard store.files != nil, let page = provenance.page else { return nil }
    let frames = try source.pages(of: store).frames[page] ?? []
    guard !frames.isEmpty else { return nil }
    if provenance.source == "main" { return .main }
    return provenance.state == .uncommitted ? frames.last.map { .frame($0.number) } : nil
  }

  /// A found row's properties with lost values.
  private var lost: [String] {
    guard provenance != nil, detail.row.state == .doubtful || detail.row.state == .part,
      let declared = bytes.value.flatMap(\.self)?.declared
    else { return [] }
    return zip(detail.columns, detail.row.values).compactMap { column, value in
      value.form == .null && declared.contains(column.name) ? column.name : nil
    }
  }

  var title: String { detail.label ?? "\(detail.row.entity) \(shownKey)" }
  var crumbs: [Crumb] { place.crumbs(below: collection) }

  private var shownKey: String { provenance?.storedKey.map(String.init) ?? key.description }

  // MARK: JSON

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    let toMany = detail.toMany.map { related -> JSON.Object in
      [
        "name": related.name, "incoming": related.isIncoming, "entity": related.collection,
        "count": JSON.orNull(related.count), "first": related.first,
      ]
    }
    let versions = versions.map { versions in
      versions.map { version -> JSON.Object in
        [
          "key": version.key.description, "state": version.row.state.rawValue, "values": values(of: version.row),
          "provenance": JSON.orNull(version.provenance.map(Self.payload)),
        ]
      }
    }
    try encoder.encode([
      "entity": detail.row.entity, "key": key.description, "label": JSON.orNull(detail.label),
      "values": values(of: detail.row), "lostValues": lost.isEmpty ? nil : lost, "toOne": detail.toOne,
      "toMany": toMany, "provenance": provenance.map(Self.payload), "frame": frame, "versions": versions,
      "bytes": bytes.map { $0.map(\.payload) },
    ])
  }

  private func values(of row: RecordPage.Row) -> JSON.Value {
    .object(zip(detail.columns, row.values).map { JSON.Value.Member($0.name, $1.json) })
  }

  static func payload(_ provenance: RowProvenance) -> JSON.Object {
    [
      "state": provenance.state.rawValue, "key": JSON.orNull(provenance.storedKey),
      "page": JSON.orNull(provenance.page), "cell": JSON.orNull(provenance.cell), "source": provenance.source,
      "foundBy": JSON.orNull(provenance.foundBy), "reason": JSON.orNull(provenance.reason),
    ]
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    let kind: HTML = detail.label == nil ? .empty : "\(detail.row.entity) \(shownKey)"
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(kind) \(detail.row.state.tag)</p>\(place.notes(frame))</div>
      \(compare)</div>
      \(place.tabs { place.record(detail.row, shownKey, in: collection.name, on: $0) })
      \(place.doubts(of: collection))
      <div class="columns even"><div>\(values)\(relationships)</div>
      <div>\(storedBytes)\(origin)\(lookAtBytes)</div></div>\(otherVersions)
      """
  }

  private var compare: HTML {
    let others = place.sides.filter { $0 != place.side && $0 != .setAside }
    guard !others.isEmpty, detail.row.state.isLive, place.side != .setAside else { return .empty }
    let links = others.map { other -> HTML in
      let target = RequestTarget.store(
        place.store.id, "compare", place.side.description, other.description, "entities",
        place.opened.store.segment(collection.name), "records", key.description)
      return "<a class=\"button\" href=\"\(target)\">Compare with \(other.phrase)</a>"
    }
    return "<div class=\"row no-print\">\(links.prefix(3))</div>"
  }

  private var values: HTML {
    let lost = Set(lost)
    let facts = zip(detail.columns, detail.row.values).map { column, value -> (String, HTML?) in
      (column.shownName, lost.contains(column.name) ? .tag("lost", .bad) : shown(column, value))
    }
    let note = HTML.when(
      !lost.isEmpty, "<p class=\"soft\">Its bytes declare values where <em>lost</em> stands; they were not found.</p>")
    return .panel("Values", .facts(facts) + note)
  }

  private func shown(_ column: RecordColumn, _ value: PresentedValue) -> HTML {
    if let reference = detail.toOne[column.name] { return reference.html(at: place) }
    let view = place.value(column.name, of: key, in: collection, "view")
    switch value.form {
    case .bytes:
      if let decoded = decoded[column.name] {
        let bytes = place.value(column.name, of: key, in: collection, "bytes")
        return "\(value.html) <a href=\"\(view)\">By itself</a>\(decoded.html(column.name, at: bytes))"
      }
      return (value.byteCount ?? 0) == 0 ? value.html : "\(value.html) <a href=\"\(view)\">Show</a>"
    case .file: return "\(value.html) <a href=\"\(view)\">Show</a>"
    case .text, .uri:
      let isLong = value.isCut || value.text.utf8.count > 300 || value.text.utf8.contains(0x0A)
      guard isLong else { return value.text.isEmpty ? "<span class=\"null\">empty</span>" : HTML(escaping: value.text) }
      let size = readableSize(Int64(value.byteCount ?? 0))
      let more: HTML = value.isCut ? "<a href=\"\(view)\">The whole text, \(size)</a>" : .empty
      return "<pre class=\"text\">\(value.text)</pre>\(more)"
    case .null, .integer, .real, .decimal, .boolean, .date, .uuid, .reference, .unexpected: return value.html
    }
  }

  private var relationships: HTML {
    let lists = detail.toMany.enumerated().map { index, related -> HTML in
      let count: HTML = related.count.map { HTML(escaping: grouped($0)) } ?? "many"
      let items = related.first.map { "<li>\($0.html(at: place))</li>" as HTML }
      let isMore = related.count.map { $0 > Int64(related.first.count) } ?? true
      let more: HTML = isMore ? more(related, at: index) : .empty
      let incoming: HTML = related.isIncoming ? " <span class=\"soft\">leads here</span>" : .empty
      let list: HTML = items.isEmpty ? "<p class=\"soft\">None.</p>" : "<ul class=\"links\">\(items)\(more)</ul>"
      return "<h3>\(related.name) <span class=\"soft\">\(count)</span>\(incoming)</h3>\(list)"
    }
    return .when(!lists.isEmpty, .panel("Related records", "\(lists)"))
  }

  /// The link to all destinations, filtered by an inverse if possible.
  private func more(_ related: RecordDetail.Related, at index: Int) -> HTML {
    let target =
      related.inverse.map { place.records(related.collection, [.init($0, key.description)]) }
      ?? place.related(at: index, of: key, in: collection)
    return "<li><a href=\"\(target)\">All of them</a></li>"
  }

  private var storedBytes: HTML {
    bytes.html { bytes in
      guard let bytes else { return .empty }
      return bytes.html(place.page(bytes.page, cell: bytes.cell.index, image: bytes.image))
    }
  }

  private var origin: HTML {
    guard let provenance else { return .empty }
    let former = provenance.storedKey.flatMap { key.description == String($0) ? nil : String($0) }
    let page = provenance.page.map { page -> HTML in
      let target = place.page(
        page, cell: provenance.cell, row: provenance.cell == nil ? provenance.storedKey : nil, image: image)
      return place.store.files == nil ? "\(grouped(page))" : "<a href=\"\(target)#marked\">\(grouped(page))</a>"
    }
    return .panel(
      "Where it comes from",
      .facts([
        ("State", provenance.state == .certain ? "certain" : provenance.state.tag),
        ("Key it had", former.map { "\($0)" }), ("Found in", "\(Self.sources[provenance.source] ?? provenance.source)"),
        ("Page", page), ("Frame", frame.map { "\(grouped($0))" }), ("Cell", provenance.cell.map { "\(String($0))" }),
        ("Page found by", provenance.foundBy.map { "\(Self.waysFound[$0] ?? $0)" }),
        ("Why", provenance.reason.map { "\(sentence($0))" }),
      ]))
  }

  /// The link to the source row.
  private var lookAtBytes: HTML {
    guard provenance == nil, place.sides.contains(.original), place.side == .salvaged || place.side == .live else {
      return .empty
    }
    let target = place.records(collection.name, on: .original).appending(key.description)
    return .panel(
      "Where it comes from",
      "<p><a href=\"\(target)\">The row as it was found</a>, with the page and the cell that its bytes are in.</p>")
  }

  private var otherVersions: HTML {
    versions.html { list in
      let isPart = detail.row.state == .part
      // A fragment is no other version; it is shown if it holds more.
      let others = list.filter { $0.row.state != .part && !(isPart && $0.row.state.isLive) }
      let same = list.filter { isPart ? $0.row.state.isLive : $0.row.state == .part && holdsMore($0) }
      return """
        \(table(same, isPart ? "The record that it is a part of" : "What else was found of it"))\
        \(table(others, "Other versions of it"))
        """
    }
  }

  /// Whether a row has a value that this one lacks.
  private func holdsMore(_ version: Version) -> Bool {
    zip(detail.row.values, version.row.values).contains { own, other in own != other && other.form != .null }
  }

  private func table(_ list: [Version], _ heading: String) -> HTML {
    guard !list.isEmpty else { return .empty }
    let columns = list.map { version in
      let link: HTML = "<a href=\"\(place.record(version.key, in: collection.name))\">\(version.row.state.words)</a>"
      return TableColumn(head: "<th scope=\"col\">\(link)</th>")
    }
    let rows = detail.columns.enumerated().map { index, column -> HTML in
      let own = detail.row.values[index]
      let cells = list.map { version -> HTML in
        let value = version.row.values[index]
        return value == own ? "<td class=\"soft\">the same</td>" : "<td><span class=\"added\">\(value.html)</span></td>"
      }
      return .row("\(column.name)", .cell(own.html), "\(cells)")
    }
    let reasons = list.compactMap { version -> HTML? in
      version.provenance?.reason.map { "<li>\(version.row.state.words): \($0)</li>" }
    }
    return .panel(heading, "<ul>\(reasons)</ul>" + .grid(heading, ["Property", "This one"] + columns, rows))
  }

  private static let sources = [
    "main": "the database file", "wal": "the write-ahead log", "journal": "the rollback journal",
    "freespace": "the free space of a page", "index": "an index, which holds the whole row", "backup": "a backup",
  ]

  private static let waysFound = [
    "tree": "the tree of its table leads to it", "content": "its content; nothing leads to it",
    "carving": "its cells; its header is destroyed",
  ]
}

extension String {
  var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

extension RecordDetail.Reference {
  func html(at place: RecordPlace) -> HTML {
    let name = label ?? "\(collection) \(key.description)"
    guard exists else {
      return "<span class=\"odd\">\(collection) \(key.description)</span> <span class=\"tag bad\">not there</span>"
    }
    return "<a href=\"\(place.record(key, in: collection))\">\(name)</a> <span class=\"soft\">\(collection)</span>"
  }
}
