import ArgumentParser
import ObjectStorage
import Platform
import SupportBundle

struct OutboxCancelCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "cancel", abstract: "Takes a bundle back that is not sent yet.",
    usage: "lazaret outbox cancel <id> [--token-file <file>] [--home <dir>] [<options>]",
    discussion: """
      The receiver is told to drop what it has of it; one that cannot be reached drops it in its own time. The bundle \
      in the outbox is deleted, the file that it was made from stays.

      \(ExitStatus.help)
      """)

  @Argument(help: "The entry's name, or how it or its SHA-256 begins.")
  var id: String

  @OptionGroup var token: TokenOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let home = try home.current().existing(to: "cancel the entry of the outbox")
      let outbox = Outbox(home: home.path)
      let entry = try home.sending { try outbox.entry(id) }
      let isRemembered = token.tokenFile == nil && entry.tokenFile != nil
      let given = isRemembered ? nil : try token.token()
      let sender = Sender(of: outbox, over: CurlTransport(idleSeconds: 20))
      let (cancelled, isReceiverTold) = try sender.cancel(entry.id, as: given)
      if output.json {
        let payload: JSON.Object = ["entry": cancelled, "receiverTold": isReceiverTold]
        try Terminal.standardOutput.write(json: payload)
      } else {
        let rest = isReceiverTold ? "" : " The receiver could not be told; it drops what it has in its own time."
        Terminal.standardOutput.write("\(cancelled.id) was taken back.\(rest)\n")
      }
    }
  }
}
