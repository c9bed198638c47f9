import HTTPServer
import ManagedObjectModel
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

/// The pairs of many-to-many relationships.
extension StoreComparisonPage {
  static func payload(_ pairs: PairComparison) -> JSON.Object {
    [
      "name": pairs.name, "sides": pairs.sides, "first": JSON.orNull(pairs.first), "second": JSON.orNull(pairs.second),
      "inFirst": pairs.isInFirst, "inSecond": pairs.isInSecond, "missing": JSON.orNull(pairs.count(.missing)),
      "added": JSON.orNull(pairs.count(.added)), "changed": JSON.orNull(pairs.count(.changed)),
    ]
  }

  var pairSummary: HTML {
    guard !relationships.isEmpty else { return .empty }
    func words(_ count: Int64, _ difference: RecordDifference) -> String {
      let pairs = Words.counted(count, "pair", "pairs")
      return difference == .changed ? "\(pairs) at another place" : "\(pairs) \(difference.word)"
    }
    let items = RecordDifference.allCases.map { difference -> HTML in
      let count = relationships.reduce(Int64(0)) { $0 + ($1.part.value?.count(difference) ?? 0) }
      let (rest, aside) = sides.apart(count, difference, arePairs: true)
      return "<li>\(HTML.tag(words(rest, difference), rest == 0 ? .plain : difference.tone))</li>\(aside)"
    }
    let open = relationships.count { line in
      RecordDifference.allCases.contains { line.part.value?.count($0) == nil }
    }
    let rest: HTML =
      open == 0
      ? .empty
      : "<li>\(HTML.tag("\(Words.counted(open, "relationship", "relationships")) not compared", .warn))</li>"
    return "\(items)\(rest)"
  }

  var pairTable: HTML {
    guard !relationships.isEmpty else { return .empty }
    let rows = relationships.map { name, part -> HTML in
      let cells: HTML = part.html { pairs in self.cells(pairs) }
      guard let pairs = part.value else {
        return "<tr><th scope=\"row\">\(name)</th><td colspan=\"5\">\(cells)</td></tr>\n"
      }
      return "<tr><th scope=\"row\"><a href=\"\(sides.pairs(name))\">\(pairs.words)</a></th>\(cells)</tr>\n"
    }
    let heads = RecordDifference.allCases.map { difference -> HTML in
      """
      <th scope="col" class="number">\(sides.heading(difference, arePairs: true))<small>\(difference.pairWords(sides))</small></th>
      """
    }
    return """
      <h2>Pairs of many-to-many relationships</h2>
      \(HTML.table("Pairs of many-to-many relationships", head: """
        <th scope="col">Relationship</th><th scope="col" class="number">\(sides.first.side.title)</th>\
        <th scope="col" class="number">\(sides.second.side.title)</th>\(heads)
        """, rows))
      """
  }

  private func cells(_ pairs: PairComparison) -> HTML {
    let own: [HTML] = [pairs.first, pairs.second].map { count in
      "<td class=\"number\">\(count.map { HTML(escaping: Words.number($0)) } ?? "–")</td>"
    }
    guard let counts = pairs.counts else {
      let isAlone = !(pairs.isInFirst && pairs.isInSecond)
      let words = isAlone ? "only one of them has it" : "too many to compare in time"
      return "\(own)<td colspan=\"3\" class=\"soft\">\(words)</td>"
    }
    let differences = RecordDifference.allCases.map { difference -> HTML in
      let count = counts[difference] ?? 0
      guard count > 0 else { return "<td class=\"number soft\">–</td>" }
      let target = sides.pairs(pairs.name, [.init("kind", difference.rawValue)])
      return "<td class=\"number\"><a href=\"\(target)\">\(Words.number(count))</a></td>"
    }
    return "\(own)\(differences)"
  }
}

extension PairComparison {
  /// Both names, or the one of a self-inverse relationship.
  var words: String { sides.joined(separator: " and ") }
}

/// The differences of a many-to-many relationship's pairs.
package struct PairComparison: Sendable, Hashable {
  var name: String

  /// Both names, such as `Port.ships` and `Ship.ports`; one if self-inverse.
  package var sides: [String]

  /// The first store's pairs; nil if absent or on timeout.
  package var first: Int64?

  /// The second store's pairs; nil if absent or on timeout.
  package var second: Int64?

  /// The pairs by difference, other positions as changed; nil on timeout or if a store lacks the relationship.
  package var counts: [RecordDifference: Int64]?

  package var isInFirst: Bool

  package var isInSecond: Bool

  init(_ name: String, _ first: ManyToMany?, _ second: ManyToMany?) {
    self.name = name
    let shown = first ?? second
    let names = shown.map { [$0.first.name, $0.second.name] } ?? []
    sides = names.first == names.last ? Array(names.prefix(1)) : names
    isInFirst = first != nil
    isInSecond = second != nil
  }

  /// - Returns: all pairs if only one store has the relationship; nil if not compared.
  package func count(_ difference: RecordDifference) -> Int64? {
    if let counts { return counts[difference] ?? 0 }
    switch (isInFirst, isInSecond) {
    case (true, false): return difference == .missing ? first : 0
    case (false, true): return difference == .added ? second : 0
    case (true, true): return nil
    case (false, false): return 0
    }
  }
}
