import HTTPServer
import Lazaret
import ManagedObjectModel
import PersistentStore
import Platform
import SupportBundle
import SystemPackage

/// Exports a store as a bundle, after the user's consent.
struct ExportActions: Sendable {
  let parts: InspectorParts
  let prepared: PreparedExports
  let bundles: BundleCatalogue

  static let fields: [DocumentedRoute.Field] = [
    .init("level", "facts, damaged-pages, scrubbed or full; scrubbed if empty."),
    .init("model", "The name of the model that the app has now; what the store says of itself if empty."),
    .init("recipients", "The public keys (age1…) of those who alone can open it, with spaces between."),
    .init(
      "keep",
      "The attributes, Entity.attribute, whose values stay in a scrubbed store, with spaces between; several times. At another level nothing is kept."
    ),
    .init("drop", "The attributes whose values are overwritten in a scrubbed store, in the same way."),
  ]

  func page(_ store: ListedStore, _ query: Query) throws -> ExportPage {
    let files = try store.files(
      orRefuse: Refusal(.conflict, "a backup is not exported; restore it aside, and export that"))
    var form = ActionForm(
      "Export for support", of: store, "export",
      does: [
        "Looks at every page of the store, and shows what a bundle for support would hold, file by file, and how large it is at each level. Not a byte of the store changes.",
        "Nothing is written before you agree, and nothing is sent: the bundle is a file on this machine, in \(printable(bundles.path.string)).",
      ], button: "Preview")
    let chosen = prepared.choices[store.id] ?? .init()
    let levels: [BundleLevel] = [.scrubbed, .facts, .damagedPages, .full]
    let models = parts.modelOptions(for: files, sums: store.sums)
    form.choices = [
      .pick(
        name: "level", label: "How much of it",
        options: Self.first(chosen.level.rawValue, levels.map { ($0.rawValue, "\($0.rawValue): \($0.words)") })),
      .pick(name: "model", label: "Model", options: chosen.model.map { Self.first($0, models) } ?? models),
      .text(
        name: "recipients", label: "Encrypt to these keys",
        about: "age1…, several with spaces between. Without any, everyone who gets the file can read it.",
        value: chosen.recipients),
    ]
    let job = query["job"].flatMap { parts.work.job($0) } ?? parts.work.job(for: store.id)
    return ExportPage(
      form: form, chosen: chosen, tree: parts.attributes(of: files).map { ExportTree($0) },
      job: job.flatMap { $0.store == store.id && $0.kind == .export ? $0 : nil }, ready: prepared.latest(of: store.id))
  }

  /// Moves the selected option to the front.
  private static func first(
    _ value: String, _ options: [(value: String, label: String)]
  ) -> [(value: String, label: String)] {
    options.filter { $0.value == value } + options.filter { $0.value != value }
  }

  func begin(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let files = try store.files(orRefuse: Refusal(.conflict, "a backup is not exported"))
    let level = try level(form["level"])
    var recipients: [AgeRecipient] = []
    for text in Self.words(form.fields.all("recipients")) {
      do {
        recipients.append(try AgeRecipient(text))
      } catch {
        throw Refusal(.badRequest, "a key to encrypt to is none; it begins with age1")
      }
    }
    let tree = parts.attributes(of: files).map { ExportTree($0) }
    func paths(_ field: String) -> Set<String> {
      let texts = form.fields.all(field)
      return tree?.paths(in: texts) ?? Set(Self.words(texts))
    }
    var (keeping, dropping) = (paths("keep"), paths("drop"))
    try Refusal.unless(keeping.isDisjoint(with: dropping), .badRequest, "a value cannot stay and be overwritten")
    let model = try parts.model(form["model"])
    prepared.choices.keep(
      .init(
        level: level, model: form["model"], recipients: form["recipients"] ?? "", keeping: keeping, dropping: dropping),
      for: store.id)
    // Only scrubbed exports choose values; the ticks are kept.
    if level != .scrubbed { (keeping, dropping) = ([], []) }
    let options = ExportOptions(level: level, model: model, keeping: keeping, dropping: dropping)
    let (parts, prepared, id, name) = (parts, prepared, store.id, store.name)
    let job = try parts.work.start(.export, "Export of \(name)", store: id, target: .store(id, "export")) {
      [recipients] observer in
      let ready = try parts.exports.make(files.main, options, progress: observer.export(writes: false))
      let entry = prepared.keep(ready, of: id, named: name, for: recipients)
      return JobOutcome("It is ready. Nothing is written before you agree.", entry.target)
    }
    return .running(job, on: .store(id, "export"))
  }

  func write(_ id: String) throws -> ActionAnswer {
    let entry = try prepared.entry(id)
    let (parts, prepared, bundles) = (parts, prepared, bundles)
    let job = try parts.work.start(.export, "Bundle of \(entry.name)", store: entry.store, target: entry.target) {
      observer in
      // Fetches files that have left this machine.
      _ = try parts.catalogue.store(entry.store)
      let summary = try parts.exports.write(
        entry.prepared, to: entry.recipients, at: try bundles.makeFolder(), progress: observer.export(writes: true))
      prepared.forget(id)
      let file = summary.bundle.path.path?.lastComponent?.string ?? ""
      return JobOutcome(
        "The bundle is written: \(readableSize(summary.bundle.bytes)), SHA-256 \(summary.bundle.sha256).",
        .to("bundles", file))
    }
    return .running(job, on: .store(entry.store, "export"))
  }

  private func level(_ text: String?) throws(Refusal) -> BundleLevel {
    guard let text, !text.isEmpty else { return .scrubbed }
    guard let level = BundleLevel(rawValue: text) else { throw Refusal(.badRequest, "there is no such level") }
    return level
  }

  /// The words in all fields of a name.
  static func words(_ texts: [String]) -> [String] {
    texts.flatMap { $0.split { $0.isWhitespace || $0 == "," }.map(String.init) }
  }
}

/// The export page: choices, preview, and consent.
struct ExportPage: InspectorPage {
  let form: ActionForm

  let chosen: PreparedExports.Choices

  /// The selectable attributes; nil without a model.
  let tree: ExportTree?

  let job: RunningWork.Job?

  let ready: PreparedExports.Entry?

  private var store: ListedStore { form.store }

  var title: String { form.title }
  var crumbs: [Crumb] { form.crumbs }
  var scripts: [String] { tree == nil ? [] : ["export.js"] }

  func encode(to encoder: any Encoder) throws {
    try form.encode(to: encoder)
    try encoder.encode([
      "tree": tree?.branches, "job": job.map { RequestTarget.to("work", $0.id) }, "ready": ready?.target,
    ])
  }

  func content(_ frame: PageFrame) -> HTML {
    let events: HTML = job?.isRunning == true ? " data-events=\"\(frame.events)\"" : ""
    return """
      <div\(events)>
      <h1>\(title)</h1><p class="soft">\(store.name) · \(readableSize(store.bytes))</p>
      \(progress(frame))\(agreement(frame))
      \(choice(frame))
      </div>
      """
  }

  private func progress(_ frame: PageFrame) -> HTML {
    guard let job else { return .empty }
    // A prepared export speaks for itself.
    if job.state == .done, ready?.target == job.target { return .empty }
    guard job.state == .done else { return job.html(frame, isLinked: false) }
    return """
      \(job.html(frame, isLinked: false))<p class="row"><a class="button main" href="\(job.target)">The bundle</a></p>
      """
  }

  /// The bundle's preview; hidden while another is prepared.
  private func agreement(_ frame: PageFrame) -> HTML {
    guard let ready, job?.isRunning != true else { return .empty }
    return "<h2 id=\"ready\">What the bundle would hold</h2>\(PreparedExportPage(entry: ready).preview(frame))"
  }

  private func choice(_ frame: PageFrame) -> HTML {
    guard job?.isRunning != true else { return .empty }
    let again: HTML = ready == nil ? " class=\"main\"" : ""
    let ask = frame.confirmation(
      form.target,
      """
      \(form.choices.map { field($0) })\(tree?.html(keeping: chosen.keeping, dropping: chosen.dropping) ?? typed)\
      <p class="row"><button\(again)>\(ready == nil ? "Preview" : "Preview again")</button>\
      <a class="button" href="\(RequestTarget.store(store.id))">Cancel</a></p>
      """)
    let title = ready == nil ? "What goes into the bundle" : "Choose something else"
    return .panel(title, .sentences(form.does) + ask)
  }

  private func field(_ choice: ActionForm.Choice) -> HTML {
    if case .pick("level", let label, let options) = choice {
      // Each level needs an explanation, too long for a menu.
      let items = options.enumerated().map { place, option -> HTML in
        let isChosen: HTML = place == 0 ? " checked" : ""
        return """
          <label><input type="radio" name="level" value="\(option.value)"\(isChosen)><span class="said">\(option.label)</span></label>
          """
      }
      return "<fieldset class=\"choices\"><legend>\(label)</legend>\(items)</fieldset>"
    }
    return ActionForm.field(choice)
  }

  /// The attributes as text, without a model.
  private var typed: HTML {
    let keep = ActionForm.Choice.text(
      name: "keep", label: "Columns whose values stay as they are",
      about: "table.column, several with spaces between; for scrubbed.",
      value: chosen.keeping.sorted().joined(separator: " "))
    let drop = ActionForm.Choice.text(
      name: "drop", label: "Columns whose values are overwritten", about: "",
      value: chosen.dropping.sorted().joined(separator: " "))
    return ActionForm.field(keep) + ActionForm.field(drop)
  }
}

/// A store's entities and attributes, to select values to keep or overwrite.
struct ExportTree: Sendable, Encodable {
  struct Branch: Sendable, Encodable {
    var entity: String
    var attributes: [Leaf]
  }

  struct Leaf: Sendable, Encodable {
    var name: String

    var type: String

    /// The form value: `Entity.attribute`.
    var path: String
  }

  let branches: [Branch]

  /// The most listed attributes; text fields serve larger models.
  private static let maximumLeaves = 4_000

  /// Omits parts that the store doesn't hold.
  init(_ model: ManagedObjectModel) {
    var count = 0
    branches = model.entities.values.sorted { $0.name < $1.name }.compactMap { entity in
      let leaves = entity.properties.values.sorted { $0.name < $1.name }.compactMap { property -> Leaf? in
        guard let attribute = property.attribute, !attribute.traits.isTransient else { return nil }
        return Leaf(name: property.name, type: attribute.type.sourceName, path: "\(entity.name).\(property.name)")
      }
      count += leaves.count
      return leaves.isEmpty || count > Self.maximumLeaves ? nil : Branch(entity: entity.name, attributes: leaves)
    }
  }

  /// Parses form fields: an attribute's exact name, or text with several.
  func paths(in fields: [String]) -> Set<String> {
    let known = Set(branches.flatMap { $0.attributes.map(\.path) })
    return Set(fields.flatMap { known.contains($0) ? [$0] : ExportActions.words([$0]) })
  }

  /// The tree as form fields.
  ///
  /// - Parameters:
  ///   - keeping: attributes ticked to stay.
  ///   - dropping: attributes ticked to be overwritten.
  func html(keeping: Set<String>, dropping: Set<String>) -> HTML {
    guard !branches.isEmpty else { return .empty }
    let items = branches.map { branch -> HTML in
      let chosen = branch.attributes.count { keeping.contains($0.path) || dropping.contains($0.path) }
      let note = chosen == 0 ? "" : ", \(chosen) chosen"
      let rows = branch.attributes.map { leaf -> HTML in
        """
        <tr data-name="\(leaf.path.lowercased())"><th scope="row">\(printable(leaf.name)) <small class="soft">\(leaf.type)</small></th>\
        <td>\(Self.box("keep", leaf, keeping, "stays as it is"))</td>\
        <td>\(Self.box("drop", leaf, dropping, "is overwritten"))</td></tr>
        """
      }
      let open: HTML = chosen > 0 ? " open" : ""
      return """
        <details data-branch\(open)><summary>\(printable(branch.entity)) <span class="soft">\
        \(counted(branch.attributes.count, "attribute"))\(note)</span></summary><table><thead><tr>\
        <th scope="col">Attribute</th><th scope="col">Stays</th><th scope="col">Overwritten</th></tr></thead>\
        <tbody>\(rows)</tbody></table></details>
        """
    }
    return """
      <fieldset class="tree" data-tree><legend>Values in a scrubbed store</legend>\
      <p class="soft">Without a tick, text is replaced, dates are shifted, and numbers that could be a person's are changed. \
      <b>Stays</b> leaves the values of an attribute as they are, <b>Overwritten</b> leaves nothing of them.</p>\
      <p data-tree-search hidden><label><span>Find an entity or an attribute</span><input type="search" autocomplete="off"></label></p>\
      \(items)</fieldset>
      """
  }

  private static func box(_ name: HTML, _ leaf: Leaf, _ chosen: Set<String>, _ words: String) -> HTML {
    let ticked: HTML = chosen.contains(leaf.path) ? " checked" : ""
    return """
      <input type="checkbox" name="\(name)" value="\(leaf.path)" aria-label="\(printable(leaf.path)) \(words)"\(ticked)>
      """
  }
}

extension InspectorParts {
  /// The model that names attributes: the store's own, else the best fit's current version.
  func attributes(of files: StoreFileSet) -> ManagedObjectModel? {
    let examined = examined(files)
    return examined.examination.value?.storeModel ?? examined.model?.bundle?.current.model
  }
}
