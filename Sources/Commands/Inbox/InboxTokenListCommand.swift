import ArgumentParser
import Inbox
import Platform

struct InboxTokenListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "Lists the senders; never their tokens.",
    usage: "lazaret inbox token list [--home <dir> | --database <url>] [<options>]",
    discussion: """
      EXAMPLE
        lazaret inbox token list --home Support

      \(ExitStatus.help)
      """)

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func run() throws {
    try report(json: output.json) {
      let records = try database.records { try home.current().existing(to: "list the senders").path }
      let usage = try records.usage()
      let senders = try records.senders()
      if output.json {
        let payload = senders.map { JSON.Object($0, ["used": usage[$0.name] ?? 0]) }
        try Terminal.standardOutput.write(json: ["senders": payload])
        return
      }
      guard !senders.isEmpty else {
        if try database.address() == nil {
          let home = home.current()
          Terminal.standardOutput.write(
            "No sender has a token for the home yet: \(home.words). Make one: lazaret inbox token new NAME\(home.option)\n"
          )
        } else {
          Terminal.standardOutput.write(
            "No sender has a token in the database yet. Make one: lazaret inbox token new NAME --database URL\n")
        }
        return
      }
      var table = TextTable(["sender", "since", "used", "quota", "state"], numericColumns: [2, 3])
      for sender in senders {
        table.append([
          printable(sender.name), String(sender.created.rfc3339.prefix(10)), readableSize(usage[sender.name] ?? 0),
          readableSize(sender.quota), sender.revoked.map { "revoked \($0.rfc3339.prefix(10))" } ?? "may send",
        ])
      }
      Terminal.standardOutput.write(table.text())
    }
  }
}
