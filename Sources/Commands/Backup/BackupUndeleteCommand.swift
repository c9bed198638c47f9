import ArgumentParser
import Backup
import ObjectStorage
import Platform

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
