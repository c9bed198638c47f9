import HTTPServer
import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat

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
    kind = try RecordDifference(query, summary.counts)
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
      "label": JSON.orNull(record.label), "properties": record.properties.map(\.json),
    ]
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">\(sides.words)</p></div></div>
    \(StoreComparisonPage.onlyIn(summary, sides))\
    \(sides.tabs(summary.counts, kind, arePairs: false) { target($0, by: property) })\(identities)\(list)\(pager)
    """
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
      .choice("\(words)", target(kind, by: by), isCurrent: by == property)
    }
    let links = [link("primary key", nil)] + names.map { link($0, $0) }
    return "<p class=\"soft\">Told apart by</p><ul class=\"chips\">\(links)</ul>"
  }

  private var list: HTML {
    guard !page.records.isEmpty else {
      let words =
        summary.first == nil || summary.second == nil ? "Only one of the two has this entity." : "There are none."
      return "<div class=\"empty\"><p>\(words)</p></div>"
    }
    let rows = page.records.map { record -> HTML in
      let key = record.firstKey ?? record.secondKey
      let label: HTML = record.label.map { HTML(escaping: $0) } ?? .empty
      let link: HTML = key.map(link) ?? .empty
      let items = record.properties.prefix(8).map { property -> HTML in "<li>\(property.html)</li>" }
      let more: HTML = record.properties.count > 8 ? "<li>and \(record.properties.count - 8) more</li>" : .empty
      let changes: HTML = items.isEmpty ? .empty : "<ul class=\"links\">\(items)\(more)</ul>"
      return "<tr><td>\(link)</td><td>\(label)</td><td>\(changes)</td></tr>\n"
    }
    return .grid(name, ["Record", "Name", "What differs"], rows)
  }

  private func link(_ key: RecordKey) -> HTML {
    "<a href=\"\(sides.records(name).appending(key.description))\">\(name) \(key.description)</a>"
  }

  private var pager: HTML {
    page.next.map { .pager(first: nil, next: target(kind, by: property, next: $0), "Next") } ?? .empty
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
  var crumbs: [Crumb] { sides.crumbs + [Crumb(sides.words, sides.target), Crumb(name, sides.records(name))] }

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
      return .row("\(line.name)", cell(line.first, "<del>", "</del>"), cell(line.second, "<ins>", "</ins>"))
    }
    return """
      <div class="head"><div><h1>\(title)</h1><p class="soft">\(name) \(key) · \(sides.words)</p></div></div>
      \(HTML.grid(title, ["Property", column(sides.first, first), column(sides.second, second)], rows))
      """
  }

  private func column(_ place: RecordPlace, _ detail: RecordDetail?) -> TableColumn {
    let link: HTML? = detail.map { "<a href=\"\(place.record($0.row.key, in: name))\">\(place.side.title)</a>" }
    return TableColumn(head: "<th scope=\"col\">\(link ?? "\(place.side.title)<small>not there</small>")</th>")
  }
}

/// A many-to-many relationship's pairs with one kind of difference between two sides.
struct PairComparisonPage: InspectorPage {
  let sides: ComparedSides
  let kind: RecordDifference
  let summary: PairComparison
  let page: PairPage

  init(_ sides: ComparedSides, _ name: String, _ query: Query) throws {
    self.sides = sides
    summary = try sides.comparison.pairs(name)
    kind = try RecordDifference(query, summary.counts)
    page = try sides.comparison.pairs(name, kind, next: query["_next"])
  }

  var title: String { summary.words }
  var crumbs: [Crumb] { sides.crumbs + [Crumb(sides.words, sides.target)] }

  private func target(_ kind: RecordDifference, next: String? = nil) -> RequestTarget {
    var items: [Query.Item] = [.init("kind", kind.rawValue)]
    if let next { items.append(.init("_next", next)) }
    return sides.pairs(summary.name, items)
  }

  // MARK: JSON

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encoder.encode([
      "relationship": StoreComparisonPage.payload(summary), "kind": kind.rawValue,
      "pairs": page.pairs.map(Self.payload), "next": JSON.orNull(page.next),
    ])
  }

  private static func payload(_ pair: ComparedPair) -> JSON.Object {
    [
      "records": [pair.first, pair.second].map { record -> JSON.Value in
        [
          "entity": .string(record.entity), "key": .string(record.key.description),
          "label": record.label.map { .string($0) } ?? .null,
        ]
      },
      "places": pair.places.map(\.json),
    ]
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">Pairs of records · \(sides.words)</p></div></div>
    \(sides.tabs(summary.counts, kind, arePairs: true) { target($0) })\(list)\(pager)
    """
  }

  private var list: HTML {
    guard !page.pairs.isEmpty else {
      let isAlone = !(summary.isInFirst && summary.isInSecond)
      return
        "<div class=\"empty\"><p>\(isAlone ? "Only one of the two has this relationship." : "There are none.")</p></div>"
    }
    let rows = page.pairs.map { pair -> HTML in
      let items = pair.places.map { place -> HTML in "<li>place in \(place.html)</li>" }
      let changes: HTML = items.isEmpty ? .empty : "<ul class=\"links\">\(items)</ul>"
      return "<tr><td>\(link(pair.first))</td><td>\(link(pair.second))</td><td>\(changes)</td></tr>\n"
    }
    let names = [page.pairs.first?.first.entity ?? "", page.pairs.first?.second.entity ?? "", "What differs"]
    return .table(title, names.map { TableColumn($0) }, rows)
  }

  private func link(_ record: ComparedPair.Record) -> HTML {
    let words = "\(record.entity) \(record.key.description)"
    let label: HTML = record.label.map { " <span class=\"soft\">\($0)</span>" } ?? .empty
    // A record lost on both sides has no page.
    guard record.exists, sides.comparison.names.contains(record.entity) else { return "\(words)\(label)" }
    return "<a href=\"\(sides.records(record.entity).appending(record.key.description))\">\(words)</a>\(label)"
  }

  private var pager: HTML { page.next.map { .pager(first: nil, next: target(kind, next: $0), "Next") } ?? .empty }
}

extension ComparedRecord.Property {
  fileprivate var json: JSON.Value {
    ["name": .string(name), "first": first?.json ?? .null, "second": second?.json ?? .null]
  }

  fileprivate var html: HTML { "\(name): <del>\(first?.html ?? "–")</del> <ins>\(second?.html ?? "–")</ins>" }
}

extension PairComparison {
  /// Both names, or the one of a self-inverse relationship.
  var words: String { sides.joined(separator: " and ") }
}
