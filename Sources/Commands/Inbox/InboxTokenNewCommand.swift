import ArgumentParser
import Inbox
import Platform

struct InboxTokenNewCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "new", abstract: "Lets a sender send bundles, and prints the token, once.",
    usage: "lazaret inbox token new <name> [--quota <size>] [--home <dir> | --database <url>] [<options>]",
    discussion: """
      Only the token's SHA-256 is kept: it cannot be shown again. Give it to the sender by a way that no one else reads.

      EXAMPLE
        lazaret inbox token new "Garage 3" --home Support --quota 20GiB

      \(ExitStatus.help)
      """)

  @Argument(help: "What the sender is called, on pages and in receipts.")
  var name: String

  @Option(help: ArgumentHelp("The most bytes of bundles that are kept of this sender.", valueName: "size"))
  var quota = ByteCount(10 << 30)

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let records = try database.records { home.current().path }
      let token = try records.addSender(name, quota: quota.bytes, at: Surroundings.machine.now())
      try output.print(
        ["sender": name, "token": token.text, "quota": quota.bytes] as JSON.Object,
        content: """
          The token of \(printable(name)), which is not shown again:

            \(token.text)


          """)
    }
  }
}
