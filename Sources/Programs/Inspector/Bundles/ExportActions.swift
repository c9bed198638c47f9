import BundleWriting
import ExportCoordination
import HTTPServer
import StoreCoordination

/// Making a bundle of a store: what is asked, getting it ready, and writing it when the user has agreed.
struct ExportActions: Sendable {
  private let parts: InspectorParts
  private let prepared: PreparedExports
  private let bundles: BundleCatalogue

  init(_ parts: InspectorParts, _ prepared: PreparedExports, _ bundles: BundleCatalogue) {
    self.parts = parts
    self.prepared = prepared
    self.bundles = bundles
  }

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

  /// The page on which an export is chosen, shown, and agreed to.
  func page(_ store: ListedStore, _ query: Query) throws -> ExportPage {
    let files = try store.files(
      orRefuse: Refusal(.conflict, "a backup is not exported; restore it aside, and export that"))
    var form = ActionForm(
      "Export for support", of: store, "export",
      does: [
        "Looks at every page of the store, and shows what a bundle for support would hold, file by file, and how large it is at each level. Not a byte of the store changes.",
        "Nothing is written before you agree, and nothing is sent: the bundle is a file on this machine, in \(printable(bundles.path.string)).",
      ], button: "Preview")
    let chosen = prepared.choices(of: store.id) ?? .init()
    let levels: [BundleLevel] = [.scrubbed, .facts, .damagedPages, .full]
    let models = parts.modelOptions(for: files, sums: store.quarantined?.receipt?.files.map(\.sha256) ?? [])
    form.choices = [
      .pick(
        name: "level", label: "How much of it",
        options: Self.first(chosen.level.rawValue, levels.map { ($0.rawValue, "\($0.rawValue): \($0.words)") })),
      .pick(name: "model", label: "Model", options: chosen.model.map { Self.first($0, models) } ?? models),
      .text(
        name: "recipients", label: "Encrypt to these keys",
        about: "age1…, several with spaces between. Without any, everyone who gets the file can read it."),
    ]
    let job = query["job"].flatMap { parts.work.job($0) } ?? parts.work.job(for: store.id)
    return ExportPage(
      form: form, chosen: chosen, tree: parts.attributes(of: files).map { ExportTree($0) },
      job: job.flatMap { $0.store == store.id && $0.kind == .export ? $0 : nil },
      ready: prepared.latest(of: store.id))
  }

  /// The options with one of them first, which is the one that is chosen.
  private static func first(
    _ value: String, _ options: [(value: String, label: String)]
  ) -> [(value: String, label: String)] {
    options.filter { $0.value == value } + options.filter { $0.value != value }
  }

  func prepare(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
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
    guard keeping.isDisjoint(with: dropping) else {
      throw Refusal(.badRequest, "a value cannot stay and be overwritten")
    }
    let model = try parts.model(form["model"])
    prepared.note(
      .init(
        level: level, model: form["model"], recipients: form["recipients"] ?? "", keeping: keeping, dropping: dropping),
      for: store.id)
    // Of another level there are no values that could be chosen; the ticks wait for a scrubbed one.
    if level != .scrubbed { (keeping, dropping) = ([], []) }
    let options = ExportOptions(level: level, model: model, keeping: keeping, dropping: dropping)
    let (parts, prepared, id, name) = (parts, prepared, store.id, store.name)
    let job = try parts.work.start(.export, "Export of \(name)", store: id, target: .store(id, "export")) {
      [recipients] observer in
      let ready = try parts.exports.prepare(files.main, options, progress: observer.export(writes: false))
      let entry = prepared.keep(ready, of: id, named: name, for: recipients)
      return JobOutcome("It is ready. Nothing is written before you agree.", entry.target)
    }
    return .running(job, on: .store(id, "export"))
  }

  /// Writes an export that is ready.
  func write(_ id: String) throws -> ActionAnswer {
    let entry = try prepared.entry(id)
    let (parts, prepared, bundles) = (parts, prepared, bundles)
    let job = try parts.work.start(.export, "Bundle of \(entry.name)", store: entry.store, target: entry.target) {
      observer in
      // Its files may have had to go from this machine since, and are fetched again.
      _ = try parts.catalogue.store(entry.store)
      let summary = try parts.exports.write(
        entry.prepared, to: entry.recipients, at: try bundles.makeFolder(), progress: observer.export(writes: true))
      prepared.forget(id)
      let file = summary.bundle.path.path?.lastComponent?.string ?? ""
      return JobOutcome(
        "The bundle is written: \(Words.size(summary.bundle.bytes)), SHA-256 \(summary.bundle.sha256).",
        .to("bundles", file))
    }
    return .running(job, on: .store(entry.store, "export"))
  }

  private func level(_ text: String?) throws(Refusal) -> BundleLevel {
    guard let text, !text.isEmpty else { return .scrubbed }
    guard let level = BundleLevel(rawValue: text) else { throw Refusal(.badRequest, "there is no such level") }
    return level
  }

  /// The words of all fields of a name.
  static func words(_ texts: [String]) -> [String] {
    texts.flatMap { $0.split { $0.isWhitespace || $0 == "," }.map(String.init) }
  }
}
