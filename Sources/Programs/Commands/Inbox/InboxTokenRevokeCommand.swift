import ArgumentParser
import Inbox
import StoreCoordination

/// `lazaret inbox token revoke`.
struct InboxTokenRevokeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "revoke", abstract: "Revokes a sender's token; what was sent stays.",
    usage: "lazaret inbox token revoke <name> [--home <dir> | --database <url>] [<options>]",
    discussion: """
      EXAMPLE
        lazaret inbox token revoke "Garage 2" --home Support

      \(ExitStatus.help)
      """)

  @Argument(help: "What the sender is called.")
  var name: String

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let records = try database.records { try home.current().existing(to: "revoke the token").path }
      try records.revokeSender(name, at: Surroundings.machine.now())
      try output.print(["sender": name, "revoked": true] as JSON.Object, "\(printable(name)) cannot send any more.\n")
    }
  }
}
