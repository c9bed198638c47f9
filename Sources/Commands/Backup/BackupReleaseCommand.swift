import ArgumentParser
import Lazaret

/// `lazaret backup release`: lets the rules judge an original that holds records which its migration removed.
struct BackupReleaseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Lets pruning drop an original with records that its migration removed.",
    discussion: """
      A migration that removes an entity keeps the store as it was, with the records of the entity, and pruning never drops \
      this original. Releasing it says that they are not needed any more: the rules judge it like any other backup from then \
      on. Nothing of the original is changed. To take the records out of it first, see: lazaret backup restore --entity

      Where nothing is to be released the exit code is 0 too.

      EXAMPLE
        lazaret backup release b-2026-11-21-10-11-12

      \(ExitStatus.help)
      """)

  @Argument(help: "The name of a backup, such as b-2026-11-21-10-11-12.")
  var id: BackupArgument

  @OptionGroup var source: BackupPlaceOptions
  @OptionGroup var output: OutputOptions

  private struct Released: Encodable {
    var backup: String
    var released: Bool
    var onlyHere: BackupJSON.OnlyHere?
  }

  func run() throws {
    try report(json: output.json) {
      let source = try source.chosen(to: "release the backup", json: output.json)
      let note = try source.home.finding(backup: id.id, forQuarantined: "quarantine release ID") {
        try source.backups.release(id.id, in: try source.place(with: id.id))
      }
      Terminal.standardOutput.write(
        output.json
          ? JSONText.pretty(
            source.home.told(
              Released(
                backup: id.id.description, released: note != nil, onlyHere: note.map { BackupJSON.OnlyHere($0) })))
          : text(note))
    }
  }

  private func text(_ note: OnlyHereNote?) -> String {
    guard let note else {
      return "There is nothing to release: backup \(id.id) was released before, or holds no records that were noted.\n"
    }
    let holding = note.records.map { "It holds \($0) that its migration removed. " } ?? ""
    return "Backup \(id.id) is released. \(holding)The rules of pruning judge it like any other from now on.\n"
  }
}
