import HTTPServer
import Platform

/// Two sides of a store that are compared.
struct ComparedSides: Sendable, Encodable {
  let first: RecordPlace
  let second: RecordPlace
  let comparison: SideComparison

  var store: ListedStore { first.store }

  /// The address of the comparison.
  var target: RequestTarget {
    .store(store.id, "compare", first.side.description, second.side.description, "entities")
  }

  /// The address of the same comparison the other way round.
  var turned: RequestTarget {
    .store(store.id, "compare", second.side.description, first.side.description, "entities")
  }

  /// The records of an entity that differ.
  func records(_ name: String, _ query: [Query.Item] = []) -> RequestTarget {
    var target = target.appending(segment(name), "records")
    target.query = Query(query)
    return target
  }

  /// The pairs of a many-to-many relationship that differ.
  func pairs(_ name: String, _ query: [Query.Item] = []) -> RequestTarget {
    let segment = SegmentName.segment(name, at: comparison.relationshipNames.firstIndex(of: name))
    var target = RequestTarget.store(
      store.id, "compare", first.side.description, second.side.description, "relationships"
    ).appending(segment, "pairs")
    target.query = Query(query)
    return target
  }

  /// The name of a many-to-many relationship that a segment of an address stands for.
  func relationship(segment: String) throws -> String {
    let names = comparison.relationshipNames
    guard let index = SegmentName.index(of: segment, in: names) else {
      throw Refusal(.notFound, "neither of the stores has such a relationship")
    }
    return names[index]
  }

  /// The segment of an address for an entity: by its place in the first store, else in the list of both.
  func segment(_ name: String) -> String { SegmentName.segment(name, at: comparison.names.firstIndex(of: name)) }

  /// The name of an entity that a segment of an address stands for.
  func name(segment: String) throws -> String {
    guard let index = SegmentName.index(of: segment, in: comparison.names) else {
      throw Refusal(.notFound, "neither of the stores has such an entity")
    }
    return comparison.names[index]
  }

  var crumbs: [Crumb] { first.crumbs + [Crumb("Compare", .store(store.id, "compare"))] }

  /// Writes which sides of which store they are.
  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "first": first.side.description, "second": second.side.description,
    ])
  }

  /// How many of what differs are lost or added, and a tag of how many were set aside: the salvaged store lacks those, and
  /// they are not lost.
  func apart(_ count: Int64, _ difference: RecordDifference, arePairs: Bool) -> (rest: Int64, aside: HTML) {
    guard difference == .missing, hasApart(arePairs: arePairs), let facts = second.salvage else {
      return (count, .empty)
    }
    let aside = facts.setAside(count, arePairs: arePairs)
    guard aside > 0 else { return (count, .empty) }
    let words = arePairs ? Words.counted(aside, "pair") : Words.number(aside)
    return (count - aside, "<li>\(HTML.tag("\(words) set aside", .warn))</li>")
  }

  /// Whether something of what only the first has was set aside.
  func hasApart(arePairs: Bool) -> Bool {
    guard first.side == .original, second.side == .salvaged, let facts = second.salvage else { return false }
    return facts.setAside(.max, arePairs: arePairs) > 0
  }

  /// What a difference is called over a column of numbers.
  func heading(_ difference: RecordDifference, arePairs: Bool) -> String {
    let word = difference.word.capitalizedFirst
    return difference == .missing && hasApart(arePairs: arePairs) ? "\(word) or set aside" : word
  }

  /// Which sides they are, in words.
  var words: String { "\(first.side.phrase.capitalizedFirst) and \(second.side.phrase)" }
}

extension RecordDifference {
  /// What it is called from an earlier version of a store to a later one.
  var word: String {
    switch self {
    case .missing: "lost"
    case .added: "added"
    case .changed: "changed"
    }
  }

  /// How a number of such records or pairs is coloured.
  var tone: HTML.Tone {
    switch self {
    case .missing: .bad
    case .added: .good
    case .changed: .warn
    }
  }

  /// What it is called of pairs between two sides.
  func pairWords(_ sides: ComparedSides) -> String { self == .changed ? "at another place" : words(sides) }

  /// What it is called between two sides.
  func words(_ sides: ComparedSides) -> String {
    switch self {
    case .missing: "only in \(sides.first.side.phrase)"
    case .added: "only in \(sides.second.side.phrase)"
    case .changed: "with other values"
    }
  }
}

/// The name of an entity, a table or a property as a segment of an address.
///
/// Names that no segment can have, with slashes or control characters in them, stand there by their place in the list: `~n3`.
enum SegmentName {
  /// The segment for a name at a place of a list.
  static func segment(_ name: String, at index: Int?) -> String {
    let isPlain = name.unicodeScalars.allSatisfy { scalar in
      scalar.value >= 0x20 && scalar.value != 0x7F && scalar != "/" && scalar != "\\"
    }
    let isUsable = !["", ".", ".."].contains(name) && !name.hasPrefix("~") && name.utf8.count <= 200
    return isPlain && isUsable ? name : "~n\(index ?? 0)"
  }

  /// The place in a list of names that a segment stands for; nil where there is none.
  static func index(of segment: String, in names: [String]) -> Int? {
    if segment.hasPrefix("~n"), let index = Int(segment.dropFirst(2)), names.indices.contains(index) { return index }
    return names.firstIndex(of: segment)
  }
}

extension BrowsedStore {
  /// The segment of an address for a collection.
  func segment(_ name: String) -> String {
    SegmentName.segment(name, at: collections.firstIndex { $0.name == name })
  }

  /// The collection that a segment of an address stands for.
  ///
  /// - Throws: `unknown-entity`.
  func collection(segment: String) throws -> RecordCollection {
    guard let index = SegmentName.index(of: segment, in: collections.map(\.name)) else {
      return try collection(segment)
    }
    return collections[index]
  }
}

extension RecordCollection {
  /// The segment of an address for a column.
  func segment(_ column: String) -> String {
    SegmentName.segment(column, at: columns.firstIndex { $0.name == column })
  }

  /// The column that a segment of an address stands for; nil where there is none.
  func column(segment: String) -> RecordColumn? {
    SegmentName.index(of: segment, in: columns.map(\.name)).map { columns[$0] }
  }
}
