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
    .init("keep", "The attributes, Entity.attribute, whose values stay in a scrubbed store, with spaces between."),
    .init("drop", "The attributes whose values are overwritten in a scrubbed store, with spaces between."),
  ]

  @Sendable func form(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    guard let files = store.files else {
      throw Refusal(.conflict, "a backup is not exported; restore it aside, and export that")
    }
    var form = ActionForm(
      "Export for support", of: store, "export",
      does: [
        "Looks at every page of the store, and makes ready what a bundle for support would hold. Not a byte of the store changes.",
        "Shows you then what would be in it, file by file, and how large it is at each level. Nothing is written before you agree.",
        "Nothing is sent: the bundle is a file on this machine, in \(printable(bundles.path.string)).",
      ], button: "Make it ready")
    let levels: [BundleLevel] = [.scrubbed, .facts, .damagedPages, .full]
    form.choices = [
      .pick(
        name: "level", label: "How much of it",
        options: levels.map { (value: $0.rawValue, label: "\($0.rawValue): \($0.words)") }),
      .pick(name: "model", label: "Model", options: parts.modelOptions(for: files)),
      .text(
        name: "recipients", label: "Encrypt to these keys",
        about: "age1…, several with spaces between. Without any, everyone who gets the file can read it."),
      .text(
        name: "keep", label: "Values that stay as they are",
        about: "Entity.attribute, several with spaces between; for scrubbed."),
      .text(name: "drop", label: "Values that are overwritten", about: "Entity.attribute; for scrubbed."),
    ]
    return form
  }

  func prepare(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    guard let files = store.files else { throw Refusal(.conflict, "a backup is not exported") }
    let level = try level(form["level"])
    var recipients: [AgeRecipient] = []
    for text in Self.words(form["recipients"]) {
      do {
        recipients.append(try AgeRecipient(text))
      } catch {
        throw Refusal(.badRequest, "a key to encrypt to is none; it begins with age1")
      }
    }
    let (keeping, dropping) = (Set(Self.words(form["keep"])), Set(Self.words(form["drop"])))
    guard keeping.isDisjoint(with: dropping) else {
      throw Refusal(.badRequest, "a value cannot stay and be overwritten")
    }
    guard level == .scrubbed || (keeping.isEmpty && dropping.isEmpty) else {
      throw Refusal(.badRequest, "values stay or are overwritten only in a scrubbed store")
    }
    let options = ExportOptions(
      level: level, model: try parts.model(form["model"]), keeping: keeping, dropping: dropping)
    let (parts, prepared, id, name) = (parts, prepared, store.id, store.name)
    let job = try parts.work.start(.export, "Export of \(name)", store: id, target: .store(id)) {
      [recipients] observer in
      let ready = try parts.exports.prepare(files.main, options, progress: observer.export(writes: false))
      let entry = prepared.keep(ready, of: id, named: name, for: recipients)
      return JobOutcome("It is ready. Nothing is written before you agree.", entry.target)
    }
    return .running(job)
  }

  /// Writes an export that is ready.
  func write(_ id: String) throws -> ActionAnswer {
    let entry = try prepared.entry(id)
    let (parts, prepared, bundles) = (parts, prepared, bundles)
    let job = try parts.work.start(.export, "Bundle of \(entry.name)", store: entry.store, target: entry.target) {
      observer in
      let summary = try parts.exports.write(
        entry.prepared, to: entry.recipients, at: try bundles.makeFolder(), progress: observer.export(writes: true))
      prepared.forget(id)
      let file = summary.bundle.path.path?.lastComponent?.string ?? ""
      return JobOutcome(
        "The bundle is written: \(Words.size(summary.bundle.bytes)), SHA-256 \(summary.bundle.sha256).",
        .to("bundles", file))
    }
    return .running(job)
  }

  private func level(_ text: String?) throws(Refusal) -> BundleLevel {
    guard let text, !text.isEmpty else { return .scrubbed }
    guard let level = BundleLevel(rawValue: text) else { throw Refusal(.badRequest, "there is no such level") }
    return level
  }

  /// The words of a field.
  private static func words(_ text: String?) -> [String] {
    (text ?? "").split { $0.isWhitespace || $0 == "," }.map(String.init)
  }
}
