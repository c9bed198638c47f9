import ArgumentParser
import Sending
import StoreCoordination

/// `lazaret outbox prune`: what nothing more happens to.
struct OutboxPruneCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "prune", abstract: "Removes what was sent or taken back more than 90 days ago.",
    discussion: """
      Also ends what killed runs left. Receipts that were noted with quarantined stores stay there. What waits, or was \
      refused, stays until it is sent or taken back.

      EXAMPLE
        lazaret outbox prune --home Stores

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let removed = try Outbox(home: try home.current().existing(to: "prune the outbox").path).settle()
      try output.print(["removed": removed], "\(counted(Int64(removed), "entry", "entries")) removed.\n")
    }
  }
}
