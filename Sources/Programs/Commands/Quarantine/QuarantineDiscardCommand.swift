import ArgumentParser
import StoreCoordination

/// `lazaret quarantine discard`.
struct QuarantineDiscardCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "discard", abstract: "Removes a quarantined store for good.",
    usage: "lazaret quarantine discard <id> [--yes] [--home <dir>] [<options>]",
    discussion: """
      Asks first, unless told not to. There is no way back.

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
      home.tell(json: output.json)
      let quarantines = Quarantines(home: home.path)
      let store = try home.finding(quarantined: id.path, forBackup: "backup prune") { try quarantines.store(id.path) }
      if !yes {
        let size = store.receipt.map { readableSize($0.totalBytes) } ?? "of unknown size"
        try Confirmation.require(
          "Remove \(store.id), \(size), for good?", undone: "removed", json: output.json,
          or: CommandError(
            .notConfirmed, operation: "remove the quarantined store", path: store.files.main,
            detail: "it was not confirmed, and nothing was removed", hint: "Add --yes to remove it without being asked."
          ))
      }
      _ = try quarantines.discard(store.files.main)
      try output.print(
        home.told(["id": store.id, "discarded": true] as JSON.Object), "\(store.id) is gone for good.\n")
    }
  }
}
