import ArgumentParser
import Lazaret

/// `lazaret quarantine list`.
struct QuarantineListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists quarantined stores, newest first.",
    discussion: """
      Without a place, lists what the home's catalogue knows; with a store or a folder, what lies in Incompatible/ beside \
      or in it.

      \(ExitStatus.help)
      """)

  @Argument(help: "A store, or a folder with stores.")
  var place: PathArgument?

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  private struct Listing: Encodable {
    var stores: [QuarantinedStoreJSON]
  }

  func run() throws {
    try report(json: output.json) {
      let quarantines = Quarantines(home: home.path)
      let stores = try place.map { try quarantines.stores(at: $0.path) } ?? quarantines.stores()
      if output.json {
        Terminal.standardOutput.write(
          JSONText.pretty(Listing(stores: try stores.map { try QuarantinedStoreJSON($0, in: quarantines) })))
      } else if stores.isEmpty {
        Terminal.standardOutput.write("No store is in quarantine here. Another home is given with --home.\n")
      } else {
        var table = TextTable(["id", "came from", "size", "salvage", "why"], numericColumns: [2])
        for store in stores {
          table.append([
            store.id, store.receipt.map { printable($0.originalPath.text) } ?? "?",
            store.receipt.map { readableSize($0.totalBytes) } ?? "?",
            store.receipt?.salvage?.word ?? "–",
            store.receipt.map { printable($0.reason.code) } ?? "its receipt cannot be read",
          ])
        }
        Terminal.standardOutput.write(table.text(indent: ""))
        for store in stores {
          guard let place = try quarantines.interruptedInstallation(of: store) else { continue }
          Terminal.standardOutput.write(
            """

            \(store.id): its salvaged store was being put where nothing is now: \(printable(place.string))
              End that with: lazaret quarantine salvage \(store.id) --model MODEL --install --to \(shellQuoted(place))

            """)
        }
      }
    }
  }
}
