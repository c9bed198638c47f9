import HTTPServer
import Platform

struct ComparedSides: Sendable, Encodable {
  let first: RecordPlace
  let second: RecordPlace
  let comparison: SideComparison

  var store: ListedStore { first.store }

  var target: RequestTarget {
    .store(store.id, "compare", first.side.description, second.side.description, "entities")
  }

  var turned: RequestTarget {
    .store(store.id, "compare", second.side.description, first.side.description, "entities")
  }

  func records(_ name: String, _ query: [Query.Item] = []) -> RequestTarget {
    var target = target.appending(segment(name), "records")
    target.query = Query(query)
    return target
  }

  func pairs(_ name: String, _ query: [Query.Item] = []) -> RequestTarget {
    let segment = SegmentName.segment(name, at: comparison.relationshipNames.firstIndex(of: name))
    var target = RequestTarget.store(
      store.id, "compare", first.side.description, second.side.description, "relationships"
    ).appending(segment, "pairs")
    target.query = Query(query)
    return target
  }

  func relationship(segment: String) throws -> String {
    let names = comparison.relationshipNames
    guard let index = SegmentName.index(of: segment, in: names) else {
      throw Refusal(.notFound, "neither of the stores has such a relationship")
    }
    return names[index]
  }

  func segment(_ name: String) -> String { SegmentName.segment(name, at: comparison.names.firstIndex(of: name)) }

  func name(segment: String) throws -> String {
    guard let index = SegmentName.index(of: segment, in: comparison.names) else {
      throw Refusal(.notFound, "neither of the stores has such an entity")
    }
    return comparison.names[index]
  }

  var crumbs: [Crumb] { first.crumbs + [Crumb("Compare", .store(store.id, "compare"))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "first": first.side.description, "second": second.side.description,
    ])
  }

  /// Splits off the ones set aside, which the salvaged store lacks but which aren't lost.
  func apart(_ count: Int64, _ difference: RecordDifference, arePairs: Bool) -> (rest: Int64, aside: HTML) {
    guard difference == .missing, hasApart(arePairs: arePairs), let facts = second.salvage else {
      return (count, .empty)
    }
    let aside = facts.setAside(count, arePairs: arePairs)
    guard aside > 0 else { return (count, .empty) }
    let words = arePairs ? Words.counted(aside, "pair") : Words.number(aside)
    return (count - aside, "<li>\(HTML.tag("\(words) set aside", .warn))</li>")
  }

  /// Whether something only the first side has was set aside.
  func hasApart(arePairs: Bool) -> Bool {
    guard first.side == .original, second.side == .salvaged, let facts = second.salvage else { return false }
    return facts.setAside(.max, arePairs: arePairs) > 0
  }

  func heading(_ difference: RecordDifference, arePairs: Bool) -> String {
    let word = difference.word.capitalizedFirst
    return difference == .missing && hasApart(arePairs: arePairs) ? "\(word) or set aside" : word
  }

  var words: String { "\(first.side.phrase.capitalizedFirst) and \(second.side.phrase)" }
}

extension RecordDifference {
  /// The word from an earlier to a later version.
  var word: String {
    switch self {
    case .missing: "lost"
    case .added: "added"
    case .changed: "changed"
    }
  }

  var tone: HTML.Tone {
    switch self {
    case .missing: .bad
    case .added: .good
    case .changed: .warn
    }
  }

  func pairWords(_ sides: ComparedSides) -> String { self == .changed ? "at another place" : words(sides) }

  func words(_ sides: ComparedSides) -> String {
    switch self {
    case .missing: "only in \(sides.first.side.phrase)"
    case .added: "only in \(sides.second.side.phrase)"
    case .changed: "with other values"
    }
  }
}

/// The URL segment of a name.
///
/// Impossible names (slashes, control characters) are given by index: `~n3`.
enum SegmentName {
  /// Returns the segment of a name at an index.
  static func segment(_ name: String, at index: Int?) -> String {
    let isPlain = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20 && scalar.value != 0x7F && scalar != "/" && scalar != "\\"
    }
    let isUsable = !["", ".", ".."].contains(name) && !name.hasPrefix("~") && name.utf8.count <= 200
    return isPlain && isUsable ? name : "~n\(index ?? 0)"
  }

  static func index(of segment: String, in names: [String]) -> Int? {
    if segment.hasPrefix("~n"), let index = Int(segment.dropFirst(2)), names.indices.contains(index) { return index }
    return names.firstIndex(of: segment)
  }
}

extension BrowsedStore {
  func segment(_ name: String) -> String {
    SegmentName.segment(name, at: collections.firstIndex { $0.name == name })
  }

  /// - Throws: `unknown-entity`.
  func collection(segment: String) throws -> RecordCollection {
    guard let index = SegmentName.index(of: segment, in: collections.map(\.name)) else {
      return try collection(segment)
    }
    return collections[index]
  }
}

extension RecordCollection {
  func segment(_ column: String) -> String {
    SegmentName.segment(column, at: columns.firstIndex { $0.name == column })
  }

  func column(segment: String) -> RecordColumn? {
    SegmentName.index(of: segment, in: columns.map(\.name)).map { columns[$0] }
  }
}
