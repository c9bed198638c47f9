import Compatibility
import HTTPServer
import ModelReview
import StoreCoordination

/// What one version of a model changes against the one before.
struct ModelChange {
  /// The changes of models that were worked out already, by the checksums of the versions: a model does not change while
  /// the inspector runs.
  private static let known = Mutex<[String: ModelChange]>([:])

  private static let maximumKnown = 1_000

  private let from: String
  private let to: String
  private let inference: MappingInference

  init(_ from: String, _ to: String, _ inference: MappingInference) {
    self.from = from
    self.to = to
    self.inference = inference
  }

  /// The change from one version to another.
  init(_ before: ModelVersion, _ after: ModelVersion) {
    let key = "\(before.name)\u{0}\(before.checksum)\u{0}\(after.name)\u{0}\(after.checksum)"
    if let change = Self.known.withLock({ $0[key] }) {
      self = change
      return
    }
    self.init(before.name, after.name, MappingInference(from: before.model, to: after.model))
    let made = self
    Self.known.withLock { known in
      if known.count >= Self.maximumKnown { known.removeAll() }
      known[key] = made
    }
  }

  /// What each version of a model changes after the first.
  static func all(of model: InspectorModel) -> [ModelChange] {
    let versions = model.versions
    return zip(versions, versions.dropFirst()).map { ModelChange($0, $1) }
  }

  /// What changes, on one line: whether it can be migrated, and how many entities change.
  var summary: HTML {
    let changed = mapping.entityMappings.count { $0.kind != .copy }
    let words = changed == 0 ? "no entity changes" : "\(Words.counted(changed, "entity changes", "entities change"))"
    return "\(verdict) <span class=\"soft\">\(words)</span>"
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
