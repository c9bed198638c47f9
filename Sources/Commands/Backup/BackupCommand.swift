import ArgumentParser
import Backup
import Lazaret
import ObjectStorage
import Platform

struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Takes, lists, verifies, restores and prunes backups of stores.",
    discussion: """
      Backups lie in Backups/<store>/ of the home, each under b- and the time it was taken. Any gunzip opens the \
      .sqlite.gz of a full one.

      \(ExitStatus.help)
      """,
    subcommands: [
      BackupListCommand.self, BackupCreateCommand.self, BackupVerifyCommand.self, BackupRestoreCommand.self,
      BackupPruneCommand.self, BackupReleaseCommand.self, BackupUndeleteCommand.self,
    ],
    defaultSubcommand: BackupListCommand.self)
}

/// `lazaret backup release`: returns a backup to the retention rules.
struct BackupReleaseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Lets pruning drop a backup that is kept for records which later ones lack.",
    usage: "lazaret backup release <id> [--of <store>] [--home <dir>] [<options>]",
    discussion: """
      A migration that removes an entity keeps the store as it was, with the records of the entity, and pruning never drops \
      this original. Releasing it says that they are not needed any more: the rules judge it like any other backup from then \
      on. Where an entity has suddenly less than half of its records, the last backup before that is kept for thirty days; \
      releasing it says that the records were meant to go. Nothing of the backup is changed. To take the records out of it first, see: lazaret backup restore --entity

      Where nothing is to be released the exit code is 0 too.

      EXAMPLE
        lazaret backup release b-2026-11-21-10-11-12 --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a backup, such as b-2026-11-21-10-11-12.")
  var id: BackupArgument

  @OptionGroup var source: BackupPlaceOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let source = try source.chosen(to: "release the backup", json: output.json)
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

struct BackupUndeleteCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undelete", abstract: "Brings a dropped backup back out of the trash, or lists what is there.",
    usage: "lazaret backup undelete [<id>] [--of <store>] [--home <dir>] [<options>]",
    discussion: """
      What a backup cannot be restored without is brought back with it.

      EXAMPLE
        lazaret backup undelete --of Stores/App.sqlite

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a dropped backup; without one, the trash is listed.")
  var id: BackupArgument?

  @OptionGroup var source: BackupPlaceOptions
  @OptionGroup var output: OutputOptions

  private struct Listing: Encodable {
    struct Trashed: Encodable {
      var id: String
      var place: PlaceLocation
      var dropped: String?
      var reasons: [String]
      var bytes: Int64
      var whole: Bool
    }
    var trash: [Trashed]
  }

  func run() throws {
    try report(json: output.json) {
      let source = try source.chosen(to: "look into the trash", json: output.json)
      guard let id else { return try list(source) }
      let restored = try source.home.finding(backup: id.id) {
        try BackupPruner(of: try source.place()).undelete(id.id)
      }
      try output.print(
        ["restored": restored],
        "Back among the backups: \(restored.map(\.description).joined(separator: ", "))\n")
    }
  }

  private func list(_ source: ChosenBackups) throws {
    var listing = Listing(trash: [])
    for place in try source.places() {
      listing.trash += try BackupPruner(of: place).trash().map { backup in
        Listing.Trashed(
          id: backup.id.description, place: place.shownLocation, dropped: backup.record?.date,
          reasons: backup.record?.reasons ?? [], bytes: backup.bytes, whole: backup.isWhole)
      }
    }
    if output.json {
      try Terminal.standardOutput.write(json: listing)
    } else if listing.trash.isEmpty {
      Terminal.standardOutput.write(
        source.storage.map { "The trash is empty: \(printable($0.location))\n" }
          ?? "The trash of the home is empty: \(source.home.words)\n")
    } else {
      var table = TextTable(["backup", "dropped", "size", "why"], numericColumns: [2], wrapsLast: true)
      for backup in listing.trash {
        table.append([
          backup.id, backup.dropped.map { printable($0) } ?? "?", readableSize(backup.bytes),
          (backup.whole ? "" : "not whole; ") + backup.reasons.map { printable($0) }.joined(separator: ", "),
        ])
      }
      Terminal.standardOutput.write(table.text(indent: ""))
    }
  }
}
