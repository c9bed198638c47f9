import HTTPServer
import StoreCoordination

/// The versions of a model, and what each changes.
struct ModelPage: InspectorPage {
  let model: InspectorModel

  /// What each version after the first changes, with the versions' names.
  private let changes: [ModelChange]

  init(model: InspectorModel) {
    self.model = model
    let versions = model.versions
    changes = zip(versions, versions.dropFirst()).map { before, after in
      ModelChange(before.name, after.name, MappingInference(from: before.model, to: after.model))
    }
  }

  var title: String { "Model \(model.name)" }
  var section: PageSection { .models }
  var crumbs: [Crumb] { [Crumb("Models", .to("models"))] }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode(["name": model.name])
    guard case .coreData(let bundle) = model.model else { return try encoder.encode(["kind": "schema"]) }
    try encoder.encode([
      "kind": "core-data", "model": bundle.payload(), "changes": changes.map(\.payload),
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    guard case .coreData(let bundle) = model.model else {
      return "<h1>\(title)</h1><p>A schema in SQL has one version. Plain SQLite stores are salvaged by it.</p>"
    }
    let unreadable = bundle.unreadableVersions.map { version -> HTML in
      .note(
        .warn, "<p><strong>\(printable(version.name))</strong> cannot be read: \(sentence(version.error.detail))</p>")
    }
    return """
      <h1>\(title)</h1>\(unreadable)\
      \(HTML.panel("Versions", Self.steps(bundle.versions)))\
      \(changes.map(\.html))\
      \(entities(bundle.current))
      """
  }

  private static func steps(_ versions: [ModelVersion]) -> HTML {
    var html = HTML.empty
    for (place, version) in versions.enumerated() {
      if place > 0 { html += "<li class=\"arrow\" aria-hidden=\"true\">→</li>" }
      let current: HTML = version.isCurrent ? .tag("current", .accent) : .empty
      html += """
        <li><strong>\(printable(version.name))</strong> \(current)<br>\
        <span class="soft">\(Words.counted(version.model.entities.count, "entity", "entities"))</span><br>\
        <code>\(String(version.checksum.prefix(12)))…</code></li>
        """
    }
    return "<ol class=\"steps\">\(html)</ol>"
  }

  private func entities(_ version: ModelVersion) -> HTML {
    let rows = version.model.entities.values.sorted { $0.name < $1.name }.map { entity -> HTML in
      let properties = entity.properties.values.map(\.name).sorted().map(printable).joined(separator: ", ")
      let parent: HTML = entity.parentName.map { HTML(escaping: printable($0)) } ?? .empty
      let hash = version.versionHashes[entity.name].map { String("\($0)".prefix(12)) } ?? ""
      let abstract: HTML = entity.isAbstract ? .tag("abstract") : .empty
      return """
        <tr><th scope="row">\(printable(entity.name)) \(abstract)</th><td>\(parent)</td><td>\(properties)</td>\
        <td><code>\(hash)</code></td></tr>
        """
    }
    return .panel(
      "Entities of \(printable(version.name))",
      .table(
        "Entities",
        head: """
          <th scope="col">Entity</th><th scope="col">Parent</th><th scope="col">Properties</th><th scope="col">Version hash</th>
          """, rows))
  }
}
