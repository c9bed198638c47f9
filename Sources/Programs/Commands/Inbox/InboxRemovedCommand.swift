import ArgumentParser
import Inbox
import StoreCoordination

/// `lazaret inbox removed`.
struct InboxRemovedCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "removed", abstract: "Lists the bundles that were removed: when, and by which rule.",
    usage: "lazaret inbox removed [--limit <n>] [--home <dir> | --database <url>] [<options>]",
    discussion: """
      The latest come first. A bundle that was discarded on the pages is there too.

      EXAMPLE
        lazaret inbox removed --home Support

      \(ExitStatus.help)
      """)

  @Option(help: ArgumentHelp("The most that are listed.", valueName: "n"))
  var limit = 100

  @Option(help: ArgumentHelp("Only those before this number, as \"next\" of --json says.", valueName: "number"))
  var after: Int64?

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...10_000).contains(limit) else { throw ValidationError("--limit is from 1 to 10000.") }
  }

  func run() throws {
    try report(json: output.json) {
      let records = try database.records { try home.current().existing(to: "list what was removed").path }
      let found = try records.removals(after: after, limit: limit + 1)
      let removals = Array(found.prefix(limit))
      let next = found.count > removals.count ? removals.last?.number : nil
      var text = removals.isEmpty ? "No bundle was removed.\n" : InboxRemovalTable(removals).text
      if let next { text += "  There are earlier ones: lazaret inbox removed --after \(next)\n" }
      try output.print(["removed": removals, "next": JSON.orNull(next)] as JSON.Object, content: text)
    }
  }
}
