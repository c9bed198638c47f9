import ArgumentParser
import Lazaret
import PersistentStore
import Platform
import SQLiteFormat
import Salvage
import SystemPackage

struct QuarantineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "quarantine", abstract: "Lists, adds, shows, salvages, puts back and removes quarantined stores.",
    subcommands: [
      QuarantineListCommand.self, QuarantineShowCommand.self, QuarantineAddCommand.self,
      QuarantineSalvageCommand.self, QuarantineReleaseCommand.self, QuarantineDiscardCommand.self,
    ],
    defaultSubcommand: QuarantineListCommand.self)
}

struct QuarantineListCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "list", abstract: "Lists quarantined stores, newest first.",
    usage: "lazaret quarantine list [<place>] [--home <dir>] [<options>]",
    discussion: """
      Without a place, lists what the home's catalogue knows and what lies in Incompatible/ of the home; with a store or a \
      folder, what lies in Incompatible/ beside or in it. One whose files are missing is listed by its receipt. Of \
      the others it compares the sizes with those in the receipt, and no content. What is left of released stores is \
      named at the end.
      """, examples: "lazaret quarantine list --home Stores")

  @Argument(help: "A store, or a folder with stores.") var place: PathArgument?

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
        table.append(
          store.id, store.receipt.map { printable($0.originalPath.text) } ?? "?",
          store.receipt.map { readableSize($0.totalBytes) } ?? "?", store.receipt?.salvage?.word ?? "–",
          store.receipt?.reason.word ?? "its receipt cannot be read")
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
    verb: "show", abstract: "Shows the receipt of a quarantined store.",
    usage: "lazaret quarantine show <id> [--home <dir>] [--all] [<options>]",
    discussion: "Reads every file, and compares its SHA-256 with that in the receipt.",
    examples: "lazaret quarantine show 2026-11-21-10-11-12 --home Stores")

  @Argument(help: "The name of a quarantined store, or the path of its file.") var id: PathArgument

  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let home = try home.of(quarantined: id.path)
    let quarantines = Quarantines(home: home.path)
    let store = try home.finding(quarantined: id.path, forBackup: "backup verify ID") { try quarantines.store(id.path) }
    let check = try quarantines.check(evidenceOf: store, .content)
    try output.print(store.payload(in: quarantines, check), store.text(check, undo: try quarantines.undo(of: store)))
  }
}

struct QuarantineDiscardCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "discard", abstract: "Removes a quarantined store for good.",
    usage: "lazaret quarantine discard <id> [--yes] [--home <dir>] [<options>]",
    discussion: """
      Removes the store, its receipt, and everything that was salvaged of it, but no installed copy. Of a store that \
      was released it removes what is left here. Lists the files and asks first, unless told not to. There is no way back.
      """, examples: "lazaret quarantine discard 2026-11-21-10-11-12 --home Stores")

  @Argument(help: "The name of a quarantined store, or the path of its file.") var id: PathArgument

  @Flag(help: "Do not ask.") var yes = false

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

extension QuarantinedStore {
  fileprivate func text(_ check: EvidenceCheck?, undo: String?) -> String {
    var lines = "\(id)\n  lies in    \(printable(files.main.string))\n"
    guard let receipt else {
      return lines + "  Its receipt is missing or cannot be read; the store itself is not affected.\n"
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
      if let hint = check.hint(on: self) { lines += "  \(hint)\n" }
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
    return lines
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

  func payload(undo: String?) -> JSON.Object { JSON.Object(self, ["undo": undo]) }

  func payload(in quarantines: Quarantines, _ check: EvidenceCheck? = nil) throws -> JSON.Object {
    JSON.Object(self, ["undo": try quarantines.undo(of: self), "evidence": check?.payload(on: self)])
  }
}

struct QuarantineAddCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "add", abstract: "Moves a store into quarantine, whole, with a receipt.",
    usage: "lazaret quarantine add <store> [--reason <text>] [--replace-foreign] [<options>]",
    discussion: """
      The store goes into Incompatible/ beside it, under the time in UTC. A store that another process has open stays \
      where it is, and so does a file that is plainly no store, unless --replace-foreign says otherwise. What is printed \
      ends with the command that puts it back.
      """, examples: "lazaret quarantine add Broken.sqlite --reason \"the app did not start\"")

  @Argument(help: "The store's main file.") var store: PathArgument

  @Option(help: "The app's model, to tell the store's version by; what LAZARET_MODEL names if not given.")
  var model: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions

  @Option(help: .text("Why, in words, for the receipt.", "text")) var reason: String?

  @Option(help: .text("The app's version, for the receipt.", "version")) var appVersion: String?

  @OptionGroup var foreign: ForeignFileOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let model = try ModelOption.chosen([model].compactMap(\.self)).first.map {
      try versionOrder.loadAppModel($0, json: output.json)
    }
    if !foreign.replaceForeign {
      try refuseNoStore(at: store.path, to: "quarantine the store", allowingEncrypted: true)
    }
    let line = ProgressLine()
    let home = home.of(store: store.path)
    let quarantines = Quarantines(home: home.path)
    let stored = try quarantines.add(
      store.path, model: model, reason: reason, appVersion: appVersion, observer: OpeningObserver { line.show($0) })
    line.clear()
    try output.print(stored.payload(in: quarantines), stored.text(nil, undo: try quarantines.undo(of: stored)))
  }
}

struct ForeignFileOptions: ParsableArguments {
  @Flag(
    help:
      "Move the file even where it is nothing of the app's: another app's sound store, a text, a picture, an archive, a program. If not given, such a file is refused."
  )
  var replaceForeign = false
}

extension ParsableCommand {
  /// Throws `not-a-store` or `encrypted-or-random` if the file is plainly no store.
  ///
  /// The verb itself handles an unreadable file.
  ///
  /// - Parameter encrypted: whether to accept an encrypted file.
  func refuseNoStore(at path: FilePath, to operation: String, allowingEncrypted encrypted: Bool = false) throws {
    // The verb reports an unreadable file.
    guard let head = try? FileSystem().open(path).bytes(at: 0, length: FileKind.sampleLength) else { return }
    let isDatabase = FileKind(firstBytes: head) == .database
    if isDatabase, !FileKind.looksRandom(Array(head.dropFirst(DatabaseHeader.length))) { return }
    let examination = try Examiner().examine(path, options: .init(countsRecords: false))
    if encrypted, examination.isEncryptedOrRandom { return }
    if let error = LazaretError.noStore(examination, at: path, operation: operation) { throw error }
  }
}

struct QuarantineReleaseCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "release", abstract: "Puts a quarantined store back where it came from.",
    usage: "lazaret quarantine release <id> [--to <path>] [--replace] [--home <dir>] [<options>]",
    discussion: """
      Refuses where another store is in its place, unless told to replace it; what is there is then quarantined first. \
      What was salvaged of it stays, with its receipt, and is listed; "quarantine discard" removes it.
      """, examples: "lazaret quarantine release 2026-11-21-10-11-12 --home Stores --replace")

  @Argument(help: "The name of a quarantined store, or the path of its file.") var id: PathArgument

  @Option(help: .text("Where it goes, if not where it came from.", "path")) var to: PathArgument?

  @Flag(help: "Quarantine what is in its place first.") var replace = false

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func validate() throws { try to?.requirePlace() }

  func perform() throws {
    let home = try home.of(quarantined: id.path)
    let quarantines = Quarantines(home: home.path)
    let stored = try home.finding(quarantined: id.path, forBackup: "backup restore ID") {
      try quarantines.store(id.path)
    }
    let result = try quarantines.release(id.path, to: to?.path, replacing: replace)
    let rest = try quarantines.discarding(stored.files.main)
    let discard = "lazaret quarantine discard \(shellQuoted(stored.files.main))\(home.optionBesidesStore)"
    let undo = try result.quarantined.flatMap { try quarantines.undo(of: $0) }
    var text = "The store is back at \(printable(result.place.main.string)).\n"
    if let replaced = result.quarantined { text += "What was there is in quarantine as \(replaced.id).\n" }
    if let undo { text += "Put that back with: \(undo)\n" }
    if !rest.items.isEmpty {
      text +=
        "What was made of it stays in \(printable(stored.files.folder.string)), "
        + "\(counted(rest.items.count, "file")), \(readableSize(rest.bytes)):\n"
      for item in rest.items { text += "  \(printable(item.name.text))\n" }
      text += "Remove it with: \(discard)\n"
    }
    try output.print(
      [
        "store": PathText(result.place.main), "quarantined": result.quarantined.map { $0.payload(undo: undo) },
        "left": rest.items, "leftBytes": rest.bytes, "discard": rest.items.isEmpty ? nil : discard,
      ] as JSON.Object, text)
  }
}

extension QuarantinedStore {
  /// Returns the command that puts the store back; nil if the receipt does not name its path.
  ///
  /// - Parameter isReplacing: first quarantines another store at the path.
  func undo(home: FilePath?, replacing isReplacing: Bool) -> String? {
    receipt?.originalPath.path.map { _ in Self.release(files.main, home: home, replacing: isReplacing) }
  }

  /// Absolute paths make it work in any folder.
  fileprivate static func release(_ path: FilePath, home: FilePath?, replacing isReplacing: Bool) -> String {
    let option = home.map { " --home \(shellQuoted($0))" } ?? ""
    return "lazaret quarantine release \(shellQuoted(path))\(option)\(isReplacing ? " --replace" : "")"
  }
}

extension OpeningEvent {
  /// The command that puts the quarantined store back; nil for an event without one.
  func undo(in home: ChosenHome) -> String? {
    guard reason != nil, let stored = path.path else { return nil }
    return QuarantinedStore.release(stored, home: home.wholePath, replacing: true)
  }
}

extension Quarantines {
  /// Returns the command that puts a store back in the present state; nil without its path or files.
  func undo(of stored: QuarantinedStore) throws -> String? {
    let fileSystem = FileSystem()
    guard let place = stored.receipt?.originalPath.path, try !stored.files.members(in: fileSystem).isEmpty else {
      return nil
    }
    // An unreadable place may be taken; replacing works on an empty one too.
    let isTaken = (try? !StoreFileSet(main: place).members(in: fileSystem).isEmpty) ?? true
    return stored.undo(home: ChosenHome.whole(home), replacing: isTaken)
  }
}
