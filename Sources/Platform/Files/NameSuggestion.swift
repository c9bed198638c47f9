package enum NameSuggestion {
  /// Returns the most similar name, if any; ignores case.
  package static func nearest(to name: String, among names: some Sequence<String>) -> String? {
    let wanted = Array(name.lowercased().unicodeScalars.prefix(64))
    var best: (name: String, distance: Int)?
    for candidate in names {
      let distance = distance(wanted, Array(candidate.lowercased().unicodeScalars.prefix(64)))
      if best.map({ distance < $0.distance }) ?? true { best = (candidate, distance) }
    }
    guard let best, best.distance <= max(1, wanted.count / 3) else { return nil }
    return best.name
  }

  /// Returns `Did you mean "name"? ` and the allowed names, at most 40.
  package static func hint(for name: String, among names: [String], _ what: String) -> String {
    let sorted = names.sorted()
    let guess = nearest(to: name, among: sorted).map { "Did you mean \"\(printable($0))\"? " } ?? ""
    guard !sorted.isEmpty else { return guess + "There are no \(what)." }
    let shown = sorted.prefix(40).map(printable).joined(separator: ", ")
    return guess + "The \(what): \(shown)\(sorted.count > 40 ? " and \(sorted.count - 40) more" : "")."
  }

  private static func distance(_ first: [Unicode.Scalar], _ second: [Unicode.Scalar]) -> Int {
    var row = Array(0...second.count)
    for (index, scalar) in first.enumerated() {
      var diagonal = row[0]
      row[0] = index + 1
      for place in second.indices {
        let above = row[place + 1]
        row[place + 1] = min(above + 1, row[place] + 1, diagonal + (scalar == second[place] ? 0 : 1))
        diagonal = above
      }
    }
    return row[second.count]
  }
}
