import Backup
import HTTPServer
import Lazaret
import PersistentStore
import Platform
import SystemPackage

struct QuarantineActions: Sendable {
  let parts: InspectorParts

  /// - Parameter includingMissing: whether a bare receipt suffices.
  private func stored(_ store: ListedStore, includingMissing: Bool = false) throws -> QuarantinedStore {
    guard let stored = store.quarantined else { throw Refusal(.notFound, "this is no quarantined store") }
    if !includingMissing { try store.requireFiles() }
    return stored
  }

  // MARK: Salvage

  static let salvageFields: [DocumentedRoute.Field] = [
    .init("model", "The name of the model that the app has now; what the store says of itself if empty."),
    .init("deleted", "\"yes\" to look for deleted records too."),
    .init("backup", "The identifier of a backup that lost records are taken from; \"newest\" for a live store."),
    .init("install", "\"yes\" to install what was salvaged of a live store at the app's path."),
  ]

  @Sendable func salvageForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    if case .live = store.kind { return try LiveSalvageActions(parts: parts).form(store) }
    let stored = try stored(store)
    var form = ActionForm(
      "Salvage", of: store, "salvage",
      does: [
        "Reads every page of the quarantined store. Not a byte of it changes.",
        "Makes a clean store of every record that is still there, and checks it.",
        stored.receipt?.salvage?.result == nil
          ? "Puts it beside the quarantined store, with a report. Nothing is installed."
          : "What was salvaged before stays. The better result is the one to install, and the page says how they differ.",
      ], button: "Salvage",
      choices: [
        .pick(name: "model", label: "Model", options: parts.modelOptions(for: stored.files, sums: store.sums)),
        .deleted,
      ])
    let backups = try self.backups(of: stored)
    if !backups.isEmpty {
      let options =
        backups.prefix(50).map { backup in
          (
            value: backup.id.text,
            label: "\(backup.date.map(Words.date) ?? backup.id.text), \(readableSize(backup.bytes))"
          )
        } + [(value: "", label: "None")]
      form.choices.append(.pick(name: "backup", label: "Take what is lost from a backup", options: options))
    }
    return form
  }

  /// The store's backups that can supply records.
  private func backups(of stored: QuarantinedStore) throws -> [ListedStore] {
    guard let stem = stored.receipt?.originalPath.path?.stem else { return [] }
    return try parts.catalogue.backups(named: stem, sayingSomethingOf: stored.evidence)
  }

  func salvage(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    if case .live = store.kind { return try LiveSalvageActions(parts: parts).salvage(store, form) }
    let stored = try stored(store)
    let model = try parts.model(form["model"])
    var options = QuarantineSalvageOptions(findsDeleted: form["deleted"] == "yes")
    if let id = form["backup"], !id.isEmpty {
      let found = try (backups(of: stored).first { $0.id.text == id }?.backup)
        .orRefuse(.badRequest, "there is no such backup of this store")
      options.backup = .backup(found.backup.id)
    }
    let (parts, path) = (parts, stored.files.main)
    return try parts.begin(.salvage, "Salvage", of: store) { [options] observer in
      let salvaged = try parts.quarantines.salvage(path, model: model, options: options, observer: observer.opening)
      let rest = salvaged.isCurrent ? "" : " An earlier result is better, and stays the one to install."
      return JobOutcome(printable(salvaged.words) + rest)
    }
  }

  // MARK: Install

  static let installFields: [DocumentedRoute.Field] = [
    .init("again", "\"yes\" to install it once more, though it was installed and there is a live store.")
  ]

  /// When the salvaged store was installed, if the path has held a store since.
  private func installation(of stored: QuarantinedStore) throws -> Receipt.Release? {
    guard let salvage = stored.receipt?.salvage, salvage.state == .installed,
      let place = stored.receipt?.originalPath.path, try parts.present(StoreFileSet(main: place)) != nil
    else { return nil }
    return salvage.installed
  }

  @Sendable func installForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    let stored = try stored(store)
    let place = stored.receipt?.originalPath.path
    let present = try place.map { try parts.present(StoreFileSet(main: $0)) } ?? nil
    var form = ActionForm(
      "Install what was salvaged", of: store, "install",
      does: [
        "Puts a copy of the salvaged store where the app expects its store: \(place.map { printable($0.string) } ?? "?").",
        present.map { "The store that is there now (\($0)) is moved into quarantine first, whole." }
          ?? "Nothing is there now.",
        "Close the app before: a store that is in use stays where it is.",
      ], button: "Install")
    if let installed = try installation(of: stored) {
      form.choices = [
        .flag(
          name: "again", label: "Install it once more",
          about:
            "It was installed on \(Timestamp(installed.date).map(Words.date) ?? printable(installed.date)). What the app has written since goes into quarantine with the store that is there now.",
          isRequired: true)
      ]
    }
    if stored.receipt?.salvage?.result == nil || store.salvage == nil {
      form.obstacle = Problem(
        .conflict, code: "not-salvaged", title: "Not now.", detail: "Nothing was salvaged of this store yet.",
        hint: "Salvage it first.")
    } else if stored.receipt?.salvage?.result?.isUsable != true {
      form.obstacle = Problem(
        .conflict, code: "salvage-unusable", title: "Not like this.",
        detail: stored.receipt?.salvage?.failure.map { printable($0.words) } ?? "What was salvaged does not open.",
        hint: "Salvage it again with the app's current model.")
    } else if place == nil {
      form.obstacle = .unknownPlace(
        hint: "Install it with the command line, which takes a place: lazaret quarantine salvage --install --to.")
    }
    return form
  }

  func install(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let stored = try stored(store)
    if form["again"] != "yes", try installation(of: stored) != nil {
      throw Refusal(
        .conflict, "it was installed already, and the app has a store; say that it is to be installed again")
    }
    let (parts, path, salvaged) = (parts, stored.files.main, store.salvage)
    return try parts.begin(.install, "Installation of what was salvaged", of: store) { _ in
      // Installation with any model but the salvage's is refused.
      let fitting = salvaged.flatMap { parts.fittingModel(of: $0.store) } ?? parts.models.first
      let (place, replaced) = try parts.quarantines.install(path, model: fitting?.model)
      let before = replaced.map { " What was there is in quarantine as \($0.id)." } ?? ""
      return JobOutcome("The salvaged store is at \(printable(place.main.string)).\(before)")
    }
  }

  // MARK: Release

  static let releaseFields: [DocumentedRoute.Field] = [.init("replace", "\"yes\" to quarantine the live store.")]

  @Sendable func releaseForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    let stored = try stored(store)
    let place = stored.receipt?.originalPath.path
    var form = ActionForm(
      "Release", of: store, "release",
      does: [
        "Checks that the quarantined store is, byte for byte, what it was.",
        "Moves it back to where it came from, damaged as it is: \(place.map { printable($0.string) } ?? "?").",
        "Its receipt stays here. What was salvaged stays beside it.",
      ], button: "Release")
    guard let place else {
      form.obstacle = .unknownPlace(
        hint: "Release it with the command line, which takes a place: lazaret quarantine release --to.")
      return form
    }
    if let present = try parts.present(StoreFileSet(main: place)) {
      form.choices = [
        .flag(
          name: "replace", label: "Quarantine the store that is there now",
          about: "It has \(present). Without this, nothing is done.", isRequired: true)
      ]
    }
    return form
  }

  func release(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let stored = try stored(store)
    let (parts, path, isReplacing) = (parts, stored.files.main, form["replace"] == "yes")
    return try parts.begin(.release, "Release", of: store, target: .to("stores")) { _ in
      let (place, replaced) = try parts.quarantines.release(path, replacing: isReplacing)
      let before = replaced.map { " What was there is in quarantine as \($0.id)." } ?? ""
      return JobOutcome("The store is back at \(printable(place.main.string)).\(before)")
    }
  }

  // MARK: Discard

  static let discardFields: [DocumentedRoute.Field] = [
    .init("understood", "\"yes\": that this cannot be undone is understood.", isRequired: true)
  ]

  @Sendable func discardForm(_ store: ListedStore, isShown _: Bool) throws -> ActionForm {
    let stored = try stored(store, includingMissing: true)
    let discarding = try parts.quarantines.discarding(stored.files.main)
    let what = store.isMissing ? "the receipt" : "the quarantined store, its receipt"
    var does = ["Removes \(what), and everything that was salvaged of it. Nothing brings them back."]
    does += discarding.items.map { "\(printable($0.name.text)): \(readableSize($0.bytes))" }
    does += ["\(readableSize(discarding.bytes)) in all.", discarding.words]
    var form = ActionForm(
      "Discard", of: store, "discard", does: does, button: "Discard for good", choices: [.understood])
    form.isFinal = true
    return form
  }

  func discard(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let stored = try stored(store, includingMissing: true)
    try Refusal.unless(
      form["understood"] == "yes", .badRequest, "tick that this cannot be taken back, and nothing else is lost")
    try Refusal.unless(parts.work.job(for: store.id) == nil, .conflict, "something is being done to this store")
    _ = try parts.quarantines.discard(stored.files.main)
    return .done(.to("stores"))
  }
}

/// Salvages a live store: quarantine, salvage, installation.
struct LiveSalvageActions: Sendable {
  let parts: InspectorParts

  func form(_ store: ListedStore) throws -> ActionForm {
    let files = try store.liveFiles()
    var form = ActionForm(
      "Salvage", of: store, "salvage",
      does: [
        "Moves the store, with its log and its large values, into quarantine: \(printable(QuarantineFolder(beside: files, surroundings: .machine).path.string)). Not a byte of it changes, and it can be put back at any time.",
        "Makes a clean store of every record that is still there, and checks it.",
        "Installs the clean store at the app's path, if that is ticked; the app then starts with it.",
        "A store with which nothing is wrong stays where it is.",
        "Close the app before: a store that is in use stays where it is.",
      ], button: "Salvage",
      choices: [.pick(name: "model", label: "Model", options: parts.modelOptions(for: files)), .deleted])
    if try hasBackup(files) {
      form.choices.append(
        .pick(
          name: "backup", label: "Take what is lost from a backup",
          options: [("newest", "The newest that is of this store as it was"), ("", "None")]))
    }
    form.choices.append(
      .flag(
        name: "install", label: "Install what was salvaged at the app's path", about: "It can be done later, too.",
        isTicked: true))
    return form
  }

  private func hasBackup(_ files: StoreFileSet) throws -> Bool {
    try parts.catalogue.backups(of: files.main).contains { listed in
      listed.backup.map { $0.backup.isWhole && !$0.backup.isApart } ?? false
    }
  }

  func salvage(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let (parts, path) = (parts, try store.liveFiles().main)
    let model = try parts.model(form["model"])
    var options = QuarantineSalvageOptions(findsDeleted: form["deleted"] == "yes")
    switch form["backup"] ?? "" {
    case "": break
    case "newest": options.backup = .newest
    default: throw Refusal(.badRequest, "of a live store only the newest backup can be asked for")
    }
    let installs = form["install"] == "yes"
    return try parts.begin(.salvage, "Salvage", of: store) { [options] observer in
      let stored = try parts.quarantines.add(path, model: model, refusesSound: true, observer: observer.opening)
      let target = try parts.catalogue.quarantined().first { $0.quarantined?.files == stored.files }.map {
        RequestTarget.store($0.id)
      }
      do {
        var words = try salvage(stored, model, options, installs: installs, observer)
        words += " The damaged one is in quarantine as \(stored.id)."
        return JobOutcome(words, target ?? .to("stores"))
      } catch {
        throw HalfwayError(
          error: error, words: "The store is in quarantine as \(stored.id), whole, and can be put back from there.",
          target: target ?? .to("stores"))
      }
    }
  }

  private func salvage(
    _ stored: QuarantinedStore, _ model: AppModel?, _ options: QuarantineSalvageOptions, installs: Bool,
    _ observer: JobObserver
  ) throws -> String {
    let salvaged = try parts.quarantines.salvage(
      stored.files.main, model: model, options: options, observer: observer.opening)
    var words = printable(salvaged.words)
    guard installs else { return words }
    guard salvaged.stored.receipt?.salvage?.result?.isUsable == true else { return words + " It was not installed." }
    let (place, replaced) = try parts.quarantines.install(stored.files.main, model: model)
    words += " The salvaged store is at \(printable(place.main.string))."
    // The app started meanwhile and made its own store.
    if let replaced { words += " What was there is in quarantine as \(replaced.id)." }
    return words
  }
}

extension Problem {
  fileprivate static func unknownPlace(hint: String) -> Problem {
    Problem(
      .conflict, code: "receipt-unreadable", title: "Not from here.",
      detail: "The receipt does not say where the store came from.", hint: hint)
  }
}

extension ActionForm.Choice {
  fileprivate static let deleted = ActionForm.Choice.flag(
    name: "deleted", label: "Look for deleted records too", about: "They are set aside, and never installed.")
}
