import HTTPServer
import PersistentStore
import Platform
import SQLiteFormat

/// A many-to-many relationship's pairs with one kind of difference between two sides.
struct PairComparisonPage: InspectorPage {
  let sides: ComparedSides
  let kind: RecordDifference
  let summary: PairComparison
  let page: PairPage

  init(_ sides: ComparedSides, _ name: String, _ query: Query) throws {
    self.sides = sides
    summary = try sides.comparison.pairs(name)
    let counts = summary.counts
    if let word = query["kind"] {
      guard let kind = RecordDifference(rawValue: word) else {
        throw Refusal(.badRequest, "the kind of difference is not known")
      }
      self.kind = kind
    } else {
      kind = RecordDifference.allCases.first { (counts?[$0] ?? 0) > 0 } ?? .missing
    }
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
      "places": pair.places.map { place -> JSON.Value in
        ["name": .string(place.name), "first": place.first?.json ?? .null, "second": place.second?.json ?? .null]
      },
    ]
  }

  // MARK: HTML

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">Pairs of records · \(sides.words)</p></div></div>
    \(kinds)\(list)\(pager)
    """
  }

  private var kinds: HTML {
    let links = RecordDifference.allCases.map { other -> HTML in
      let current: HTML = other == kind ? " aria-current=\"page\"" : ""
      let count: HTML = summary.counts.map { "\(Words.number($0[other] ?? 0))" } ?? .empty
      return "<a href=\"\(target(other))\"\(current)>\(count) \(other.pairWords(sides))</a>\n"
    }
    return "<nav class=\"tabs\" aria-label=\"Differences\">\(links)</nav>"
  }

  private var list: HTML {
    guard !page.pairs.isEmpty else {
      let isAlone = !(summary.isInFirst && summary.isInSecond)
      return
        "<div class=\"empty\"><p>\(isAlone ? "Only one of the two has this relationship." : "There are none.")</p></div>"
    }
    let rows = page.pairs.map { pair -> HTML in
      let items = pair.places.map { place -> HTML in
        "<li>place in \(place.name): <del>\(shown(place.first))</del> <ins>\(shown(place.second))</ins></li>"
      }
      let changes: HTML = items.isEmpty ? .empty : "<ul class=\"links\">\(items)</ul>"
      return "<tr><td>\(link(pair.first))</td><td>\(link(pair.second))</td><td>\(changes)</td></tr>\n"
    }
    let heads = """
      <th scope="col">\(page.pairs.first?.first.entity ?? "")</th><th scope="col">\(page.pairs.first?.second.entity ?? "")\
      </th><th scope="col">What differs</th>
      """ as HTML
    return HTML.table(title, head: heads, rows)
  }

  private func shown(_ value: PresentedValue?) -> HTML { value?.html ?? "–" }

  private func link(_ record: ComparedPair.Record) -> HTML {
    let words = "\(record.entity) \(record.key.description)"
    let label: HTML = record.label.map { " <span class=\"soft\">\($0)</span>" } ?? .empty
    // A record lost on both sides has no page.
    guard record.exists, sides.comparison.names.contains(record.entity) else { return "\(words)\(label)" }
    return "<a href=\"\(sides.records(record.entity).appending(record.key.description))\">\(words)</a>\(label)"
  }

  private var pager: HTML {
    guard let next = page.next else { return .empty }
    return """
      <nav class="pager" aria-label="Pages"><span></span>\
      <a class="button main" rel="next" href="\(target(kind, next: next))">Next</a></nav>
      """
  }
}
