import HTTPServer
import ManagedObjectModel
import Platform
import SQLiteFormat

/// The entities of a side with their record counts.
struct EntitiesPage: InspectorPage {
  struct Line: Sendable {
    var collection: RecordCollection
    var count: PagePart<Int64?>
    var states: PagePart<[RowState: Int64]?>
  }

  let place: RecordPlace
  let lines: [Line]

  init(_ place: RecordPlace) {
    self.place = place
    let store = place.opened.store
    lines = store.collections.map { collection in
      Line(
        collection: collection, count: PagePart { try store.count(of: collection) },
        states: PagePart { try store.states(of: collection) })
    }
  }

  var title: String { "Records of \(place.store.name)" }
  var crumbs: [Crumb] { place.crumbs }

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    let entities = lines.map { line -> JSON.Object in
      [
        "name": line.collection.name, "title": line.collection.title, "isEntity": line.collection.isEntity,
        "records": line.count,
        "states": (line.states.value ?? nil)?.byName, "path": place.records(line.collection.name),
      ]
    }
    try encoder.encode(["entities": entities])
  }

  func content(_ frame: PageFrame) -> HTML {
    let entities = lines.filter(\.collection.isEntity)
    let tables = lines.filter { !$0.collection.isEntity }
    let compare: HTML =
      place.sides.count > 1
      ? "<a class=\"button\" href=\"\(RequestTarget.store(place.store.id, "compare"))\">Compare</a>" : .empty
    let nothing: HTML =
      lines.isEmpty ? "<div class=\"empty\"><p>Nothing that could hold records was found here.</p></div>" : .empty
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(place.side.words)</p>\(place.notes(frame))</div>
      <div class="row no-print">\(compare)</div></div>
      \(place.tabs { RecordPlace.entities(place.store.id, $0) })
      \(SearchPage.form(place, ""))
      \(nothing)\(table(entities, entities.isEmpty || tables.isEmpty ? "" : "Entities"))\
      \(table(tables, entities.isEmpty ? "" : "Tables that are no entity's"))
      """
  }

  private func table(_ lines: [Line], _ heading: String) -> HTML {
    guard !lines.isEmpty else { return .empty }
    let shown = RowState.allCases.filter { state in
      state != .certain && lines.contains { (($0.states.value ?? nil)?[state] ?? 0) > 0 }
    }
    let rows = lines.map { line -> HTML in
      let name = line.collection.name
      let states = shown.map { state -> HTML in
        let count = (line.states.value ?? nil)?[state] ?? 0
        return .number(count, at: place.records(name, [.init("_state", state.rawValue)]))
      }
      let count: HTML = line.count.html { $0.map { HTML(escaping: grouped($0)) } ?? "many" }
      return .row(
        "<a href=\"\(place.records(name))\">\(line.collection.title ?? name)</a>", .cell(count, "number"), "\(states)",
        .cell("\(Self.columns(of: line.collection))", "soft"))
    }
    let columns = ["Name", .number("Records")] + shown.map { TableColumn.number($0.words) } + ["Properties"]
    return .when(!heading.isEmpty, "<h2>\(heading)</h2>") + .grid(heading.isEmpty ? "Entities" : heading, columns, rows)
  }

  private static func columns(of collection: RecordCollection) -> String {
    let names = collection.columns.filter { $0.kind != .key && $0.kind != .entity }.map(\.name)
    let shown = names.prefix(6).joined(separator: ", ")
    return names.count > 6 ? "\(shown) and \(names.count - 6) more" : shown
  }
}

/// A text search in all records of a side.
struct SearchPage: InspectorPage {
  let place: RecordPlace
  let text: String
  let result: StoreSearch?

  private static let limit = 200

  init(_ place: RecordPlace, _ text: String) throws {
    self.place = place
    self.text = String(text.prefix(Self.limit))
    result = self.text.isEmpty ? nil : try place.opened.store.search(self.text)
  }

  var title: String { text.isEmpty ? "Search" : "Search for “\(text)”" }
  var crumbs: [Crumb] { place.crumbs + [Crumb("Records", place.entities)] }

  func encode(to encoder: any Encoder) throws {
    try place.encode(to: encoder)
    let finds = (result?.finds ?? []).map { finds -> JSON.Object in
      let records = finds.records.map { find -> JSON.Object in
        [
          "key": find.key.description, "entity": find.entity, "property": find.column, "excerpt": find.excerpt,
          "path": place.record(find.key, in: finds.collection),
        ]
      }
      return ["entity": finds.collection, "hasMore": finds.hasMore, "isCut": finds.isCut, "records": records]
    }
    try encoder.encode(["q": text, "finds": finds])
  }

  static func form(_ place: RecordPlace, _ text: String) -> HTML {
    """
    <form class="row no-print" method="get" action="\(place.search)" role="search">
    <label><span>Text in all records</span><input type="search" name="q" value="\(text)"></label>
    <button>Search</button></form>
    """
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <h1>\(title)</h1>
    \(place.tabs { side in
      RequestTarget(segments: ["stores", place.store.id.text, side.description, "search"], query: Query([.init("q", text)]))
    })
    \(Self.form(place, text))
    \(finds)
    """
  }

  private var finds: HTML {
    guard let result else { return .empty }
    let shown = result.finds.filter { !$0.records.isEmpty || $0.isCut }
    guard !shown.isEmpty else { return "<div class=\"empty\"><p>No text of any record contains it.</p></div>" }
    return shown.reduce(into: HTML.empty) { html, finds in html += section(finds) }
  }

  private func section(_ finds: StoreSearch.Finds) -> HTML {
    let rows = finds.records.map { find -> HTML in
      """
      <tr><td><a href="\(place.record(find.key, in: finds.collection))">\(find.entity) \(find.key.description)</a></td>\
      <td class="soft">\(find.column)</td><td>\(marked(find.excerpt))</td></tr>
      """
    }
    let all = place.records(finds.collection, [.init("_search", text)])
    let more: HTML = finds.hasMore ? "<p><a href=\"\(all)\">All that were found in \(finds.collection)</a></p>" : .empty
    let cut = HTML.when(
      finds.isCut,
      """
      <p class="soft">Not all records were looked at: there are many. <a href="\(all)">Look through all of them</a></p>
      """)
    let table = HTML.when(!rows.isEmpty, .grid(finds.collection, ["Record", "Property", "Text"], rows))
    return "<h2>\(finds.collection)</h2>\(table)\(more)\(cut)"
  }

  private func marked(_ excerpt: String) -> HTML {
    let (hay, needle) = (Array(excerpt.unicodeScalars), Array(text.unicodeScalars))
    func same(_ one: Unicode.Scalar, _ other: Unicode.Scalar) -> Bool {
      let isSameLetter = one.properties.lowercaseMapping == other.properties.lowercaseMapping
      return one == other || one.isASCII && other.isASCII && isSameLetter
    }
    guard !needle.isEmpty, needle.count <= hay.count,
      let start = (0...(hay.count - needle.count)).first(where: { start in
        needle.indices.allSatisfy { same(hay[start + $0], needle[$0]) }
      })
    else { return HTML(escaping: excerpt) }
    func piece(_ range: Range<Int>) -> String { String(String.UnicodeScalarView(hay[range])) }
    let end = start + needle.count
    return "\(piece(0..<start))<mark>\(piece(start..<end))</mark>\(piece(end..<hay.count))"
  }
}

/// The finds in all collections of a store.
package struct StoreSearch: Sendable {
  package struct Finds: Sendable {
    package var collection: String

    package var records: [Find]

    var hasMore: Bool

    /// Whether the search timed out.
    package var isCut: Bool
  }

  package struct Find: Sendable, Hashable {
    package var key: RecordKey

    package var entity: String

    var column: String

    package var excerpt: String
  }

  /// The collections with finds or a timeout.
  package var finds: [Finds]
}
