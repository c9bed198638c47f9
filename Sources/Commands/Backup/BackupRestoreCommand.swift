import ArgumentParser
import Backup
import Lazaret
import ManagedObjectModel
import ObjectStorage
import PersistentStore
import Platform
import Salvage
import SystemPackage

struct BackupRestoreCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "restore", abstract: "Restores a backup over the store, or to another path.",
    usage: "lazaret backup restore [<id>] [--at <time>] [--to <path>] [<options>]",
    discussion: """
      Without an id, restores the newest backup of the store that is whole, of a sound store, not found damaged and not \
      dated in the future, or with --at the newest that is not later; it says which newer ones it passed over, and why. A \
      backup of another store is restored over this one only with --other-store.

      The store that is there is quarantined first, complete and unchanged, and the restored one takes its place only when \
      it is whole, checked and on the disk. With --to nothing is replaced. With --preview nothing is restored: it is told \
      how many records would be added, changed and lost, and what would change in the schema.

      With --entity the records of an entity, or with --records some of them, are put into a new store of the same model; \
      references to records that are left out are cut and counted.

      A backup of a damaged store gives that back as it was, damaged; it says so, and how to salvage it.

      Exits with 2 where the store was damaged when it was backed up, a part of the backup was lost, a large value that \
      records refer to is not in it, references were \
      cut, or --preview shows that something would change or be lost, or could not compare everything.
      """, examples: "lazaret backup restore --of Stores/App.sqlite --preview",
    "lazaret backup restore --of Stores/App.sqlite --at 2026-11-21T18:00:00Z",
    "lazaret backup restore --of Stores/App.sqlite --entity Car --to Cars.sqlite")

  @Argument(help: "The name of a backup, such as b-2026-11-21-10-11-12.") var id: BackupArgument?

  @Option(help: .text("The newest backup that is not later, such as 2026-11-20T18:00:00Z.", "time"))
  var at: TimeArgument?

  @Option(help: .text("Where to; nothing may be there.", "path")) var to: PathArgument?

  @OptionGroup var source: BackupPlaceOptions

  @Flag(help: "Only tell what restoring it over the store would change.") var preview = false

  @Option(help: .text("Only the records of this entity; may be given again.", "name"))
  var entity: [String] = []

  @Option(help: .text("Only the records with these primary keys.", "key,key")) var records: String?

  @Flag(help: "Take no backup of the present store first; it is quarantined all the same.")
  var noBackup = false

  @Flag(help: "Restore a backup of another store over the one that is named with --of.")
  var otherStore = false

  @Flag(help: "Salvage what is left where parts of the backup are lost.") var salvage = false

  @Option(
    help:
      "The app's model, for --salvage and --entity where the store carries none; what LAZARET_MODEL names if not given."
  )
  var model: PathArgument?

  @OptionGroup var versionOrder: VersionOrderOptions
  @OptionGroup var table: TableOptions
  @OptionGroup var output: OutputOptions

  private var primaryKeys: [Int64]? { records.map { $0.split(separator: ",").compactMap { Int64($0) } } }

  func validate() throws {
    try to?.requirePlace()
    if id != nil, at != nil { throw ValidationError("Give an id or --at, not both.") }
    if !entity.isEmpty, to == nil { throw ValidationError("--entity needs --to, a new store for the records.") }
    if records != nil, entity.isEmpty { throw ValidationError("--records needs --entity.") }
    if let records, primaryKeys?.count != records.split(separator: ",", omittingEmptySubsequences: false).count {
      throw ValidationError("--records are primary keys separated by commas, such as 17,18.")
    }
    if preview, to != nil || !entity.isEmpty { throw ValidationError("--preview goes with neither --to nor --entity.") }
  }

  func perform() throws {
    let source = try source.chosen(to: "restore the backup")
    let place = try source.place(with: id?.id, allowsOtherStore: otherStore)
    let restorer = BackupRestorer(of: place)
    let choice = try source.home.finding(backup: id?.id, forQuarantined: "quarantine release ID") {
      try restorer.choice(id?.id, notLaterThan: at?.time)
    }
    let backup = choice.backup
    let known = try ModelOption.chosen([model].compactMap(\.self)).first.map {
      try versionOrder.loadAppModel($0, json: output.json)
    }
    let line = ProgressLine()
    let options = BackupRestorer.Options(salvages: salvage, model: known.map(SalvageModel.init)) {
      phase, done, total in
      line.show(phase.words, done, of: total, .bytes)
      return true
    }
    defer { line.clear() }
    let mark = to.flatMap { PrivateFolder.mark(of: $0.path) }
    defer { withExtendedLifetime(mark) {} }
    if !entity.isEmpty, let to {
      try extract(restorer, backup, to.path, known, options, line, source.home)
    } else if let to {
      let report = try restorer.restore(backup.id, to: to.path, options: options)
      line.clear()
      try show(report, quarantined: nil, choice, source.home)
    } else {
      let path = try storePath(backup, source.of, place)
      if !otherStore { try source.storage?.requireOwn(path) }
      let backups = source.backups
      if preview {
        var bundles: [ModelBundle] = []
        if case .coreData(let bundle) = known { bundles = [bundle] }
        let preview = try backups.preview(
          of: path, backup.id, from: place, allowsOtherStore: otherStore, options: options, models: bundles)
        line.clear()
        try show(preview, choice, path, source.home)
      } else {
        let restored = try backups.restore(
          over: path, backup.id, from: place, takesBackup: !noBackup, allowsOtherStore: otherStore, options: options)
        line.clear()
        try show(restored.report, quarantined: restored.quarantined, before: restored.backup, choice, source.home)
      }
    }
  }

  /// Returns the store to replace: the named one, or the backup's own.
  private func storePath(_ backup: StoredBackup, _ named: FilePath?, _ place: any BackupPlace) throws -> FilePath {
    if let named, named.components.count > 1 || named.isAbsolute || named.extension != nil { return named }
    // A moved home has taken the store along.
    if let present = place.owner?.present { return present }
    guard let path = backup.manifest?.store.path.path, path.isAbsolute else {
      throw BackupError(
        .request, operation: "restore the backup", detail: "backup \(backup.id) does not say where its store was",
        hint: "Name the store with --of, or another path with --to.")
    }
    return path
  }

  private func extract(
    _ restorer: BackupRestorer, _ backup: StoredBackup, _ path: FilePath, _ known: AppModel?,
    _ options: BackupRestorer.Options, _ line: ProgressLine, _ home: ChosenHome
  ) throws {
    var version: ManagedObjectModel?
    if case .coreData(let bundle) = known {
      let name = backup.manifest?.model?.version
      version = (bundle.versions.first { $0.name == name } ?? bundle.current).model
    }
    let report = try restorer.extract(
      EntitySelection(entities: entity, primaryKeys: primaryKeys), from: backup.id, to: path, model: version,
      options: options)
    line.clear()
    try output.print(report, report.text)
    if !report.cut.isEmpty || !report.missing.isEmpty || !report.isComplete { throw ExitStatus.doubtful }
  }

  private func show(
    _ report: RestoreReport, quarantined: QuarantinedStore?, before: StoredBackup? = nil, _ choice: BackupChoice,
    _ home: ChosenHome
  ) throws {
    try output.print(
      report.payload(quarantined: quarantined, before: before, choice, in: home),
      report.text(quarantined: quarantined, before: before, choice.backup) + choice.text)
    if !report.isComplete || report.damage(choice.backup) != nil { throw ExitStatus.doubtful }
  }

  private func show(_ preview: RestorePreview, _ choice: BackupChoice, _ path: FilePath, _ home: ChosenHome) throws {
    let id = choice.backup.id
    try output.print(
      JSON.Object(preview, ["backup": id, "store": PathText(path)]), preview.text(id, path) + choice.text)
    if !preview.isHarmless { throw ExitStatus.doubtful }
  }
}

struct TimeArgument: ExpressibleByArgument {
  var time: Timestamp

  init?(argument: String) {
    // A date means the end of that day.
    let text = argument.utf8.count == 10 ? "\(argument)T23:59:59Z" : argument
    guard let time = Timestamp(text) else { return nil }
    self.time = time
  }
}

extension RestoreReport {
  func payload(
    quarantined: QuarantinedStore?, before: StoredBackup?, _ choice: BackupChoice, in home: ChosenHome
  ) -> JSON.Object {
    JSON.Object(
      self,
      [
        "quarantined": quarantined.map { $0.payload(undo: $0.undo(home: home.pathBesidesStore, replacing: true)) },
        "backupBefore": before?.id, "passedOver": choice.passedOver,
        "damage": damage(choice.backup).map {
          ["code": $0.code, "words": $0.words, "hint": "Salvage it with: \(salvageCommand)"] as JSON.Object
        },
      ])
  }

  private var salvageCommand: String { "lazaret salvage \(shellQuoted(path)) -o OUT" }

  func text(quarantined: QuarantinedStore?, before: StoredBackup?, _ backup: StoredBackup) -> String {
    var lines = "Backup \(id) is restored at \(printable(path.string)): \(readableSize(bytes))"
    lines += values > 0 ? ", \(counted(Int64(values), "large value"))\n" : "\n"
    if let damage = damage(backup) {
      lines +=
        "  It is as it was when it was backed up, not sound: \(printable(damage.words)) [\(printable(damage.code))]\n"
      lines += "  Salvage it with: \(salvageCommand)\n"
    }
    if let quarantined { lines += "  What was there is in quarantine as \(quarantined.id).\n" }
    if let before { lines += "  It was backed up before as \(before.id).\n" }
    lines += lostText(blocks: lostBlocks, isSalvaged: !isContentRight, values: lostValues)
    if let salvage { lines += SalvageText.account(of: salvage) }
    if lacksMetadata {
      lines += "  It has no metadata, and the backup's manifest does not say what they were. "
      lines += "Give the app's model with --model\n"
    }
    return lines
  }
}

private func lostText(blocks: [RestoreReport.LostBlock], isSalvaged: Bool, values: [String]) -> String {
  var lines = ""
  if !blocks.isEmpty { lines += "  \(counted(Int64(blocks.count), "block")) of the backup lost\n" }
  if isSalvaged { lines += "  What is left was salvaged; look at it with: lazaret inspect\n" }
  for name in values.prefix(shownValues) { lines += "  The large value \(printable(name)) is lost\n" }
  let rest = values.count - shownValues
  if rest > 0 { lines += "  \(counted(Int64(rest), "more large value")) \(rest == 1 ? "is" : "are") lost\n" }
  return lines
}

/// The most external data shown; JSON lists all.
private let shownValues = 20

extension BackupChoice {
  var text: String { passedOver.map { "  Passed over \($0.id): it \(printable($0.words)).\n" }.joined() }
}

extension RestorePreview {
  func text(_ id: BackupIdentifier, _ path: FilePath) -> String {
    var lines = "Restoring \(id) over \(printable(path.string)) would change:\n"
    switch present {
    case .sound: break
    case .damaged: lines += "  The store is damaged; compared is what could be salvaged of it\n"
    case .missing: lines += "  There is no store now\n"
    }
    var table = TextTable(
      ["", "added", "changed", "lost", "unchanged"], numericColumns: [1, 2, 3, 4], tints: [2: .doubtful, 3: .bad],
      leavingOut: "entities without records")
    for entity in entities {
      table.append(
        printable(entity.name), grouped(entity.added), grouped(entity.changed), grouped(entity.lost),
        grouped(entity.unchanged))
    }
    for pairs in pairs {
      table.append(["pairs of \(pairs.words)", grouped(pairs.added), grouped(pairs.changed), grouped(pairs.lost), ""])
    }
    lines += table.text()
    for words in schemaWords + valueWords + remarks { lines += "  \(words)\n" }
    return lines
  }
}

extension ExtractionReport {
  var text: String {
    var lines = "Records of backup \(id) are in \(printable(path.string)):\n"
    for entity in entities { lines += "  \(printable(entity.name)): \(counted(entity.records, "record"))\n" }
    for cut in cut {
      lines += "  \(printable(cut.entity)).\(printable(cut.relationship)): "
      lines += "\(counted(cut.count, "reference")) to records that were left out cut\n"
    }
    if !missing.isEmpty { lines += "  Not there: \(missing.map(String.init).joined(separator: ", "))\n" }
    return lines + lostText(blocks: lostBlocks, isSalvaged: !isContentRight, values: lostValues)
  }
}
