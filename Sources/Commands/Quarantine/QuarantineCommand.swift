import ArgumentParser
import Lazaret
import Platform
import Salvage
import SystemPackage

struct QuarantineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "quarantine", abstract: "Lists, adds, shows, salvages, puts back and removes quarantined stores.",
    discussion: ExitStatus.help,
    subcommands: [
      QuarantineListCommand.self, QuarantineShowCommand.self, QuarantineAddCommand.self,
      QuarantineSalvageCommand.self, QuarantineReleaseCommand.self, QuarantineDiscardCommand.self,
    ], defaultSubcommand: QuarantineListCommand.self)
}

struct QuarantineListCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists quarantined stores, newest first.",
    usage: "lazaret quarantine list [<place>] [--home <dir>] [<options>]",
    discussion: """
      Without a place, lists what the home's catalogue knows and what lies in Incompatible/ of the home; with a store or a \
      folder, what lies in Incompatible/ beside or in it. One whose files are missing is listed by its receipt. Of \
      the others it compares the sizes with those in the receipt, and no content. What is left of released stores is \
      named at the end.

      EXAMPLE
        lazaret quarantine list --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "A store, or a folder with stores.")
  var place: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try place.map { try self.home.of(place: $0.path) } ?? self.home.current()
    let quarantines = Quarantines(home: try home.existing(to: "list the quarantined stores").path)
    let stores =
      try place.map { try quarantines.stores(at: $0.path, includingMissing: true) }
      ?? quarantines.stores(includingMissing: true)
    let released = try quarantines.released(at: place?.path)
    let checks = try stores.map { try quarantines.check(evidenceOf: $0, .size) }
    // The store may be gone, but not the folder of its quarantine.
    if let path = place?.path, stores.isEmpty, released.isEmpty, try FileSystem().status(of: path) == nil {
      throw FileError(.notFound, operation: "list the quarantined stores", path: path)
    }
    if output.json {
      let payloads = try zip(stores, checks).map { try $0.payload(in: quarantines, $1) }
      try Terminal.standardOutput.write(
        json: home.listed(["stores": payloads, "released": released.map { Self.payload($0.store, $0.rest) }]))
    } else if stores.isEmpty {
      defer { Self.tell(released, home) }
      Terminal.standardOutput.write(
        place.map { "No store is in quarantine beside or in \(printable($0.path.string)).\n" }
          ?? "No store is in quarantine in the home: \(home.words). \(ChosenHome.another)\n")
    } else {
      var table = TextTable(
        ["id", "came from", "size", "salvage", "why"], numericColumns: [2], shrinking: [1], wrapsLast: true)
      for store in stores {
        table.append([
          store.id, store.receipt.map { printable($0.originalPath.text) } ?? "?",
          store.receipt.map { readableSize($0.totalBytes) } ?? "?",
          store.receipt?.salvage?.word ?? "–",
          store.receipt?.reason.word ?? "its receipt cannot be read",
        ])
      }
      Terminal.standardOutput.write(table.text(indent: "") + (place == nil ? "\nHome: \(home.words)\n" : ""))
      for (store, check) in zip(stores, checks) {
        guard let check, let hint = check.hint(on: store) else { continue }
        Terminal.standardOutput.write("\n\(store.id): \(check.sentence)\n  \(hint)\n")
      }
      for store in stores {
        guard let place = try quarantines.interruptedInstallation(of: store) else { continue }
        Terminal.standardOutput.write(
          """

          \(store.id): its salvaged store was being put where nothing is now: \(printable(place.string))
            End that with: lazaret quarantine salvage \(shellQuoted(store.files.main))\(home.optionBesidesStore) --model MODEL --install --to \(shellQuoted(place))

          """)
      }
      Self.tell(released, home)
    }
  }

  private static func payload(_ store: QuarantinedStore, _ rest: Discarding) -> JSON.Object {
    [
      "id": store.id, "path": PathText(store.files.folder), "date": store.receipt?.released?.date,
      "place": store.receipt?.released?.path, "files": rest.items, "bytes": rest.bytes,
    ]
  }

  private static func tell(_ released: [(store: QuarantinedStore, rest: Discarding)], _ home: ChosenHome) {
    guard !released.isEmpty else { return }
    let bytes = released.reduce(0) { $0 + $1.rest.bytes }
    var text =
      "\nOf \(counted(released.count, "released store")) something is left, \(readableSize(bytes)). Remove it with:\n"
    for (store, _) in released {
      text += "  lazaret quarantine discard \(shellQuoted(store.files.main))\(home.optionBesidesStore)\n"
    }
    Terminal.standardOutput.write(text)
  }
}

struct QuarantineShowCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Shows the receipt of a quarantined store.",
    usage: "lazaret quarantine show <id> [--home <dir>] [--all] [<options>]",
    discussion: """
      Reads every file, and compares its SHA-256 with that in the receipt.

      EXAMPLE
        lazaret quarantine show 2026-11-21-10-11-12 --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a quarantined store, or the path of its file.")
  var id: PathArgument

  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.of(quarantined: id.path)
    let quarantines = Quarantines(home: home.path)
    let store = try home.finding(quarantined: id.path, forBackup: "backup verify ID") {
      try quarantines.store(id.path)
    }
    let check = try quarantines.check(evidenceOf: store, .content)
    try output.print(
      store.payload(in: quarantines, check),
      QuarantinedStoreText(store, check, undo: try quarantines.undo(of: store)).text)
  }
}

struct QuarantineDiscardCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "discard", abstract: "Removes a quarantined store for good.",
    usage: "lazaret quarantine discard <id> [--yes] [--home <dir>] [<options>]",
    discussion: """
      Removes the store, its receipt, and everything that was salvaged of it, but no installed copy. Of a store that \
      was released it removes what is left here. Lists the files and asks first, unless told not to. There is no way back.

      EXAMPLE
        lazaret quarantine discard 2026-11-21-10-11-12 --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a quarantined store, or the path of its file.")
  var id: PathArgument

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.of(quarantined: id.path)
    let quarantines = Quarantines(home: home.path)
    let store = try home.finding(quarantined: id.path, forBackup: "backup prune") {
      try quarantines.discardable(id.path)
    }
    let discarding = try quarantines.discarding(store.files.main)
    let size = readableSize(discarding.bytes)
    if !yes {
      if !output.json {
        var table = TextTable(["file", "size"], numericColumns: [1])
        for item in discarding.items { table.append([printable(item.name.text), readableSize(item.bytes)]) }
        Terminal.standardError.write(table.text() + discarding.words + "\n")
      }
      try Confirmation.require(
        "Remove \(store.id) with everything listed, \(size), for good?", undone: "removed", json: output.json,
        or: CommandError(
          .notConfirmed, operation: "remove the quarantined store", path: store.files.main,
          detail: "it was not confirmed, and nothing was removed", hint: "Add --yes to remove it without being asked."
        ))
    }
    _ = try quarantines.discard(store.files.main)
    try output.print(
      ["id": store.id, "discarded": true, "files": discarding.items, "bytes": discarding.bytes] as JSON.Object,
      "\(store.id) was discarded: \(counted(discarding.items.count, "file")), \(size).\n")
  }
}

struct QuarantinedStoreText {
  let text: String

  init(_ store: QuarantinedStore, _ check: EvidenceCheck?, undo: String?) {
    var lines = "\(store.id)\n  lies in    \(printable(store.files.main.string))\n"
    guard let receipt = store.receipt else {
      text = lines + "  Its receipt is missing or cannot be read; the store itself is not affected.\n"
      return
    }
    lines += "  came from  \(printable(receipt.originalPath.text))\n"
    lines += "  when       \(momentText(receipt.date))\n"
    lines += "  why        \(printable(receipt.reason.words)) [\(printable(receipt.reason.code))]\n"
    if let code = receipt.error.coreData { lines += "  Core Data  error \(code)\n" }
    if let code = receipt.error.sqlite { lines += "  SQLite     error \(code)\n" }
    if let lineage = receipt.lineage {
      lines += "  generation \(printable(lineage.generation))"
      if let parent = lineage.parent { lines += ", after \(printable(parent)) was quarantined" }
      lines += "\n"
    }
    if let model = receipt.model {
      lines += "  model      \(model.words)"
      if let checksum = model.checksum { lines += ", checksum \(printable(checksum))" }
      lines += "\n"
    }
    lines += "\n"
    for file in receipt.files {
      lines += "  \(printable(file.name.text)): \(counted(file.bytes, "byte"))\n    SHA-256 \(printable(file.sha256))\n"
    }
    if let check {
      lines += "  \(check.sentence)\n"
      if let hint = check.hint(on: store) { lines += "  \(hint)\n" }
    }
    if let entities = receipt.entities, !entities.isEmpty {
      var table = TextTable(
        ["entity", "table", "records"], numericColumns: [2], leavingOut: "entities without records")
      for entity in entities {
        table.append([printable(entity.name), printable(entity.table), entity.rows.map { grouped($0) } ?? "–"])
      }
      lines += "\n" + table.text()
    }
    if let salvage = receipt.salvage { lines += Self.text(salvage) }
    if receipt.timeline != nil {
      lines += "\n"
      for moment in receipt.history {
        let words = [moment.words, moment.path?.text].compactMap(\.self).map { printable($0) }
        lines +=
          "  \(momentText(moment.date))  \(([printable(moment.kind.rawValue)] + words).joined(separator: " · "))\n"
      }
    }
    let versions = receipt.versions
    lines += "\n  Lazaret \(printable(versions.library))"
    if let app = versions.app { lines += " · app \(printable(app))" }
    if let sqlite = versions.sqlite { lines += " · SQLite \(printable(sqlite))" }
    if let writer = versions.storeWrittenBySQLite { lines += " · store written by SQLite \(printable(writer))" }
    lines += " · \(printable(versions.operatingSystem))\n"
    if let undo { lines += "\n  undo it with: \(undo)\n" }
    text = lines
  }

  /// The evidence of a result; empty for the quarantined store alone.
  private static func evidenceText(_ evidence: Receipt.Salvage.Evidence) -> String {
    var lines = ""
    if let kit = evidence.kit { lines += "  kit        \(printable(kit))\n" }
    if let backup = evidence.backup { lines += "  backup     \(printable(backup))\n" }
    if let words = evidence.changeWords { lines += "  \(words)\n" }
    return lines
  }

  private static func text(_ salvage: Receipt.Salvage) -> String {
    var lines = "\n  salvage    \(salvage.word), \(momentText(salvage.date))\n"
    if let failure = salvage.failure { lines += "  why        \(printable(failure.words))\n" }
    if let result = salvage.result {
      lines += "  result     \(printable(result.name.text))\n  \(result.words)\n"
      if let words = result.reservationWords { lines += "  \(printable(words))\n" }
      lines += "\n"
      lines += SalvageAccountText.table(result.entities, indent: "  ")
      if let evidence = result.evidence { lines += evidenceText(evidence) }
    }
    for (other, comparison) in zip(salvage.others ?? [], salvage.comparisons) {
      lines += "\n  another    \(printable(other.name.text)): \(other.words)\n"
      lines += "             \(printable(comparison.words))\n"
      lines += SalvageAccountText.table(comparison, indent: "  ")
    }
    return lines
  }
}

extension QuarantinedStore {
  func payload(undo: String?) -> JSON.Object { JSON.Object(self, ["undo": undo]) }

  func payload(in quarantines: Quarantines, _ check: EvidenceCheck?) throws -> JSON.Object {
    JSON.Object(self, ["undo": try quarantines.undo(of: self), "evidence": check?.payload(on: self)])
  }

  func payload(in quarantines: Quarantines) throws -> JSON.Object { try payload(in: quarantines, nil) }
}
