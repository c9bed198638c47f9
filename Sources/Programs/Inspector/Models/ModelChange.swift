import HTTPServer
import StoreCoordination

/// What one version of a model changes against the one before.
struct ModelChange {
  private let from: String
  private let to: String
  private let inference: MappingInference

  init(_ from: String, _ to: String, _ inference: MappingInference) {
    self.from = from
    self.to = to
    self.inference = inference
  }

  /// The change as `model diff --json` prints it.
  var payload: JSON.Object { inference.payload(from: from, to: to) }

  private var mapping: MappingModel { inference.mapping }

  var html: HTML {
    let changed = mapping.entityMappings.filter { $0.kind != .copy }
    let rows = changed.map { row($0) }
    let same = mapping.entityMappings.count - changed.count
    let table: HTML =
      rows.isEmpty
      ? "<p>No entity is stored in another way.</p>"
      : .table(
        "Entities that change, \(printable(from)) → \(printable(to))",
        head: "<th scope=\"col\">Entity</th><th scope=\"col\">What becomes of it</th><th scope=\"col\">Properties</th>",
        rows)
    let rest: HTML =
      same > 0 && !rows.isEmpty
      ? "<p class=\"soft\">\(Words.counted(same, "more entity", "more entities")) as before.</p>" : .empty
    return .panel(
      "\(printable(from)) → \(printable(to))",
      """
      <p>\(verdict)</p>\(table)\(rest)\
      \(list("Would be lost", mapping.losses.map(\.text)))\(list("Depends on the records", mapping.conditions.map(\.text)))\
      \(list("Stands in the way", inference.refusals.map { "\($0.detail). Way round: \($0.wayRound)" }))
      """)
  }

  private var verdict: HTML {
    if !inference.refusals.isEmpty { return .tag("needs a custom mapping", .bad) }
    if !mapping.losses.isEmpty { return .tag("can be migrated, and data is lost", .warn) }
    return mapping.conditions.isEmpty
      ? .tag("can be migrated", .good) : .tag("can be migrated, if the records allow", .warn)
  }

  private func row(_ entity: EntityMapping) -> HTML {
    let name: HTML
    switch (entity.sourceEntityName, entity.destinationEntityName) {
    case (nil, let new?): name = "<ins>\(printable(new))</ins>"
    case (let old?, nil): name = "<del>\(printable(old))</del>"
    case (let old?, let new?) where old != new: name = "<del>\(printable(old))</del> <ins>\(printable(new))</ins>"
    case (_, let new): name = HTML(escaping: printable(new ?? ""))
    }
    let words =
      switch entity.kind {
      case .add: "new"
      case .remove: "removed"
      case .transform: "its records are rewritten"
      case .undefined, .custom, .copy: "\(entity.kind)"
      }
    let shown = entity.kind == .add || entity.kind == .remove ? [] : entity.propertyMappings.compactMap(Self.words)
    return "<tr><th scope=\"row\">\(name)</th><td>\(words)</td><td>\(shown.joined(separator: ", "))</td></tr>"
  }

  /// What becomes of a property; nil where it stays as it is.
  private static func words(_ property: PropertyMapping) -> String? {
    let name = printable(property.destination.description)
    switch property.value {
    case .copy(let source):
      return source == property.destination ? nil : "\(printable(source.description)) becomes \(name)"
    case .convert(_, let from, let to): return "\(name): \(from.sourceName) to \(to.sourceName)"
    case .externalize, .defaultValue, .null, .recompute, .relationship, .inverse, .destinations, .expression:
      return "\(name) (\(property.value.word))"
    }
  }

  private func list(_ heading: String, _ sentences: [String]) -> HTML {
    guard !sentences.isEmpty else { return .empty }
    let items = sentences.prefix(100).map { words -> HTML in "<li>\(sentence(printable(words)))</li>" }
    return "<h3>\(heading)</h3><ul>\(items)</ul>"
  }
}
