import ArgumentParser
import ObjectStorage
import Sending
import StoreCoordination

/// `lazaret outbox retry`: one entry, whatever ended its last try.
struct OutboxRetryCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retry", abstract: "Sends one bundle of the outbox now, whatever ended its last try.",
    usage: "lazaret outbox retry <id> [--to <url>] [--token-file <file>] [--wait] [<options>]",
    discussion: ExitStatus.help)

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.")
  var id: String

  @Option(
    help: ArgumentHelp(
      "The whole address, where it has a secret part behind its path, which is not kept.", valueName: "url"))
  var to: String?

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var persistence: PersistenceOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let address = try to.map { text in try CommandLineSlip.telling { try ReceiverAddress(text) } }
      let home = try home.current().existing(to: "send what waits in the outbox")
      let outbox = Outbox(home: home.path)
      try outbox.settle()
      let entry = try home.sending { try outbox.entry(id) }
      // A file that is named goes before the one that is remembered, and that before the environment.
      let isRemembered = token.tokenFile == nil && entry.tokenFile != nil
      let given = isRemembered ? nil : try token.token()
      let sender = Sender(of: outbox, over: CurlTransport(), options: persistence.options)
      let outcome = try home.sending { try sender.sendShowing(entry.id, as: given, to: address) }
      try SendingPresentation(json: output.json).tell(outbox.entry(entry.id), outcome)
    }
  }
}
