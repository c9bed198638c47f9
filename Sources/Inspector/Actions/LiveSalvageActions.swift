import Backup
import HTTPServer
import Lazaret
import PersistentStore
import Platform
import SystemPackage

/// Salvages a live store: quarantine, salvage, installation.
struct LiveSalvageActions: Sendable {
  private let parts: InspectorParts

  init(_ parts: InspectorParts) { self.parts = parts }

  private func files(_ store: ListedStore) throws -> StoreFileSet {
    guard case .live(let files) = store.kind else { throw Refusal(.notFound, "this is no live store") }
    return files
  }

  func form(_ store: ListedStore) throws -> ActionForm {
    let files = try files(store)
    var form = ActionForm(
      "Salvage", of: store, "salvage",
      does: [
        "Moves the store, with its log and its large values, into quarantine: \(printable(QuarantineFolder(beside: files, surroundings: .machine).path.string)). Not a byte of it changes, and it can be put back at any time.",
        "Makes a clean store of every record that is still there, and checks it.",
        "Installs the clean store at the app's path, if that is ticked; the app then starts with it.",
        "A store with which nothing is wrong stays where it is.",
        "Close the app before: a store that is in use stays where it is.",
      ], button: "Salvage")
    form.choices = [
      .pick(name: "model", label: "Model", options: parts.modelOptions(for: files)),
      .flag(
        name: "deleted", label: "Look for deleted records too",
        about: "They are set aside, and never installed.", isRequired: false),
    ]
    if try hasBackup(files) {
      form.choices.append(
        .pick(
          name: "backup", label: "Take what is lost from a backup",
          options: [("newest", "The newest that is of this store as it was"), ("", "None")]))
    }
    form.choices.append(
      .flag(
        name: "install", label: "Install what was salvaged at the app's path", about: "It can be done later, too.",
        isRequired: false, isTicked: true))
    return form
  }

  private func hasBackup(_ files: StoreFileSet) throws -> Bool {
    try parts.catalogue.backups(of: files.main).contains { listed in
      listed.backup.map { $0.backup.isWhole && !$0.backup.isApart } ?? false
    }
  }

  func salvage(_ store: ListedStore, _ form: FormData) throws -> ActionAnswer {
    let (parts, path) = (parts, try files(store).main)
    let model = try parts.model(form["model"])
    var options = QuarantineSalvageOptions(findsDeleted: form["deleted"] == "yes")
    switch form["backup"] ?? "" {
    case "": break
    case "newest": options.backup = .newest
    default: throw Refusal(.badRequest, "of a live store only the newest backup can be asked for")
    }
    let installs = form["install"] == "yes"
    let job = try parts.work.start(
      .salvage, "Salvage of \(store.name)", store: store.id, target: .store(store.id)
    ) { [options] observer in
      let stored = try parts.quarantines.add(
        path, model: model, refusesSound: true, observer: observer.opening)
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
    return .running(job)
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
