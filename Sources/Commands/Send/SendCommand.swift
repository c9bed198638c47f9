import ArgumentParser
import ObjectStorage
import Platform
import SupportBundle

struct SendCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "send", abstract: "Sends a bundle to support, by way of the outbox.",
    usage: "lazaret send <bundle> --to <url> [--put] [--token-file <file>] [--home <dir>] [<options>]",
    discussion: """
      Shows what would be sent, with its SHA-256, and asks; what is sent is that file and no other. It goes in parts by the \
      tus protocol, so that a lost connection costs little, or in one piece by PUT. Until it is there it waits in \
      Outbox/ of \
      the home, and nothing that has arrived is sent again. The receiver's receipt is noted with the quarantined store.

      Only https is used, http to this machine alone; redirects to another host are not followed. The token is \
      not kept. Ctrl-C stops after the part that is on its way; go on with: lazaret outbox send

      EXAMPLE
        lazaret send App.lazaret.tar.gz.age --to https://support.example.com/inbox \\
          --token-file token --home Stores

      \(ExitStatus.help)
      """)

  @Argument(help: "The bundle that lazaret export wrote.")
  var bundle: PathArgument

  @Option(help: ArgumentHelp("The receiver's address.", valueName: "url"))
  var to: String

  @Flag(help: "Send it by PUT to that very address, in one piece.")
  var put = false

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions

  @Flag(help: "Do not ask.")
  var yes = false

  @OptionGroup var persistence: PersistenceOptions

  @Flag(help: "Only put it into the outbox.")
  var noSend = false

  @Option(
    help: ArgumentHelp(
      "How much the outbox may hold, such as 500MB or 4GiB; 2GiB if not given.", valueName: "size"))
  var outboxLimit: ByteCount?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard !noSend || !persistence.wait else { throw ValidationError("--no-send and --wait contradict each other.") }
  }

  func run() throws {
    try report(json: output.json) {
      let receiver = try CommandLineSlip.telling { try ReceiverAddress(to) }
      let token = try token.token()
      let home = home.current()
      let outbox = Outbox(home: home.path, limit: outboxLimit?.bytes ?? Outbox.usualLimit)
      let line = ProgressLine()
      let preview = try BundlePreview(of: bundle.path, home: home.path) { line.show("Summing up", $0, of: $1, .bytes) }
      line.clear()
      let presentation = SendingPresentation(json: output.json)
      presentation.show(preview, to: receiver)
      let method: OutboxEntry.Method = put ? .put : .tus
      if try outbox.sent(preview, to: receiver, by: method) == nil {
        if !yes {
          try Confirmation.require(
            noSend ? "Put it into the outbox?" : "Send it?", undone: noSend ? "put into it" : "sent", json: output.json,
            or: CommandError(
              .notConfirmed, operation: "send the bundle", path: bundle.path,
              detail: "it was not confirmed, and nothing was sent", hint: "Add --yes to send it without being asked."))
        }
      }
      let entry = try outbox.add(preview, to: receiver, by: method, tokenFile: self.token.tokenFile?.path)
      guard !noSend else {
        try presentation.tell(entry, in: home)
        return
      }
      try outbox.settle()
      let sender = Sender(of: outbox, over: CurlTransport(), options: persistence.options)
      let outcome = try home.sending { try sender.sendShowing(entry.id, as: token, to: receiver) }
      try presentation.tell(outbox.entry(entry.id), outcome)
    }
  }
}
