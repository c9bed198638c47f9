import HTTPServer
import RecordBrowsing
import StoreCoordination

/// The pairs of many-to-many relationships, which are in no entity's table.
extension StoreComparisonPage {
  static func payload(_ pairs: PairComparison) -> JSON.Object {
    [
      "name": pairs.name, "sides": pairs.sides, "first": JSON.orNull(pairs.first), "second": JSON.orNull(pairs.second),
      "inFirst": pairs.isInFirst, "inSecond": pairs.isInSecond, "missing": JSON.orNull(pairs.count(.missing)),
      "added": JSON.orNull(pairs.count(.added)), "changed": JSON.orNull(pairs.count(.changed)),
    ]
  }

  /// How many pairs differ in each way, of all relationships that could be compared; empty where there are none.
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

  /// The table of the many-to-many relationships; empty where there are none.
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
  /// What a page calls the relationship: both its names, or the one where it is its own inverse.
  var words: String { sides.joined(separator: " and ") }
}
