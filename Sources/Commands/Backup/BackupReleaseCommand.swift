import ArgumentParser
import Backup
import Lazaret
import Platform

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
