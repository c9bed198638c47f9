import ArgumentParser
import Backup
import Lazaret
import Platform
import Salvage
import SystemPackage

struct QuarantineSalvageCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "salvage", abstract: "Makes a clean store of the records of a quarantined one.",
    usage: "lazaret quarantine salvage <id> [--model <model> …] [--deleted] [--install] [<options>]",
    discussion: """
      The quarantined store is only read. The result lies beside it: ID.salvaged.sqlite, and ID.salvage.json with the \
      account of it. It can be done again at any time. Earlier results stay: the best one is the current one, and the \
      account says how the new one differs and by what. A result that says the same as an earlier one takes its place.

      Only recovery kits and backups from before the quarantine are used. With --install a copy of the current result is put into the place of the store that the app has now, which is quarantined first, \
      whole. That needs --model, and a store that no process has open.

      Ctrl-C ends it in good order. Exits with 2 where anything was lost or is doubtful, and with 1 where the \
      model has no entity of the store; nothing is moved then.
      """,
    examples: "lazaret quarantine salvage 2026-11-21-10-11-12 --home Stores \\", "  --model App.xcdatamodeld --install")

  @Argument(help: "The name of a quarantined store, or the path of its file.") var id: PathArgument

  @OptionGroup var models: FittingModelsOption

  @OptionGroup var versionOrder: VersionOrderOptions

  @Flag(help: "Look for deleted records too; they are set aside.") var deleted = false

  @Flag(help: "Put a copy of the result into the store's place; what is there is quarantined first.")
  var install = false

  @Option(help: .text("Where it is put with --install, if not where it came from.", "path"))
  var to: PathArgument?

  @OptionGroup var backup: DonorOptions

  @OptionGroup var home: HomeOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    try to?.requirePlace()
    guard !install || !models.paths.isEmpty else { throw ValidationError("--install needs the app's --model.") }
    guard install || to == nil else { throw ValidationError("--to belongs to --install.") }
    try backup.check()
  }

  func perform() throws {
    let home = try home.of(quarantined: id.path)
    var quarantines = Quarantines(home: home.path)
    quarantines.identities = try backup.identity.identities()
    let found = try home.finding(quarantined: id.path, forBackup: "backup restore ID") {
      try quarantines.store(id.path)
    }
    let model = try versionOrder.loadAppModel(models.paths, fitting: found.files.main, json: output.json)
    Interruption.listen()
    let line = ProgressLine()
    let observer = OpeningObserver {
      line.show($0)
    } isCancelled: {
      Interruption.isRequested
    }
    let source = try backup.source()
    let salvaged = try backup.finding(source, in: home) {
      try quarantines.salvage(
        id.path, model: model,
        options: .init(findsDeleted: deleted, backup: source, trustsBackup: backup.trustBackup), observer: observer)
    }
    line.clear()
    let installed = install ? try quarantines.install(salvaged.stored.files.main, to: to?.path, model: model) : nil
    let stored = try quarantines.store(salvaged.stored.files.main)
    try output.print(
      [
        "id": stored.id, "store": PathText(salvaged.store), "report": PathText(salvaged.reportPath),
        "complete": salvaged.result.isComplete, "current": salvaged.isCurrent, "comparison": salvaged.comparison,
        "salvage": stored.receipt?.salvage, "installed": installed.map { PathText($0.place.main) },
        "quarantined": try installed?.quarantined.map { try $0.payload(in: quarantines) },
      ] as JSON.Object, text(salvaged, stored, installed, in: quarantines))
    if !salvaged.result.isComplete { throw ExitStatus.doubtful }
  }

  private func text(
    _ salvaged: QuarantineSalvage, _ stored: QuarantinedStore,
    _ installed: (place: StoreFileSet, quarantined: QuarantinedStore?)?, in quarantines: Quarantines
  ) throws -> String {
    var lines = "\(stored.id): \(salvaged.result.words)\n"
    if let words = salvaged.report.reservationWords { lines += "  \(printable(words))\n" }
    for remark in salvaged.report.remarks { lines += "  \(printable(remark))\n" }
    lines += "\n" + SalvageAccountText.table(salvaged.result.entities, indent: "  ")
    lines += "\n  salvaged store  \(printable(salvaged.store.string))\n"
    if let name = salvaged.result.setAside?.path?.lastComponent {
      lines += "  set aside       \(printable(salvaged.store.folder.appending(name).string))\n"
    }
    lines += "  report          \(printable(salvaged.reportPath.string))\n"
    if let comparison = salvaged.comparison { lines += Self.text(comparison, isCurrent: salvaged.isCurrent) }
    if let failure = salvaged.failure { lines += "  \(printable(failure.words))\n" }
    if let installed {
      lines += "  A copy is in the place of the store: \(printable(installed.place.main.string))\n"
      if let replaced = installed.quarantined { lines += "  What was there is in quarantine as \(replaced.id).\n" }
      if let undo = try installed.quarantined.flatMap({ try quarantines.undo(of: $0) }) {
        lines += "  Put that back with: \(undo)\n"
      }
    }
    return lines
  }

  private static func text(_ comparison: SalvageComparison, isCurrent: Bool) -> String {
    var lines = "\n" + SalvageAccountText.table(comparison, indent: "  ")
    lines +=
      isCurrent
      ? "  This result is the current one.\n"
      : "  The earlier result is better, and stays the current one: \(printable(comparison.earlier.text))\n"
    return lines
  }
}

struct DonorOptions: ParsableArguments {
  /// The word for the newest backup; write `./latest` for a file.
  private static let latest: FilePath = "latest"

  @Option(
    help: .text(
      "A backup that lost rows are taken from: its id, latest, a healthy store, or a .gz; with its key, one that is encrypted.",
      "id|file"))
  var withBackup: PathArgument?

  @Flag(help: "Take them even if nothing says that the backup is of this very store, or if it was made later.")
  var trustBackup = false

  @OptionGroup var identity: BackupIdentityOptions

  /// A file takes precedence over a backup of the same name.
  func source() throws -> BackupSource? {
    guard let path = withBackup?.path else { return nil }
    if path == Self.latest { return .newest }
    guard let id = BackupIdentifier(path.string), try FileSystem().status(of: path) == nil else { return .file(path) }
    return .backup(id)
  }

  func check() throws {
    guard withBackup != nil || !trustBackup else { throw ValidationError("--trust-backup belongs to --with-backup.") }
    guard withBackup != nil || identity.identity.isEmpty else {
      throw ValidationError("--identity belongs to --with-backup.")
    }
  }

  /// Unpacks the backup, if any.
  ///
  /// - Throws: `home-missing` for a lookup in a missing home.
  func unpacked(for store: FilePath, home: ChosenHome) throws -> UnpackedBackup? {
    guard let source = try source() else { return nil }
    let identities = try identity.identities()
    return try finding(source, in: home) {
      try UnpackedBackup(
        source, of: store, home: home.path, trust: trustBackup ? .anyStore : .sameStore, identities: identities
      ) {
        Interruption.isRequested
      }
    }
  }

  func finding<Result>(_ source: BackupSource?, in home: ChosenHome, _ body: () throws -> Result) throws -> Result {
    switch source {
    case nil, .file: return try body()
    case .newest: return try home.existing(to: "find the backup").finding(backup: nil, body)
    case .backup(let id): return try home.existing(to: "find the backup").finding(backup: id, body)
    }
  }
}
