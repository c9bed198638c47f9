import ArgumentParser
import Lazaret
import Platform

struct QuarantineDiscardCommand: ParsableCommand {
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

  func run() throws {
    try report(json: output.json) {
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
}
