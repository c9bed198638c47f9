import HTTPServer
import RecordBrowsing
import StoreCoordination

/// The choice of two sides to compare.
struct ComparisonChoicePage: InspectorPage {
  let store: ListedStore
  let sides: [SideName]

  var title: String { "Compare" }
  var crumbs: [Crumb] { [.stores, Crumb(store.name, .store(store.id))] }

  private var pairs: [(SideName, SideName)] {
    let usable = sides.filter { $0 != .setAside }
    return usable.indices.flatMap { one in usable[(one + 1)...].map { (usable[one], $0) } }
  }

  private func target(_ pair: (SideName, SideName)) -> RequestTarget {
    .store(store.id, "compare", pair.0.description, pair.1.description, "entities")
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "sides": sides.map(\.description), "comparisons": pairs.map { target($0) },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let items = pairs.map { pair -> HTML in
      "<li><a href=\"\(target(pair))\">\(pair.0.phrase.capitalizedFirst) and \(pair.1.phrase)</a></li>"
    }
    let list: HTML =
      items.isEmpty
      ? "<div class=\"empty\"><p>There is only one side of this store. Salvage it, or back it up, to have another.</p></div>"
      : "<ul class=\"panel links\">\(items)</ul>"
    return "<h1>Compare \(store.name)</h1><p>What is added, missing or has other values, entity by entity.</p>\(list)"
  }
}

/// The differences of all entities between two sides.
struct StoreComparisonPage: InspectorPage {
  let sides: ComparedSides
  let entities: [(name: String, part: PagePart<EntityComparison>)]

  init(_ sides: ComparedSides) {
    self.sides = sides
    entities = sides.comparison.names.map { name in (name, PagePart { try sides.comparison.entity(name) }) }
  }

  var title: String { sides.words }
  var crumbs: [Crumb] { sides.crumbs }

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encoder.encode(["entities": entities.map { $0.part.map(Self.payload) }])
  }

  static func payload(_ entity: EntityComparison) -> JSON.Object {
    [
      "name": entity.name, "first": JSON.orNull(entity.first), "second": JSON.orNull(entity.second),
      "missing": entity.counts.map { $0[.missing] ?? 0 }, "added": entity.counts.map { $0[.added] ?? 0 },
      "changed": entity.counts.map { $0[.changed] ?? 0 },
    ]
  }

  func content(_ frame: PageFrame) -> HTML {
    let rows = entities.map { name, part -> HTML in
      let cells: HTML = part.html { entity in self.cells(entity) }
      return part.value == nil
        ? "<tr><th scope=\"row\">\(name)</th><td colspan=\"5\">\(cells)</td></tr>"
        : "<tr><th scope=\"row\"><a href=\"\(sides.records(name))\">\(name)</a></th>\(cells)</tr>\n"
    }
    let heads = RecordDifference.allCases.map { "<th scope=\"col\" class=\"number\">\($0.words(sides))</th>" as HTML }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">Records are told apart by their primary keys.</p></div>
      <a class="button no-print" href="\(sides.turned)">The other way round</a></div>
      <div class="scroll" tabindex="0" role="region" aria-label="Entities"><table><thead><tr><th scope="col">Entity</th>\
      <th scope="col" class="number">\(sides.first.side.title)</th>\
      <th scope="col" class="number">\(sides.second.side.title)</th>\(heads)</tr></thead>
      <tbody>\(rows)</tbody></table></div>
      """
  }

  private func cells(_ entity: EntityComparison) -> HTML {
    let own: [HTML] = [entity.first, entity.second].map { count in
      "<td class=\"number\">\(count.map { HTML(escaping: Words.number($0)) } ?? "–")</td>"
    }
    guard let counts = entity.counts else {
      let isAlone = entity.first == nil || entity.second == nil
      let words = isAlone ? "only one of them has it" : "too many to compare in time"
      return "\(own)<td colspan=\"3\" class=\"soft\">\(words)</td>"
    }
    let differences = RecordDifference.allCases.map { difference -> HTML in
      let count = counts[difference] ?? 0
      guard count > 0 else { return "<td class=\"number soft\">–</td>" }
      let target = sides.records(entity.name, [.init("kind", difference.rawValue)])
      return "<td class=\"number\"><a href=\"\(target)\">\(Words.number(count))</a></td>"
    }
    return "\(own)\(differences)"
  }
}
