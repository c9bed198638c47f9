import ArgumentParser
public import Backup
import Lazaret
import ObjectStorage
import Platform

struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "backup", abstract: "Takes, lists, verifies, restores and prunes backups of stores.",
    discussion: """
      Backups lie in Backups/<store>/ of the home, each under b- and the time it was taken. Any gunzip opens the \
      .sqlite.gz of a full one.
      """,
    subcommands: [
      BackupListCommand.self, BackupCreateCommand.self, BackupVerifyCommand.self, BackupRestoreCommand.self,
      BackupPruneCommand.self, BackupReleaseCommand.self, BackupUndeleteCommand.self,
    ],
    defaultSubcommand: BackupListCommand.self)
}

/// `lazaret backup release`: returns a backup to the retention rules.
struct BackupReleaseCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "release", abstract: "Lets pruning drop a backup that is kept for records which later ones lack.",
    usage: "lazaret backup release <id> [--of <store>] [--home <dir>] [<options>]",
    discussion: """
      A migration that removes an entity keeps the store as it was, with the records of the entity, and pruning never drops \
      this original. Releasing it says that they are not needed any more: the rules judge it like any other backup from then \
      on. Where an entity has suddenly less than half of its records, the last backup before that is kept for thirty days; \
      releasing it says that the records were meant to go. Nothing of the backup is changed. To take the records out of it first, see: lazaret backup restore --entity

      Where nothing is to be released the exit code is 0 too.
      """, examples: "lazaret backup release b-2026-11-21-10-11-12 --home Stores")

  @Argument(help: "The name of a backup, such as b-2026-11-21-10-11-12.") var id: BackupArgument

  @OptionGroup var source: BackupPlaceOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let source = try source.chosen(to: "release the backup")
    let (note, falls) = try source.home.finding(backup: id.id, forQuarantined: "quarantine release ID") {
      let place = try source.place(with: id.id)
      return (
        try source.backups.release(id.id, in: place), try source.backups.acknowledgeFalls(since: id.id, in: place)
      )
    }
    try output.print(
      [
        "backup": id.id, "released": note != nil || !falls.isEmpty, "onlyHere": note?.account, "falls": falls,
      ] as JSON.Object, text(note, falls))
  }

  private func text(_ note: OnlyHereNote?, _ falls: [BackupManifest.Fall]) -> String {
    guard let note else {
      if !falls.isEmpty {
        let names = Set(falls.map(\.name)).sorted().prefix(5).map { printable($0) }.joined(separator: ", ")
        return "Backup \(id.id) is released. It was kept because \(names) lost more than half of the records after it. "
          + "The rules of pruning judge it like any other from now on.\n"
      }
      return "There is nothing to release: backup \(id.id) was released before, or holds no records that were noted.\n"
    }
    let holding = note.records.map { "It holds \($0) that its migration removed. " } ?? ""
    return "Backup \(id.id) is released. \(holding)The rules of pruning judge it like any other from now on.\n"
  }
}

struct BackupUndeleteCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "undelete", abstract: "Brings a dropped backup back out of the trash, or lists what is there.",
    usage: "lazaret backup undelete [<id>] [--of <store>] [--home <dir>] [<options>]",
    discussion: "What a backup cannot be restored without is brought back with it.",
    examples: "lazaret backup undelete --of Stores/App.sqlite")

  @Argument(help: "The name of a dropped backup; without one, the trash is listed.")
  var id: BackupArgument?

  @OptionGroup var source: BackupPlaceOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let source = try source.chosen(to: "look into the trash")
    guard let id else { return try list(source) }
    let restored = try source.home.finding(backup: id.id) { try BackupPruner(of: try source.place()).undelete(id.id) }
    try output.print(
      ["restored": restored], "Back among the backups: \(restored.map(\.description).joined(separator: ", "))\n")
  }

  private func list(_ source: ChosenBackups) throws {
    var trash: [JSON.Object] = []
    var table = TextTable(["backup", "dropped", "size", "why"], numericColumns: [2], wrapsLast: true)
    for place in try source.places() {
      for backup in try BackupPruner(of: place).trash() {
        let reasons = backup.record?.reasons ?? []
        trash.append([
          "id": backup.id.description, "place": place.shownLocation, "dropped": backup.record?.date,
          "reasons": reasons, "bytes": backup.bytes, "whole": backup.isWhole,
        ])
        table.append(
          backup.id.description, backup.record.map { printable($0.date) } ?? "?", readableSize(backup.bytes),
          (backup.isWhole ? "" : "not whole; ") + reasons.map { printable($0) }.joined(separator: ", "))
      }
    }
    guard !trash.isEmpty else {
      return try output.print(
        ["trash": trash],
        source.storage.map { "The trash is empty: \(printable($0.location))\n" }
          ?? "The trash of the home is empty: \(source.home.words)\n")
    }
    try output.print(["trash": trash], table.text(indent: ""))
  }
}

struct BackupCreateCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "create", abstract: "Backs a store up while it goes on being used.",
    usage: "lazaret backup create <store> [--home <dir>] [--compression <format>] [--full] [<options>]",
    discussion: """
      Takes one consistent state of the store, with what is in its write-ahead log and its large values. Writers are not \
      kept waiting, and nothing beside the store is touched. Where few pages changed since the last backup only those are \
      kept. While it is packed, every page is checked, and the entries of indexes against the rows of their tables. What was \
      written is read back and unpacked before the backup counts.

      A store that is damaged or encrypted is kept as its raw files, byte for byte, apart from the good backups; the exit \
      code is 2 then, and where files of large values that records refer to are missing. A file that is plainly no store is \
      kept only with --evidence.

      Where an entity has less than half of the records that it had in the last backup, or none, that is reported, \
      and that backup is kept for thirty days, or until it is released. See: lazaret backup release

      With --encrypt-to the backup is encrypted with age; only holders of the secret keys see more of it than a label, and \
      the name of its folder tells nothing. The next one can still keep only what changed. The policy can say to whom, too \
      (encryptTo). Leave BackupKeys/ of the home out where Backups/ is copied elsewhere: it names the stores.
      """, examples: "lazaret backup create Stores/App.sqlite --tag nightly")

  @Argument(help: "The store's main file.") var store: PathArgument

  @OptionGroup var home: HomeOptions
  @OptionGroup var storage: StorageOptions

  @Option(help: .text("How to pack: gzip or zstd.", "format"))
  var compression = BackupCompression.gzip

  @Option(help: .text("How hard to pack: 1, 6 or 9, usually 6; for zstd 1 to 19, usually 3.", "n"))
  var level: Int?

  @Option(help: .text("Encrypt to a public key, age1…, or to those in a file; may be given again.", "recipient"))
  var encryptTo: [String] = []

  @Flag(help: "Do not encrypt, even where the policy says so or the last backup is encrypted.")
  var noEncryption = false

  @Flag(help: "Keep the whole store, even where few pages changed.") var full = false

  @Flag(help: "Keep the raw files of the store, whatever state it is in.") var evidence = false

  @Option(help: "A word for retention; may be given several times.") var tag: [String] = []

  @Flag(help: "Do not read back what was written.") var noVerify = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard encryptTo.isEmpty || !noEncryption else { throw ValidationError("--no-encryption leaves no --encrypt-to.") }
  }

  func perform() throws {
    if !evidence { try refuseNoStore(at: store.path, to: "back the store up", allowingEncrypted: true) }
    let line = ProgressLine()
    var request = BackupRequest { phase, done, total in
      line.show(phase.words, done, of: total, .bytes)
      return true
    }
    request.compression = compression
    request.level = level
    if !encryptTo.isEmpty { request.encryption = BackupEncryption(to: try KeyFiles.recipients(encryptTo)) }
    request.allowsPlain = noEncryption
    request.isFull = full
    request.isEvidence = evidence
    request.tags = tag
    request.proves = !noVerify
    let home = home.of(store: store.path)
    let backups = Backups(home: home.path)
    let storage = try storage.chosen()
    let before: any BackupPlace = if let storage { storage } else { try backups.place(of: store.path) }
    let create = { try backups.create(store.path, request, in: storage) }
    let backup = try storage == nil ? home.writing(create) : create()
    let place: any BackupPlace = if let storage { storage } else { try backups.place(of: store.path) }
    line.clear()
    try output.print(
      ["backup": backup.payload(in: place), "movedFrom": before.owner?.movedFrom] as JSON.Object,
      text(backup, place, home) + (before.movedWords ?? ""))
    // Only damage counts: evidence may be of a sound store.
    if let check = backup.manifest?.check, !check.isSound { throw ExitStatus.doubtful }
    if backup.manifest?.externalData?.missing.isEmpty == false { throw ExitStatus.doubtful }
  }

  private func text(_ backup: StoredBackup, _ place: any BackupPlace, _ home: ChosenHome) -> String {
    guard let manifest = backup.manifest else { return "" }
    let sizes = "\(readableSize(manifest.contentBytes)) in \(readableSize(manifest.totalBytes))"
    var text = "Backup \(backup.id): \(manifest.kind.words(of: manifest)), \(sizes), in \(place.location)\n"
    if !manifest.check.isSound, let words = manifest.check.words {
      text += "  The store was kept as its raw files, apart from the good backups.\n  \(words)\n"
    }
    if let links = manifest.externalData?.links {
      let words = links.count == 1 ? "is a link to a file" : "are links to files"
      text +=
        "  \(counted(Int64(links.count), "large value")) \(words) elsewhere, of which the content is in the backup: \(links.prefix(5).map { printable($0.text) }.joined(separator: ", "))\n"
    }
    if let missing = manifest.externalData?.missing, !missing.isEmpty {
      text +=
        "  \(counted(Int64(missing.count), "large value")) that the store refers to \(missing.count == 1 ? "is" : "are") missing from it.\n"
    }
    let unchecked = (manifest.check.notChecked ?? []) + (manifest.check.uncompared ?? []).map { "index \($0)" }
    if !unchecked.isEmpty {
      let more = unchecked.count > 5 ? " and \(unchecked.count - 5) more" : ""
      text += "  Not checked: \(unchecked.prefix(5).map { printable($0) }.joined(separator: ", "))\(more).\n"
    }
    return text + backup.fallWords(in: home)
  }
}

extension StoredBackup {
  /// The entities with a sudden loss of records, in words.
  func fallWords(in home: ChosenHome) -> String {
    var lines = ""
    let falls = manifest?.falls ?? []
    for fall in falls.prefix(20) {
      let now = fall.after == 0 ? "no record" : counted(fall.after, "record")
      lines += "  \(printable(fall.name)) has \(now), and had \(grouped(fall.before)) in \(fall.backup).\n"
    }
    if let last = falls.first?.backup {
      if falls.count > 20 { lines += "  \(falls.count - 20) more have less than half of their records too.\n" }
      lines += "  Backup \(last) is kept for 30 days. Where this was meant, release it with: "
      lines += "lazaret backup release \(last)\(home.option)\n"
    }
    return lines
  }
}

extension BackupPhase {
  var words: String {
    switch self {
    case .comparing: "Comparing"
    case .packing: "Packing"
    case .externalData: "Large values"
    case .proving: "Reading back"
    case .unpacking: "Unpacking"
    case .checking: "Checking"
    }
  }
}

extension BackupCompression: ExpressibleByArgument {}
