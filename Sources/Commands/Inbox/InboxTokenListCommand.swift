import ArgumentParser
import Inbox
import StoreCoordination

/// `lazaret inbox token list`.
struct InboxTokenListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the senders; never their tokens.", discussion: ExitStatus.help)

  @OptionGroup var home: HomeOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let home = try home.current().existing(to: "list the senders")
      let inbox = try Inbox(home: home.path)
      let usage = try inbox.records.usage()
      let senders = try inbox.records.senders().map { InboxSenderJSON($0, used: usage[$0.name] ?? 0) }
      if output.json {
        Terminal.standardOutput.write(JSONText.pretty(["senders": senders]))
        return
      }
      guard !senders.isEmpty else {
        Terminal.standardOutput.write(
          "No sender has a token for the home yet: \(home.words). Make one: lazaret inbox token new NAME\(home.option)\n"
        )
        return
      }
      var table = TextTable(["SENDER", "SINCE", "USED", "QUOTA", "STATE"], numericColumns: [2, 3])
      for sender in senders {
        table.append([
          printable(sender.name), String(sender.created.prefix(10)), readableSize(sender.used),
          readableSize(sender.quota), sender.revoked.map { "revoked \($0.prefix(10))" } ?? "may send",
        ])
      }
      Terminal.standardOutput.write(table.text())
    }
  }
}

/// A sender as the verbs print it.
struct InboxSenderJSON: Encodable {
  var name: String
  var quota: Int64
  var used: Int64
  var created: String
  var revoked: String?

  init(_ sender: InboxSender, used: Int64) {
    name = sender.name
    quota = sender.quota
    self.used = used
    created = sender.created.rfc3339
    revoked = sender.revoked?.rfc3339
  }
}
