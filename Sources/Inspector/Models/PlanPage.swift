import HTTPServer
import Lazaret
import ManagedObjectModel
import Migration
import PersistentStore
import Platform
import SQLiteFormat

/// The plan of a store's migration to a model's current version.
///
/// Viewing it migrates no store.
struct PlanPage: StoreSubpage {
  let store: ListedStore
  let model: InspectorModel?
  let models: [InspectorModel]
  let plan: PagePart<MigrationPlan>?
  let isOfSalvaged: Bool

  init(_ store: ListedStore, _ model: InspectorModel?, _ parts: InspectorParts) {
    self.store = store
    models = parts.models
    // An app would go on with the salvaged store.
    let files = store.salvage?.store ?? store.files
    isOfSalvaged = store.salvage != nil
    let model = model ?? files.flatMap { parts.fittingModel(of: $0) } ?? parts.models.first
    self.model = model
    guard let files, let bundle = model?.bundle else {
      plan = nil
      return
    }
    plan = PagePart {
      if let problem = try Self.declarations(of: files, parts) { throw problem.refusal }
      let copy = try PrivateCopy(of: files, surroundings: parts.surroundings)
      let plan = try Migrator(bundle, logger: parts.options.logger).plan(copy.files.main, tryingSteps: false)
      copy.remove()
      return plan
    }
  }

  /// Why a drifted store isn't repaired as a copy here.
  private static func declarations(of files: StoreFileSet, _ parts: InspectorParts) throws -> Problem? {
    let found = parts.examined(files, countsRecords: true).examination.value
    guard let found, let drift = found.drift, !drift.isEmpty, let model = found.storeModel else { return nil }
    return try DeclaredExpressions.problem(
      of: files, StoreLayout(model), in: parts.surroundings.fileSystem, command: "lazaret plan")
  }

  var title: String { "Migration of \(store.name)" }

  func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "store": store.id.text, "model": model?.name, "of": isOfSalvaged ? "salvaged" : "store",
      "plan": JSON.orNull(plan?.map(Self.payload)),
    ])
  }

  /// The plan without the copy's path and free space.
  private static func payload(_ plan: MigrationPlan) -> JSON.Object {
    [
      "from": plan.from, "to": plan.to, "repair": plan.repair, "steps": plan.steps, "refusals": plan.refusals,
      "detours": plan.detours, "carriedRenames": plan.carriedRenames, "unusedMappings": plan.unusedMappings,
      "rows": plan.rows, "bytes": plan.bytes, "neededBytes": plan.neededBytes, "isInterrupted": plan.isInterrupted,
    ]
  }

  func content(_ frame: PageFrame) -> HTML {
    """
    <div class="head"><div><h1>\(title)</h1><p class="soft">What would become of its records. Nothing is migrated here.</p></div>\(choice)</div>
    \(StoreTab.bar(store, .plan))
    \(plan.map { $0.html { shown($0) } } ?? nothing)
    """
  }

  private var nothing: HTML {
    guard model != nil else {
      return """
        <div class="empty"><h2>No model was given</h2><p>Start the inspector with the app's model to see how this store gets to its \
        current version.</p><pre>lazaret serve --model App.xcdatamodeld</pre></div>
        """
    }
    return """
      <div class="empty"><h2>There is nothing to plan</h2><p>A schema in SQL has one version, and a backup is restored before it is \
      migrated.</p></div>
      """
  }

  private var choice: HTML {
    guard models.count > 1 else { return .empty }
    let options = models.map { one -> HTML in
      "<option\(one.name == model?.name ? " selected" : "")>\(one.name)</option>"
    }
    return """
      <form class="row" method="get" action="\(RequestTarget.store(store.id, "plan"))"><label><span>Model</span>\
      <select name="model">\(options)</select></label><button>Show</button></form>
      """
  }

  private func shown(_ plan: MigrationPlan) -> HTML {
    let of: HTML = isOfSalvaged ? "<p class=\"soft\">Planned for what was salvaged of it.</p>" : .empty
    guard plan.refusals.isEmpty else {
      let items = plan.refusals.map { refusal -> HTML in
        """
        <li><strong>\(sentence(printable(refusal.detail)))</strong> Core Data says: \(printable(refusal.reason)) \
        (\(refusal.coreDataCode)). Way round: \(printable(refusal.wayRound))</li>
        """
      }
      return of
        + .note(
          .bad, "<p><strong>No way leads from its version to \(printable(plan.to)).</strong></p><ul>\(items)</ul>")
    }
    guard plan.isNeeded else {
      return of
        + .note(
          .good, "<p>It is of version <strong>\(printable(plan.to))</strong> already. There is nothing to migrate.</p>")
    }
    guard !plan.steps.isEmpty else {
      return of
        + .note(.good, "<p>It is of version <strong>\(printable(plan.to))</strong> already, and is only repaired.</p>")
        + repairs(plan)
    }
    let verdict: HTML =
      !plan.failures.isEmpty
      ? .note(.bad, "<p><strong>It would fail.</strong> The store would stay as it is.</p>")
      : !plan.losses.isEmpty
        ? .note(.warn, "<p><strong>Something would be lost.</strong> It says what in the steps below.</p>")
        : !plan.isCertain
          ? .note(
            .warn,
            "<p><strong>Not everything is known before it runs.</strong> It says what in the steps below; <code>lazaret plan</code> tries the steps on a private copy.</p>"
          )
          : .note(
            .good,
            "<p><strong>Nothing would be lost.</strong> \(counted(plan.rows, "record")) in \(counted(plan.steps.count, "step")).</p>"
          )
    return of + verdict + repairs(plan) + drawing(plan) + plan.steps.reduce(into: HTML.empty) { $0 += details($1) }
  }

  /// The repairs of deviations from its own model.
  private func repairs(_ plan: MigrationPlan) -> HTML {
    guard let repair = plan.repair else { return .empty }
    let link: HTML
    if case .live = store.kind {
      link = "<p><a href=\"\(RequestTarget.store(store.id, "repair"))\">The repair by itself</a></p>"
    } else {
      link = .empty
    }
    let list = DriftList.list(repair.changes.map(\.text) + repair.leftOut.map(\.wordsWithKeys))
    let first = plan.steps.isEmpty ? "" : " first"
    return .note(
      .warn,
      "<p><strong>It is repaired\(first)</strong>, because it lacks something of its own model.</p>\(list)\(link)")
  }

  private func drawing(_ plan: MigrationPlan) -> HTML {
    var html: HTML = """
      <li><span class="soft">now</span><br><strong>\(printable(plan.from ?? "its own model"))</strong></li>
      """
    for step in plan.steps {
      let way = step.way == .inPlace ? "added and renamed" : "rebuilt"
      let mark: HTML =
        !step.failures.isEmpty
        ? .tag("fails", .bad)
        : !step.losses.isEmpty
          ? .tag("loses", .warn)
          : step.uncertain.isEmpty && step.code.isEmpty ? .tag("keeps everything", .good) : .tag("not known", .warn)
      html += """
        <li class="arrow" aria-hidden="true">→</li><li><span class="soft">\(way)</span><br>\
        <strong>\(printable(step.destination))</strong><br>\(mark)</li>
        """
    }
    return "<ol class=\"steps\">\(html)</ol>"
  }

  private func details(_ step: MigrationPlan.Step) -> HTML {
    let rows = step.entities.map { entity -> HTML in
      .row(
        "\(printable(entity.source ?? "–"))", .cell("\(printable(entity.destination ?? "–"))"),
        .cell("\(printable(entity.way.rawValue))"), .number(entity.rows.map { Int64($0) }))
    }
    let reason: HTML = step.reason.map { "<p class=\"soft\">Because \(printable($0)).</p>" } ?? .empty
    return .panel(
      printable(step.name),
      """
      \(reason)\(HTML.table("Entities of \(printable(step.name))", ["Entity", "Becomes", "How", .number("Records")], rows))\
      \(list("Would be lost", step.losses))\(list("Would fail on", step.failures))\
      \(list("Could fail, which only running it tells", step.uncertain))\(code(step))
      """)
  }

  private func code(_ step: MigrationPlan.Step) -> HTML {
    .list(
      "Not known, since only running it tells what it makes", step.code.map { HTML(escaping: sentence(printable($0))) })
  }

  private func list(_ heading: String, _ findings: [MigrationPlan.Finding]) -> HTML {
    .list(
      heading,
      findings.map { finding in
        let count: HTML = finding.rows.map { " <span class=\"soft\">(\(counted($0, "record")))</span>" } ?? .empty
        return "\(sentence(printable(finding.text)))\(count)"
      })
  }
}
