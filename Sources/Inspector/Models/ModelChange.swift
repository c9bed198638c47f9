import HTTPServer
import StoreCoordination

/// What one version of a model changes against the one before.
struct ModelChange {
  private let change: MappingJSON

  init(_ change: MappingJSON) { self.change = change }

  var html: HTML {
    let changed = change.entities.filter { $0.kind != "copy" }
    let rows = changed.map { row($0) }
    let same = change.entities.count - changed.count
    let table: HTML =
      rows.isEmpty
      ? "<p>No entity is stored in another way.</p>"
      : .table(
        "Entities that change, \(printable(change.from)) → \(printable(change.to))",
        head: "<th scope=\"col\">Entity</th><th scope=\"col\">What becomes of it</th><th scope=\"col\">Properties</th>",
        rows)
    let rest: HTML =
      same > 0 && !rows.isEmpty
      ? "<p class=\"soft\">\(Words.counted(same, "more entity", "more entities")) as before.</p>" : .empty
    return .panel(
      "\(printable(change.from)) → \(printable(change.to))",
      """
      <p>\(verdict)</p>\(table)\(rest)\
      \(list("Would be lost", change.losses.map(\.text)))\(list("Depends on the records", change.conditions.map(\.text)))\
      \(list("Stands in the way", change.refusals.map { "\($0.detail). Way round: \($0.wayRound)" }))
      """)
  }

  private var verdict: HTML {
    if !change.refusals.isEmpty { return .tag("needs a custom mapping", .bad) }
    if !change.losses.isEmpty { return .tag("can be migrated, and data is lost", .warn) }
    return change.conditions.isEmpty
      ? .tag("can be migrated", .good) : .tag("can be migrated, if the records allow", .warn)
  }

  private func row(_ entity: MappingJSON.Entity) -> HTML {
    let name: HTML
    switch (entity.source, entity.destination) {
    case (nil, let new?): name = "<ins>\(printable(new))</ins>"
    case (let old?, nil): name = "<del>\(printable(old))</del>"
    case (let old?, let new?) where old != new: name = "<del>\(printable(old))</del> <ins>\(printable(new))</ins>"
    default: name = HTML(escaping: printable(entity.destination ?? ""))
    }
    let words =
      switch entity.kind {
      case "add": "new"
      case "remove": "removed"
      case "transform": "its records are rewritten"
      default: entity.kind
      }
    let properties = entity.properties.filter { $0.value != "copy" || $0.source != $0.destination }.map {
      property -> String in
      let name = printable(property.destination)
      switch property.value {
      case "copy": return "\(printable(property.source ?? "")) becomes \(name)"
      case "convert": return "\(name): \(property.fromType ?? "?") to \(property.toType ?? "?")"
      default: return "\(name) (\(property.value))"
      }
    }
    let shown = entity.kind == "add" || entity.kind == "remove" ? [] : properties
    return "<tr><th scope=\"row\">\(name)</th><td>\(words)</td><td>\(shown.joined(separator: ", "))</td></tr>"
  }

  private func list(_ heading: String, _ sentences: [String]) -> HTML {
    guard !sentences.isEmpty else { return .empty }
    let items = sentences.prefix(100).map { words -> HTML in "<li>\(sentence(printable(words)))</li>" }
    return "<h3>\(heading)</h3><ul>\(items)</ul>"
  }
}
