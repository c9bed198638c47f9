import Backup
import HTTPServer
import Lazaret
import ManagedObjectModel
import Platform
import SQLiteFormat
import SystemPackage

struct BackupActions: Sendable {
  let parts: InspectorParts

  private func backup(_ store: ListedStore) throws -> (backup: StoredBackup, place: FolderPlace) {
    guard let backup = store.backup else { throw Refusal(.notFound, "this is no backup") }
    return backup
  }

  // MARK: Back up

  static let createFields: [DocumentedRoute.Field] = [
    .init("full", "\"yes\" to pack the whole store, even where little has changed.")
  ]

  @Sendable func createForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    let files = try store.liveFiles()
    let place = try parts.backups.place(of: files.main)
    return ActionForm(
      "Back up", of: store, "backup",
      does: [
        "Takes a compressed snapshot of the store as it is at one moment. An app may go on using it; nothing of it changes.",
        "Keeps it in \(printable(place.path.string)), reads it back, and compares.",
        "A store that turns out to be damaged is kept as evidence, byte for byte.",
      ], button: "Back up",
      choices: [
        .flag(
          name: "full", label: "Pack the whole store",
          about: "Otherwise only the pages that changed since the last backup, where they are few.")
      ])
  }

  func create(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let (parts, path, isFull) = (parts, try store.liveFiles().main, form["full"] == "yes")
    return try parts.begin(.backup, "Backup", of: store) { observer in
      var request = BackupRequest(
        progress: observer.backup([(.comparing, 0.1), (.packing, 0.6), (.externalData, 0.1), (.proving, 0.2)]))
      request.isFull = isFull
      let backup = try parts.backups.create(path, request)
      let id = try parts.catalogue.backups().first { $0.backup?.backup.id == backup.id && $0.bytes == backup.bytes }?.id
      return JobOutcome("Backup \(backup.id): \(readableSize(backup.bytes)).", id.map { .store($0) })
    }
  }

  // MARK: Quarantine

  static let quarantineFields: [DocumentedRoute.Field] = [
    .init("salvage", "\"yes\" to salvage it at once."),
    .init("model", "The name of the model that the app has now; what the store says of itself if empty."),
  ]

  @Sendable func quarantineForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    let files = try store.liveFiles()
    return ActionForm(
      "Quarantine", of: store, "quarantine",
      does: [
        "Moves the store, with its log and its large values, into quarantine: \(printable(QuarantineFolder(beside: files, surroundings: .machine).path.string)).",
        "Not a byte of it changes, and it can be put back at any time.",
        "There is no live store then. Close the app before: a store that is in use stays where it is.",
      ], button: "Quarantine",
      choices: [
        .flag(name: "salvage", label: "Salvage it at once", about: "A clean store is made beside it."),
        .pick(name: "model", label: "Model", options: parts.modelOptions(for: files)),
      ])
  }

  func quarantine(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let (parts, path) = (parts, try store.liveFiles().main)
    let (model, salvages) = (try parts.model(form["model"]), form["salvage"] == "yes")
    return try parts.begin(.quarantine, "Quarantine", of: store) { observer in
      let stored = try parts.quarantines.add(path, model: model, observer: observer.opening)
      var words = "The store is in quarantine as \(stored.id)."
      if salvages {
        let salvaged = try parts.quarantines.salvage(stored.files.main, model: model, observer: observer.opening)
        words += " " + printable(salvaged.words)
      }
      let id = try parts.catalogue.quarantined().first { $0.quarantined?.files == stored.files }?.id
      return JobOutcome(words, id.map { .store($0) } ?? .to("stores"))
    }
  }

  // MARK: Verify

  static let verifyFields: [DocumentedRoute.Field] = [
    .init("depth", "\"files\" to read it back only, \"restored\" to restore it aside and count its records.")
  ]

  @Sendable func verifyForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    _ = try backup(store)
    return ActionForm(
      "Verify", of: store, "verify",
      does: [
        "Reads every block of the backup and compares it with its digest.",
        "Restores it into a private folder, opens it, checks every page, and counts its records. The app's store is not touched.",
        "Notes the result beside the backup.",
      ], button: "Verify",
      choices: [
        .pick(
          name: "depth", label: "How far",
          options: [("restored", "Restore it aside and count"), ("files", "Only read it back")])
      ])
  }

  func verify(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let (backup, place) = try backup(store)
    guard let depth = BackupProof.Depth(rawValue: form["depth"] ?? "restored"), depth != .migrated else {
      throw Refusal(.badRequest, "there is no such depth")
    }
    let parts = parts
    return try parts.begin(.proof, "Verification of the backup", of: store) { observer in
      var options = BackupProver.Options(
        progress: observer.backup([(.unpacking, 0.6), (.proving, 0.1), (.checking, 0.3)]))
      options.depth = depth
      let proof = try parts.backups.prove(backup.id, in: place, options)
      switch proof.result {
      case .proven:
        let words =
          proof.isOfEvidence
          ? "The files are those that were kept."
          : proof.depth == .files
            ? "The digests of the backup's files are right; it was not restored." : "The backup is verified."
        let warnings = (proof.warnings ?? []).map { " " + sentence(printable($0.words)) }
        return JobOutcome(words + warnings.joined())
      case .inconclusive: return JobOutcome("It could not be told whether the backup is right.")
      case .failed:
        return JobOutcome(
          "The backup is not right: \(proof.problems.first.map { printable($0.words) } ?? "see its page").")
      }
    }
  }

  // MARK: Restore

  /// The largest store in bytes to compare; the command line previews larger ones.
  private static let maximumPreview: Int64 = 256 << 20

  /// Returns the original path of the backed-up store.
  ///
  /// A migration's backup doesn't record it; the home's only store of its name is assumed.
  private func destination(_ backup: StoredBackup, _ place: FolderPlace) throws -> FilePath {
    // A moved home took the store along.
    if let path = place.owner?.present, Self.isNamed(place, path) { return path }
    if backup.manifest?.kind == .original {
      let places = try parts.catalogue.live().compactMap(\.files?.main).filter {
        $0.stem == place.path.lastComponent?.string
      }
      if places.count == 1 { return places[0] }
    }
    guard let path = backup.manifest?.store.path.path, path.isAbsolute, path.lexicallyNormalized() == path,
      Self.isNamed(place, path)
    else { throw Refusal(.conflict, "the backup does not say which store of this home it is of") }
    return path
  }

  /// Whether the folder is named after the store, perhaps with a numeric suffix.
  private static func isNamed(_ place: FolderPlace, _ path: FilePath) -> Bool {
    guard let name = place.path.lastComponent?.string else { return false }
    let own = BackupPlaces.folderName(path.stem ?? "Store").string
    guard name.hasPrefix(own) else { return name == path.stem }
    let rest = name.dropFirst(own.count)
    return rest.isEmpty || rest.first == "-" && rest.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
  }

  @Sendable func restoreForm(_ store: ListedStore, isShown: Bool) throws -> ActionForm {
    let (backup, place) = try backup(store)
    let path = try destination(backup, place)
    let present = try parts.present(StoreFileSet(main: path))
    var form = ActionForm(
      "Restore", of: store, "restore",
      does: [
        "Restores the backup beside the app's store, whole, checked and on the disk, before anything is moved.",
        present.map { "The store that is there now (\($0)) is backed up where it is sound, and moved into quarantine." }
          ?? "No store is there now.",
        "Puts the restored store at \(printable(path.string)).",
        "Close the app before: a store that is in use stays where it is.",
      ], button: "Restore")
    if let problem = backup.problems.first {
      form.obstacle = Problem(
        .conflict, code: "backup-damaged", title: "Not this one.", detail: sentence(printable(problem.words)),
        hint: "Restore another backup.")
      return form
    }
    guard isShown, present != nil else { return form }
    guard let bytes = backup.manifest?.contentBytes, bytes <= Self.maximumPreview else {
      form.preview = (
        "<p class=\"soft\">The store is too large to be compared on this page; <code>lazaret backup restore --preview</code> does.</p>",
        JSON.Value.null
      )
      return form
    }
    let preview = PagePart { try parts.backups.preview(of: path, backup.id, from: place, models: parts.modelBundles) }
    form.preview = (preview.html { RestorePreviewTable(preview: $0).html }, preview)
    return form
  }

  func restore(_ store: ListedStore) throws -> ActionAnswer {
    let (backup, place) = try backup(store)
    let (parts, path) = (parts, try destination(backup, place))
    return try parts.begin(.restore, "Restore", of: store, target: .to("stores")) { observer in
      let restored = try parts.backups.restore(
        over: path, backup.id, from: place,
        options: .init(progress: observer.backup([(.packing, 0.2), (.unpacking, 0.6), (.checking, 0.2)])))
      let before = restored.quarantined.map { " What was there is in quarantine as \($0.id)." } ?? ""
      let lost = restored.report.lostValues.count
      let without =
        lost > 0 ? " \(counted(lost, "large value")) that its records refer to \(lost == 1 ? "is" : "are") lost." : ""
      let damaged = restored.damage == nil ? "" : " It is as it was when it was backed up, not sound: salvage it."
      return JobOutcome("Backup \(backup.id) is restored at \(printable(path.string)).\(damaged)\(without)\(before)")
    }
  }
}

struct RestorePreviewTable {
  let preview: RestorePreview

  var html: HTML {
    let present: HTML =
      preview.present == .damaged
      ? "<p>The present store is damaged; it is compared as far as its records can be salvaged.</p>" : .empty
    func row(_ name: String, _ added: Int64?, _ changed: Int64?, _ lost: Int64?, _ unchanged: HTML) -> HTML {
      .row("\(name)", .number(added, tone: .good), .number(changed, tone: .warn), .number(lost, tone: .bad), unchanged)
    }
    let rows = preview.entities.map { row(printable($0.name), $0.added, $0.changed, $0.lost, .number($0.unchanged)) }
    let pairs = preview.pairs.map { row("Pairs of \($0.words)", $0.added, $0.changed, $0.lost, "<td></td>") }
    let columns: [TableColumn] = [
      "Entity", .number("Added"), .number("Changed"), .number("Lost"), .number("Unchanged"),
    ]
    let schema = (preview.schemaWords + preview.valueWords).map { words -> HTML in "<li>\(sentence(words))</li>" }
    let changes: HTML = schema.isEmpty ? .empty : "<ul>\(schema)</ul>"
    let remarks = preview.remarks.map { remark -> HTML in "<p class=\"soft\">\(sentence(printable(remark)))</p>" }
    return """
      <h2>What would change</h2>\(present)\(verdict)\
      \(HTML.table("What would change", columns, rows + pairs))\(changes)\(remarks)
      """
  }

  private var verdict: HTML {
    if preview.isHarmless {
      return .note(.good, "<p>Restoring loses and changes nothing that is in the present store.</p>")
    }
    let words =
      preview.changesSomething
      ? "Some of what is in the present store would be changed or lost"
      : "Not everything in the present store could be compared, so that more may be changed or lost than is shown here"
    return .note(.warn, "<p>\(words); it stays in quarantine.</p>")
  }
}
