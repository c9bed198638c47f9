import HTTPServer
import Platform

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
        guard count > 0 else { return "<td class=\"number soft\">–</td>" }
        let target = place.records(name, [.init("_state", state.rawValue)])
        return "<td class=\"number\"><a href=\"\(target)\">\(Words.number(count))</a></td>"
      }
      let count: HTML = line.count.html { $0.map { HTML(escaping: Words.number($0)) } ?? "many" }
      return """
        <tr><th scope="row"><a href="\(place.records(name))">\(line.collection.title ?? name)</a></th><td class="number">\(count)</td>\(states)\
        <td class="soft">\(Self.columns(of: line.collection))</td></tr>
        """
    }
    let heads = shown.map { TableColumn.number($0.words).head }
    let title: HTML = heading.isEmpty ? .empty : "<h2>\(heading)</h2>"
    return """
      \(title)<div class="scroll" tabindex="0" role="region" aria-label="\(heading.isEmpty ? "Entities" : heading)"><table>
      <thead><tr><th scope="col">Name</th><th scope="col" class="number">Records</th>\(heads)\
      <th scope="col">Properties</th></tr></thead><tbody>\(rows)</tbody></table></div>
      """
  }

  private static func columns(of collection: RecordCollection) -> String {
    let names = collection.columns.filter { $0.kind != .key && $0.kind != .entity }.map(\.name)
    let shown = names.prefix(6).joined(separator: ", ")
    return names.count > 6 ? "\(shown) and \(names.count - 6) more" : shown
  }
}
