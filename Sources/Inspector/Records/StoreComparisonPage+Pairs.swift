import HTTPServer
import ManagedObjectModel
import Platform

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
  package var name: String

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
