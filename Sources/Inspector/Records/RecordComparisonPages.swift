import HTTPServer
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
import Salvage

/// An entity's records with one kind of difference between two sides.
struct EntityComparisonPage: InspectorPage {
  let sides: ComparedSides
  let name: String
  let kind: RecordDifference

  /// The identifying property; nil for the primary key.
  let property: String?
  let summary: EntityComparison
  let page: ComparisonPage

  init(_ sides: ComparedSides, _ name: String, _ query: Query) throws {
    self.sides = sides
    self.name = name
    property = query["by"].flatMap { $0.isEmpty ? nil : $0 }
    summary = try sides.comparison.entity(name, by: property)
    let counts = summary.counts
    let first = RecordDifference.allCases.first { (counts?[$0] ?? 0) > 0 } ?? .missing
    if let word = query["kind"] {
      guard let kind = RecordDifference(rawValue: word) else {
        throw Refusal(.badRequest, "the kind of difference is not known")
      }
      self.kind = kind
    } else {
      kind = first
    }
    guard summary.first != nil, summary.second != nil else {
      page = ComparisonPage(records: [], next: nil)
      return
    }
    let collection = try (kind == .added ? sides.second : sides.first).opened.store.collection(name)
    let next = try query["_next"].map { try RecordKey($0, of: collection) }
    page = try sides.comparison.records(name, kind, by: property, next: next)
  }

  var title: String { name }
  var crumbs: [Crumb] { sides.crumbs + [Crumb(sides.words, sides.target)] }

  private func target(_ kind: RecordDifference, by property: String?, next: RecordKey? = nil) -> RequestTarget {
    var items: [Query.Item] = [.init("kind", kind.rawValue)]
    if let property { items.append(.init("by", property)) }
    if let next { items.append(.init("_next", next.description)) }
    return sides.records(name, items)
  }

  // MARK: JSON

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encoder.encode([
      "entity": StoreComparisonPage.payload(summary), "kind": kind.rawValue, "by": JSON.orNull(property),
      "records": page.records.map(Self.payload), "next": JSON.orNull(page.next?.description),
    ])
  }

  private static func payload(_ record: ComparedRecord) -> JSON.Object {
    [
      "firstKey": JSON.orNull(record.firstKey?.description), "secondKey": JSON.orNull(record.secondKey?.description),
      "label": JSON.orNull(record.label),
      "properties": record.properties.map { property -> JSON.Value in
        [
          "name": .string(property.name), "first": property.first?.json ?? .null,
          "second": property.second?.json ?? .null,
        ]
      },
    ]
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">\(sides.words)</p></div></div>
    \(StoreComparisonPage.onlyIn(summary, sides))\(kinds)\(identities)\(list)\(pager)
    """
  }

  private var kinds: HTML {
    let links = RecordDifference.allCases.map { other -> HTML in
      let current: HTML = other == kind ? " aria-current=\"page\"" : ""
      let count: HTML = summary.counts.map { "\(Words.number($0[other] ?? 0))" } ?? .empty
      return "<a href=\"\(target(other, by: property))\"\(current)>\(count) \(other.words(sides))</a>\n"
    }
    return "<nav class=\"tabs\" aria-label=\"Differences\">\(links)</nav>"
  }

  /// Primary keys, or UUID properties of both.
  private var identities: HTML {
    let one = sides.first.opened.store.collections.first { $0.name == name }
    let other = sides.second.opened.store.collections.first { $0.name == name }
    let names = (one?.columns ?? []).filter { column in
      column.typeName == "uuid" && other?.columns.contains { $0.name == column.name && $0.typeName == "uuid" } == true
    }.map(\.name)
    guard !names.isEmpty else { return .empty }
    func link(_ words: String, _ by: String?) -> HTML {
      let current: HTML = by == property ? " aria-current=\"true\"" : ""
      let style: HTML = by == property ? "tag accent" : "tag"
      return "<li><a class=\"\(style)\" href=\"\(target(kind, by: by))\"\(current)>\(words)</a></li>"
    }
    let links = [link("primary key", nil)] + names.map { link($0, $0) }
    return "<p class=\"soft\">Told apart by</p><ul class=\"chips\">\(links)</ul>"
  }

  private var list: HTML {
    guard !page.records.isEmpty else {
      let words =
        summary.first == nil || summary.second == nil
        ? "Only one of the two has this entity." : "There are none."
      return "<div class=\"empty\"><p>\(words)</p></div>"
    }
    let rows = page.records.map { record -> HTML in
      let key = record.firstKey ?? record.secondKey
      let label: HTML = record.label.map { HTML(escaping: $0) } ?? .empty
      let link: HTML = key.map(link) ?? .empty
      let items = record.properties.prefix(8).map { property -> HTML in
        "<li>\(property.name): <del>\(shown(property.first))</del> <ins>\(shown(property.second))</ins></li>"
      }
      let more: HTML = record.properties.count > 8 ? "<li>and \(record.properties.count - 8) more</li>" : .empty
      let changes: HTML = items.isEmpty ? .empty : "<ul class=\"links\">\(items)\(more)</ul>"
      return "<tr><td>\(link)</td><td>\(label)</td><td>\(changes)</td></tr>\n"
    }
    return """
      <div class="scroll" tabindex="0" role="region" aria-label="\(name)"><table><thead><tr><th scope="col">Record</th>\
      <th scope="col">Name</th><th scope="col">What differs</th></tr></thead><tbody>\(rows)</tbody></table></div>
      """
  }

  private func shown(_ value: PresentedValue?) -> HTML { value?.html ?? "–" }

  private func link(_ key: RecordKey) -> HTML {
    "<a href=\"\(sides.records(name).appending(key.description))\">\(name) \(key.description)</a>"
  }

  private var pager: HTML {
    guard let next = page.next else { return .empty }
    return """
      <nav class="pager" aria-label="Pages"><span></span>\
      <a class="button main" rel="next" href="\(target(kind, by: property, next: next))">Next</a></nav>
      """
  }
}

struct RecordComparisonPage: InspectorPage {
  let sides: ComparedSides
  let name: String
  let key: String
  let first: RecordDetail?
  let second: RecordDetail?

  init(_ sides: ComparedSides, _ name: String, _ key: String) throws {
    self.sides = sides
    self.name = name
    self.key = key
    first = try Self.detail(sides.first, name, key)
    second = try Self.detail(sides.second, name, key)
    guard first != nil || second != nil else { throw Refusal(.notFound, "neither of the stores has such a record") }
  }

  private static func detail(_ place: RecordPlace, _ name: String, _ key: String) throws -> RecordDetail? {
    let store = place.opened.store
    guard let collection = store.collections.first(where: { $0.name == name }) else { return nil }
    do throws(PersistentStoreError) {
      return try store.detail(of: RecordKey(key, of: collection), in: collection)
    } catch {
      guard error.kind == .unknownRecord else { throw error }
      return nil
    }
  }

  var title: String { first?.label ?? second?.label ?? "\(name) \(key)" }
  var crumbs: [Crumb] {
    sides.crumbs + [Crumb(sides.words, sides.target), Crumb(name, sides.records(name))]
  }

  /// The properties of both, the first side's first.
  private var lines: [(name: String, first: PresentedValue?, second: PresentedValue?)] {
    func values(_ detail: RecordDetail?) -> [(String, PresentedValue)] {
      detail.map { Array(zip($0.columns.map(\.name), $0.row.values)) } ?? []
    }
    let (one, other) = (values(first), values(second))
    var result = one.map { name, value in (name, value as PresentedValue?, other.first { $0.0 == name }?.1) }
    result += other.filter { line in !one.contains { $0.0 == line.0 } }.map { ($0.0, nil, $0.1) }
    return result
  }

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encoder.encode([
      "entity": name, "key": key, "inFirst": first != nil, "inSecond": second != nil,
      "properties": lines.map { line -> JSON.Value in
        [
          "name": .string(line.name), "first": line.first?.json ?? .null, "second": line.second?.json ?? .null,
          "isSame": .boolean(line.first == line.second),
        ]
      },
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let rows = lines.map { line -> HTML in
      let isSame = line.first == line.second
      func cell(_ value: PresentedValue?, _ mark: HTML, _ end: HTML) -> HTML {
        guard let value else { return "<td class=\"soft\">–</td>" }
        return isSame ? "<td>\(value.html)</td>" : "<td>\(mark)\(value.html)\(end)</td>"
      }
      return """
        <tr><th scope="row">\(line.name)</th>\(cell(line.first, "<del>", "</del>"))\
        \(cell(line.second, "<ins>", "</ins>"))</tr>
        """
    }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(name) \(key) · \(sides.words)</p></div></div>
      <div class="scroll" tabindex="0" role="region" aria-label="\(title)"><table><thead><tr><th scope="col">Property</th>\
      \(head(sides.first, first))\(head(sides.second, second))</tr></thead><tbody>\(rows)</tbody></table></div>
      """
  }

  private func head(_ place: RecordPlace, _ detail: RecordDetail?) -> HTML {
    guard let detail else { return "<th scope=\"col\">\(place.side.title)<small>not there</small></th>" }
    return """
      <th scope="col"><a href="\(place.record(detail.row.key, in: name))">\(place.side.title)</a></th>
      """
  }
}
