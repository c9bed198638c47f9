import HTTPServer
import ManagedObjectModel
import Migration
import PersistentStore
import Platform

struct ModelsPage: InspectorPage {
  let models: [InspectorModel]

  var title: String { "Models" }
  var section: PageSection { .models }

  func encode(to encoder: any Encoder) throws {
    let models = models.map { model -> JSON.Object in
      [
        "name": model.name, "current": model.model.currentVersionName, "versions": model.versions.map(\.name),
        "location": RequestTarget.to("models", model.name),
      ]
    }
    try encoder.encode(["models": models])
  }

  func content(_ frame: PageFrame) -> HTML {
    guard !models.isEmpty else {
      return """
        <h1>\(title)</h1><div class="empty"><h2>No model was given</h2>
        <p>With the app's model, stores are shown by its names and types, salvaged into its current version, and their \
        migration is planned. Start the inspector with it:</p>
        <pre>lazaret serve --model App.xcdatamodeld</pre></div>
        """
    }
    let items = models.map { model -> HTML in
      let count = model.versions.count
      let versions: HTML =
        count == 0 ? "A schema in SQL" : "\(counted(count, "version")), \(model.model.currentVersionName) is current"
      return """
        <li><div><h2><a href="\(RequestTarget.to("models", model.name))">\(model.name)</a></h2><p class="meta">\(versions)</p></div></li>
        """
    }
    return "<h1>\(title)</h1><ul class=\"stores\">\(items)</ul>"
  }
}

extension InspectorModel {
  /// The versions, oldest first; empty for a schema.
  var versions: [ModelVersion] { bundle?.versions ?? [] }
}

/// A model's versions and current entities.
///
/// Each version's changes have their own page, because models with many versions are long.
struct ModelPage: InspectorPage {
  let model: InspectorModel

  /// The text to find in entity or property names.
  private let filter: String

  private static let newest = 15

  private let changes: [ModelChange]

  init(model: InspectorModel, filter: String = "") {
    self.model = model
    self.filter = filter
    changes = ModelChange.all(of: model)
  }

  var title: String { "Model \(model.name)" }
  var section: PageSection { .models }
  var crumbs: [Crumb] { [Crumb("Models", .to("models"))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["name": model.name])
    guard let bundle = model.bundle else { return try encoder.encode(["kind": "schema"]) }
    try encoder.encode([
      "kind": "core-data", "model": bundle.payload(), "changes": changes.map(\.payload),
      "pages": bundle.versions.map { Self.target(model, $0.name) },
    ])
  }

  static func target(_ model: InspectorModel, _ version: String) -> RequestTarget {
    .to("models", model.name, "version", query: [.init("name", version)])
  }

  func content(_ frame: PageFrame) -> HTML {
    guard let bundle = model.bundle else {
      return "<h1>\(title)</h1><p>A schema in SQL has one version. Plain SQLite stores are salvaged by it.</p>"
    }
    let unreadable = bundle.unreadableVersions.map { version -> HTML in
      .note(
        .warn, "<p><strong>\(printable(version.name))</strong> cannot be read: \(sentence(version.error.detail))</p>")
    }
    return """
      <h1>\(title)</h1>\(unreadable)\
      \(ModelEntities(version: bundle.current, filter: filter, target: .to("models", model.name)).html)\
      \(versions(bundle.versions))
      """
  }

  /// The versions, newest first.
  private func versions(_ versions: [ModelVersion]) -> HTML {
    let rows = versions.indices.reversed().map { place -> HTML in
      let version = versions[place]
      let current: HTML = version.isCurrent ? " " + .tag("current", .accent) : .empty
      let change: HTML = place > 0 && changes.indices.contains(place - 1) ? changes[place - 1].summary : "the first"
      return .row(
        "<a href=\"\(Self.target(model, version.name))\">\(printable(version.name))</a>\(current)", wraps: true,
        .number(Int64(version.model.entities.count)), .cell(change, "wrap"),
        .cell("<code>\(version.checksum.prefix(8))…</code>"))
    }
    let columns: [TableColumn] = ["Version", .number("Entities"), "Against the one before", "Checksum"]
    let older = rows.dropFirst(Self.newest)
    let rest = HTML.when(
      !older.isEmpty,
      """
      <details><summary>\(counted(older.count, "older version"))</summary>\
      \(HTML.table("Older versions", columns, Array(older)))</details>
      """)
    return .panel("Versions", .table("Versions", columns, Array(rows.prefix(Self.newest))) + rest)
  }
}

struct ModelVersionPage: InspectorPage {
  let model: InspectorModel
  let version: ModelVersion
  private let filter: String
  private let change: ModelChange?

  init(model: InspectorModel, name: String, filter: String) throws {
    let place = try model.versions.firstIndex(where: { $0.name == name })
      .orRefuse(.notFound, "the model has no version of that name")
    self.model = model
    self.filter = filter
    version = model.versions[place]
    change = place > 0 ? ModelChange(model.versions[place - 1], model.versions[place]) : nil
  }

  var title: String { "Version \(printable(version.name))" }
  var section: PageSection { .models }
  var crumbs: [Crumb] { [Crumb("Models", .to("models")), Crumb(model.name, .to("models", model.name))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "model": model.name, "version": printable(version.name), "checksum": version.checksum,
      "isCurrent": version.isCurrent, "change": change?.payload,
      "entities": version.model.entities.keys.sorted().map(printable),
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let current: HTML = version.isCurrent ? " " + .tag("current", .accent) : .empty
    return """
      <h1>\(title)\(current)</h1><p class="soft">Of the model \(model.name), checksum <code>\(version.checksum)</code></p>\
      \(change?.html ?? .note(.plain, "<p>It is the first version.</p>"))\
      \(ModelEntities(version: version, filter: filter, target: ModelPage.target(model, version.name)).html)
      """
  }
}

/// The searchable entities of a model version.
struct ModelEntities {
  let version: ModelVersion

  /// The search text; all entities if empty.
  let filter: String

  let target: RequestTarget

  var html: HTML {
    let words = filter.lowercased()
    let all = version.model.entities.values.sorted { $0.name < $1.name }
    let found = all.filter { entity in
      words.isEmpty || entity.name.lowercased().contains(words)
        || entity.properties.values.contains { $0.name.lowercased().contains(words) }
    }
    let rows = found.map { row($0, words) }
    let list: HTML =
      rows.isEmpty
      ? "<p>No entity and no property has these words in its name.</p>"
      : .table("Entities", ["Entity", "Parent", "Properties", "Version hash"], rows)
    let count = words.isEmpty ? "" : "\(found.count) of "
    return .panel(
      "Entities of \(printable(version.name))",
      "\(search)<p class=\"soft\">\(count)\(counted(all.count, "entity", "entities"))</p>\(list)")
  }

  private var search: HTML {
    let fields = target.query.items.map { item -> HTML in
      "<input type=\"hidden\" name=\"\(item.name)\" value=\"\(item.value)\">"
    }
    return .search(
      RequestTarget(segments: target.segments), filter, label: "Find an entity or a property", before: fields)
  }

  private func row(_ entity: Entity, _ words: String) -> HTML {
    let names = entity.properties.values.map(\.name).sorted().map { name -> HTML in
      let isFound = !words.isEmpty && name.lowercased().contains(words)
      return isFound ? "<mark>\(printable(name))</mark>" : HTML(escaping: printable(name))
    }
    var properties = HTML.empty
    for (place, name) in names.enumerated() { properties += place == 0 ? name : ", " + name }
    let parent: HTML = entity.parentName.map { HTML(escaping: printable($0)) } ?? .empty
    let hash = version.versionHashes[entity.name].map { String("\($0)".prefix(8)) } ?? ""
    let abstract: HTML = entity.isAbstract ? .tag("abstract") : .empty
    return .row(
      "\(printable(entity.name)) \(abstract)", .cell(parent), .cell(properties, "wrap"), .cell("<code>\(hash)</code>"))
  }
}

struct ModelChange {
  /// Changes by version checksums.
  private static let known = RecentValues<String, ModelChange>(capacity: 1_000)

  private let from: String
  private let to: String
  private let inference: MappingInference

  init(_ before: ModelVersion, _ after: ModelVersion) {
    let key = "\(before.name)\u{0}\(before.checksum)\u{0}\(after.name)\u{0}\(after.checksum)"
    if let change = Self.known[key] {
      self = change
      return
    }
    from = before.name
    to = after.name
    inference = MappingInference(from: before.model, to: after.model)
    Self.known.keep(self, for: key)
  }

  static func all(of model: InspectorModel) -> [ModelChange] {
    let versions = model.versions
    return zip(versions, versions.dropFirst()).map { ModelChange($0, $1) }
  }

  /// Whether migration is possible, and the number of changed entities.
  var summary: HTML {
    let changed = mapping.entityMappings.count { $0.kind != .copy }
    let words = changed == 0 ? "no entity changes" : "\(counted(changed, "entity changes", "entities change"))"
    return "\(verdict) <span class=\"soft\">\(words)</span>"
  }

  /// The change as in `model diff --json`.
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
        "Entities that change, \(printable(from)) → \(printable(to))", ["Entity", "What becomes of it", "Properties"],
        rows)
    let rest = HTML.when(
      same > 0 && !rows.isEmpty, "<p class=\"soft\">\(counted(same, "more entity", "more entities")) as before.</p>")
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
    return .row(name, .cell("\(words)"), .cell("\(shown.joined(separator: ", "))"))
  }

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
    .list(heading, sentences.prefix(100).map { HTML(escaping: sentence(printable($0))) })
  }
}
