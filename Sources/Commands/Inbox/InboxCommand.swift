import ArgumentParser
import Inbox
import Platform

struct InboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "inbox",
    abstract: "Says who may send bundles here, and which are kept; lazaret serve --inbox receives them.",
    discussion: ExitStatus.help,
    subcommands: [InboxTokenCommand.self, InboxPruneCommand.self, InboxRemovedCommand.self, InboxBatchCommand.self])
}

struct InboxTokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "token", abstract: "Makes, lists and revokes the tokens of senders.", discussion: ExitStatus.help,
    subcommands: [InboxTokenNewCommand.self, InboxTokenListCommand.self, InboxTokenRevokeCommand.self],
    defaultSubcommand: InboxTokenListCommand.self)
}

struct InboxTokenNewCommand: Verb {
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

  func perform() throws {
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

struct InboxTokenListCommand: Verb {
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

  func perform() throws {
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

struct InboxTokenRevokeCommand: Verb {
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

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "revoke the token").path }
    try records.revokeSender(name, at: Surroundings.machine.now())
    try output.print(["sender": name, "revoked": true] as JSON.Object, "\(printable(name)) cannot send any more.\n")
  }
}
