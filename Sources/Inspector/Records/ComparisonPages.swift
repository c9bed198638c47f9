import HTTPServer
import ManagedObjectModel
import Platform
import SQLiteFormat

struct ComparisonChoicePage: StoreSubpage {
  enum Result: Sendable {
    case ready(StoreComparisonPage)
    case preparing(SideProgress)

    /// Fewer than two sides exist.
    case nothing
  }

  let store: ListedStore
  let sides: [SideName]
  let chosen: (first: SideName, second: SideName)?
  let result: PagePart<Result>

  /// - Parameter query: the chosen sides; by default the most telling two.
  init(
    _ store: ListedStore, _ sides: [SideName], _ query: Query,
    _ compare: (SideName, SideName) throws -> Result
  ) throws {
    self.store = store
    let usable = sides.filter { $0 != .setAside }
    self.sides = usable
    func side(_ name: String) throws -> SideName? {
      guard let text = query[name], !text.isEmpty else { return nil }
      let side = SideName(text)
      if side == .original { try store.requireFiles() }
      if let side, usable.contains(side) { return side }
      // A backup is also found by its earlier name.
      guard case .backup? = side else { throw Refusal(.badRequest, "the store has no such version") }
      return side
    }
    let usual = Self.usual(usable)
    let first = try side("first") ?? usual?.first
    var second = try side("second") ?? usual?.second
    if first == second { second = usable.first { $0 != first } }
    if let first, let second {
      chosen = (first, second)
      result = PagePart { try compare(first, second) }
    } else {
      chosen = nil
      result = PagePart { .nothing }
    }
  }

  /// The default sides: the original and the result.
  private static func usual(_ sides: [SideName]) -> (first: SideName, second: SideName)? {
    if sides.contains(.original), sides.contains(.salvaged) { return (.original, .salvaged) }
    let backup = sides.first { if case .backup = $0 { true } else { false } }
    if let backup, let other = [SideName.live, .original].first(where: sides.contains) { return (backup, other) }
    return sides.count > 1 ? (sides[0], sides[1]) : nil
  }

  var title: String { "Compare" }

  var scripts: [String] {
    if case .preparing? = result.value { return ["records.js"] }
    return []
  }

  private var pairs: [(SideName, SideName)] {
    sides.indices.flatMap { one in sides[(one + 1)...].map { (sides[one], $0) } }
  }

  private func target(_ pair: (SideName, SideName)) -> RequestTarget {
    .store(store.id, "compare", pair.0.description, pair.1.description, "entities")
  }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "sides": sides.map(\.description), "comparisons": pairs.map { target($0) },
      "first": chosen?.first.description, "second": chosen?.second.description,
    ])
    switch result.value {
    case .ready(let page)?: try page.encodeDifferences(to: encoder)
    case .preparing(let progress)?: try progress.encode(to: encoder)
    case .nothing?: break
    case nil: try encoder.encode(["error": result.problem])
    }
  }

  func content(_ frame: PageFrame) -> HTML {
    guard let chosen else {
      return """
        <h1>Compare \(store.name)</h1>\(StoreTab.bar(store, .compare))
        <div class="empty"><p>\(Self.nothing(store))</p></div>
        """
    }
    return """
      <div class="head"><div><h1>Compare \(store.name)</h1><p class="soft">What is added, changed or lost from one version to another, \
      entity by entity.</p></div></div>
      \(StoreTab.bar(store, .compare))
      <form class="row" method="get" action="\(RequestTarget.store(store.id, "compare"))">\
      \(picker("first", "From", chosen.first))\(picker("second", "To", chosen.second))<button class="main">Compare</button></form>
      \(result.html(shown))
      """
  }

  private static func nothing(_ store: ListedStore) -> String {
    store.isMissing
      ? "There are no two versions of this store that could be compared."
      : "There is only one version of this store. Salvage it, or back it up, to have another."
  }

  private func picker(_ name: String, _ label: String, _ current: SideName) -> HTML {
    let options = sides.map { HTML.option($0.description, $0.title, isChosen: $0 == current) }
    return "<label><span>\(label)</span><select name=\"\(name)\">\(options)</select></label>"
  }

  private func shown(_ result: Result) -> HTML {
    switch result {
    case .nothing: return .empty
    case .ready(let page):
      return """
        \(page.summary)\(page.table)\(page.pairTable)
        <p class="soft">Records are told apart by their primary keys. <a href="\(page.sides.target)">This result by itself</a></p>
        """
    case .preparing(let progress):
      return """
        <div class="panel" data-reload="1000"><p role="status">Both versions are read, into private copies: \(progress.words).</p>\
        <progress aria-label="Progress"></progress></div>
        """
    }
  }
}

/// The differences of all entities between two sides.
struct StoreComparisonPage: InspectorPage {
  let sides: ComparedSides
  let entities: [(name: String, part: PagePart<EntityComparison>)]

  let relationships: [(name: String, part: PagePart<PairComparison>)]

  init(_ sides: ComparedSides) {
    self.sides = sides
    let end = ContinuousClock.now + Self.patience
    func part<Value>(_ compare: () throws -> Value) -> PagePart<Value> {
      PagePart {
        guard .now < end else { throw Refusal(.conflict, "not compared yet; load the page again to go on") }
        return try compare()
      }
    }
    entities = sides.comparison.names.map { name in (name, part { try sides.comparison.entity(name) }) }
    relationships = sides.comparison.relationshipNames.map { name in (name, part { try sides.comparison.pairs(name) }) }
  }

  /// The time to compare entities; results are cached.
  private static let patience = Duration.seconds(10)

  var title: String { sides.words }
  var crumbs: [Crumb] { sides.crumbs }

  func encode(to encoder: any Encoder) throws {
    try sides.encode(to: encoder)
    try encodeDifferences(to: encoder)
  }

  func encodeDifferences(to encoder: any Encoder) throws {
    try encoder.encode([
      "entities": entities.map { $0.part.map(Self.payload) },
      "relationships": relationships.map { $0.part.map(Self.payload) },
    ])
  }

  static func payload(_ entity: EntityComparison) -> JSON.Object {
    [
      "name": entity.name, "first": JSON.orNull(entity.first), "second": JSON.orNull(entity.second),
      "missing": entity.counts.map { $0[.missing] ?? 0 }, "added": entity.counts.map { $0[.added] ?? 0 },
      "changed": entity.counts.map { $0[.changed] ?? 0 }, "firstOnly": entity.firstOnly,
      "secondOnly": entity.secondOnly,
    ]
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">Records are told apart by their primary keys.</p></div>
    <a class="button no-print" href="\(sides.turned)">The other way round</a></div>
    \(summary)\(table)\(pairTable)
    """
  }

  /// The counts by difference, over all compared entities.
  var summary: HTML {
    // A subentity's records already count with its parent.
    let own = entities.filter { !inherits($0.name) }
    let items = chips(arePairs: false) { difference in
      own.reduce(Int64(0)) { $0 + (Self.count($1.part.value, difference) ?? 0) }
    }
    let open = own.count { Self.count($0.part.value, .missing) == nil }
    let rest = HTML.when(
      open != 0, "<li>\(HTML.tag("\(counted(open, "entity", "entities")) not compared", .warn))</li>")
    return "<ul class=\"chips\" aria-label=\"Differences\">\(items)\(rest)\(pairSummary)</ul>"
  }

  private func chips(arePairs: Bool, _ count: (RecordDifference) -> Int64) -> [HTML] {
    RecordDifference.allCases.map { difference in
      let (rest, aside) = sides.apart(count(difference), difference, arePairs: arePairs)
      let number = arePairs ? counted(rest, "pair") : grouped(rest)
      let word = arePairs && difference == .changed ? "at another place" : difference.word
      return "<li>\(HTML.tag("\(number) \(word)", rest == 0 ? .plain : difference.tone))</li>\(aside)"
    }
  }

  /// The count of a difference; nil if not compared.
  private static func count(_ entity: EntityComparison?, _ difference: RecordDifference) -> Int64? {
    guard let entity else { return nil }
    if let counts = entity.counts { return counts[difference] ?? 0 }
    switch (entity.first, entity.second) {
    case (let count?, nil): return difference == .missing ? count : 0
    case (nil, let count?): return difference == .added ? count : 0
    case (nil, nil): return 0
    case (_?, _?): return nil
    }
  }

  private func inherits(_ name: String) -> Bool {
    [sides.first, sides.second].contains { place in
      place.opened.store.collections.first { $0.name == name }?.entityNumbers != nil
    }
  }

  var table: HTML {
    let rows = entities.map { name, part in
      row(name, part) { entity in
        "<a href=\"\(sides.records(name))\">\(name)</a>\(Self.onlyIn(entity, sides))"
      } cells: { entity in
        cells(entity.first, entity.second, entity.counts, isAlone: entity.first == nil || entity.second == nil) {
          sides.records(entity.name, $0)
        }
      }
    }
    return .grid("Entities", columns("Entity", arePairs: false), rows)
  }

  private func columns(_ name: String, arePairs: Bool) -> [TableColumn] {
    let differences = RecordDifference.allCases.map { difference -> HTML in
      """
      <th scope="col" class="number">\(sides.heading(difference, arePairs: arePairs))\
      <small>\(difference.words(sides, arePairs: arePairs))</small></th>
      """
    }
    return [TableColumn(name), .number(sides.first.side.title), .number(sides.second.side.title)]
      + differences.map { TableColumn(head: $0) }
  }

  static func payload(_ pairs: PairComparison) -> JSON.Object {
    [
      "name": pairs.name, "sides": pairs.sides, "first": JSON.orNull(pairs.first), "second": JSON.orNull(pairs.second),
      "inFirst": pairs.isInFirst, "inSecond": pairs.isInSecond, "missing": JSON.orNull(pairs.count(.missing)),
      "added": JSON.orNull(pairs.count(.added)), "changed": JSON.orNull(pairs.count(.changed)),
    ]
  }

  var pairSummary: HTML {
    guard !relationships.isEmpty else { return .empty }
    let items = chips(arePairs: true) { difference in
      relationships.reduce(Int64(0)) { $0 + ($1.part.value?.count(difference) ?? 0) }
    }
    let open = relationships.count { line in RecordDifference.allCases.contains { line.part.value?.count($0) == nil } }
    let rest = HTML.when(
      open != 0, "<li>\(HTML.tag("\(counted(open, "relationship", "relationships")) not compared", .warn))</li>")
    return "\(items)\(rest)"
  }

  var pairTable: HTML {
    guard !relationships.isEmpty else { return .empty }
    let rows = relationships.map { name, part in
      row(name, part) { pairs in
        "<a href=\"\(sides.pairs(name))\">\(pairs.words)</a>"
      } cells: { pairs in
        cells(pairs.first, pairs.second, pairs.counts, isAlone: !(pairs.isInFirst && pairs.isInSecond)) {
          sides.pairs(pairs.name, $0)
        }
      }
    }
    let heading = "Pairs of many-to-many relationships"
    return "<h2>\(heading)</h2>" + .table(heading, columns("Relationship", arePairs: true), rows)
  }

  static func onlyIn(_ entity: EntityComparison, _ sides: ComparedSides) -> HTML {
    func line(_ names: [String], _ place: RecordPlace) -> HTML {
      guard !names.isEmpty else { return .empty }
      return "<p class=\"soft\">Only \(place.side.phrase) has \(names.joined(separator: ", "))</p>"
    }
    return "\(line(entity.firstOnly, sides.first))\(line(entity.secondOnly, sides.second))"
  }

  private func row<Value>(
    _ name: String, _ part: PagePart<Value>, heading: (Value) -> HTML, cells: (Value) -> HTML
  ) -> HTML {
    let cells = part.html(cells)
    return part.value.map { .row(heading($0), cells) } ?? .row("\(name)", "<td colspan=\"5\">\(cells)</td>")
  }

  /// The counts of both sides and of each difference.
  ///
  /// - Parameter isAlone: whether only one side has the entity or relationship.
  private func cells(
    _ first: Int64?, _ second: Int64?, _ counts: [RecordDifference: Int64]?, isAlone: Bool,
    _ target: ([Query.Item]) -> RequestTarget
  ) -> HTML {
    let own = [first, second].map { HTML.cell("\($0.map { grouped($0) } ?? "–")", "number") }
    guard let counts else {
      let words = isAlone ? "only one of them has it" : "too many to compare in time"
      return "\(own)<td colspan=\"3\" class=\"soft\">\(words)</td>"
    }
    let differences = RecordDifference.allCases.map { difference in
      HTML.number(counts[difference] ?? 0, at: target([.init("kind", difference.rawValue)]))
    }
    return "\(own)\(differences)"
  }
}

struct ComparedSides: Sendable, Encodable {
  let first: RecordPlace
  let second: RecordPlace
  let comparison: SideComparison

  var store: ListedStore { first.store }

  var target: RequestTarget { target(first, second, "entities") }

  var turned: RequestTarget { target(second, first, "entities") }

  private func target(_ first: RecordPlace, _ second: RecordPlace, _ kind: String) -> RequestTarget {
    .store(store.id, "compare", first.side.description, second.side.description, kind)
  }

  func records(_ name: String, _ query: [Query.Item] = []) -> RequestTarget {
    target.appending(segment(name), "records", query: query)
  }

  func pairs(_ name: String, _ query: [Query.Item] = []) -> RequestTarget {
    let segment = SegmentName.segment(name, in: comparison.relationshipNames)
    return target(first, second, "relationships").appending(segment, "pairs", query: query)
  }

  func relationship(segment: String) throws -> String {
    try SegmentName.name(segment, in: comparison.relationshipNames)
      .orRefuse(.notFound, "neither of the stores has such a relationship")
  }

  func segment(_ name: String) -> String { SegmentName.segment(name, in: comparison.names) }

  func name(segment: String) throws -> String {
    try SegmentName.name(segment, in: comparison.names).orRefuse(.notFound, "neither of the stores has such an entity")
  }

  var crumbs: [Crumb] { first.crumbs + [Crumb("Compare", .store(store.id, "compare"))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["store": store.id.text, "first": first.side.description, "second": second.side.description])
  }

  /// Splits off the ones set aside, which the salvaged store lacks but which aren't lost.
  func apart(_ count: Int64, _ difference: RecordDifference, arePairs: Bool) -> (rest: Int64, aside: HTML) {
    guard difference == .missing, hasApart(arePairs: arePairs), let facts = second.salvage else {
      return (count, .empty)
    }
    let aside = facts.setAside(count, arePairs: arePairs)
    guard aside > 0 else { return (count, .empty) }
    let words = arePairs ? counted(aside, "pair") : grouped(aside)
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

  /// The differences as links.
  func tabs(
    _ counts: [RecordDifference: Int64]?, _ current: RecordDifference, arePairs: Bool,
    _ target: (RecordDifference) -> RequestTarget
  ) -> HTML {
    .tabs(
      "Differences",
      RecordDifference.allCases.map { other in
        let count: HTML = counts.map { "\(grouped($0[other] ?? 0))" } ?? .empty
        return ("\(count) \(other.words(self, arePairs: arePairs))", target(other), other == current)
      })
  }

  var words: String { "\(first.side.phrase.capitalizedFirst) and \(second.side.phrase)" }
}

extension RecordDifference {
  /// The word from an earlier to a later version.
  private var look: (word: String, tone: HTML.Tone) {
    switch self {
    case .missing: ("lost", .bad)
    case .added: ("added", .good)
    case .changed: ("changed", .warn)
    }
  }
  var word: String { look.word }
  var tone: HTML.Tone { look.tone }

  func words(_ sides: ComparedSides, arePairs: Bool) -> String {
    switch self {
    case .missing: "only in \(sides.first.side.phrase)"
    case .added: "only in \(sides.second.side.phrase)"
    case .changed: arePairs ? "at another place" : "with other values"
    }
  }

  /// The wanted difference, else the first that there is.
  init(_ query: Query, _ counts: [RecordDifference: Int64]?) throws(Refusal) {
    self =
      try query["kind"].map { word throws(Refusal) in
        try Self(rawValue: word).orRefuse(.badRequest, "the kind of difference is not known")
      } ?? Self.allCases.first { (counts?[$0] ?? 0) > 0 } ?? .missing
  }
}
