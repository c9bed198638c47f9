import ArgumentParser
import Foundation
import Inbox
import Platform
import SystemPackage

struct InboxCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "inbox", abstract: "Says who may send bundles here, and which are kept; lazaret serve --inbox receives them.",
    subcommands: [InboxTokenCommand.self, InboxPruneCommand.self, InboxRemovedCommand.self, InboxBatchCommand.self])
}

struct InboxTokenCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "token", abstract: "Makes, lists and revokes the tokens of senders.",
    subcommands: [InboxTokenNewCommand.self, InboxTokenListCommand.self, InboxTokenRevokeCommand.self],
    defaultSubcommand: InboxTokenListCommand.self)
}

struct InboxTokenNewCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "new", abstract: "Lets a sender send bundles, and prints the token, once.",
    usage: "lazaret inbox token new <name> [--quota <size>] [--home <dir> | --database <url>] [<options>]",
    discussion: """
      Only the token's SHA-256 is kept: it cannot be shown again. Give it to the sender by a way that no one else reads.
      """, examples: "lazaret inbox token new \"Garage 3\" --home Support --quota 20GiB")

  @Argument(help: "What the sender is called, on pages and in receipts.") var name: String

  @Option(help: .text("The most bytes of bundles that are kept of this sender.", "size"))
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
    verb: "list", abstract: "Lists the senders; never their tokens.",
    usage: "lazaret inbox token list [--home <dir> | --database <url>] [<options>]",
    examples: "lazaret inbox token list --home Support")

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "list the senders").path }
    let usage = try records.usage()
    let senders = try records.senders()
    try output.print(["senders": senders.map { JSON.Object($0, ["used": usage[$0.name] ?? 0]) }], text(senders, usage))
  }

  private func text(_ senders: [InboxSender], _ usage: [String: Int64]) throws -> String {
    guard !senders.isEmpty else {
      guard try database.address() == nil else {
        return "No sender has a token in the database yet. Make one: lazaret inbox token new NAME --database URL\n"
      }
      let (words, option) = (home.current().words, home.current().option)
      return "No sender has a token for the home yet: \(words). Make one: lazaret inbox token new NAME\(option)\n"
    }
    var table = TextTable(["sender", "since", "used", "quota", "state"], numericColumns: [2, 3])
    for sender in senders {
      table.append(
        printable(sender.name), String(sender.created.rfc3339.prefix(10)), readableSize(usage[sender.name] ?? 0),
        readableSize(sender.quota), sender.revoked.map { "revoked \($0.rfc3339.prefix(10))" } ?? "may send")
    }
    return table.text()
  }
}

struct InboxTokenRevokeCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "revoke", abstract: "Revokes a sender's token; what was sent stays.",
    usage: "lazaret inbox token revoke <name> [--home <dir> | --database <url>] [<options>]",
    examples: "lazaret inbox token revoke \"Garage 2\" --home Support")

  @Argument(help: "What the sender is called.") var name: String

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "revoke the token").path }
    try records.revokeSender(name, at: Surroundings.machine.now())
    try output.print(["sender": name, "revoked": true] as JSON.Object, "\(printable(name)) cannot send any more.\n")
  }
}

struct InboxPruneCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "prune", abstract: "Removes the bundles that no rule keeps, for good.",
    usage: "lazaret inbox prune [--keep-days <days>] [--keep-last <n>] [--keep-bytes <size>] [<options>]",
    discussion: """
      A bundle stays if any rule keeps it, or none is about it: --keep-last is about bundles with a damage. --keep-bytes \
      comes last, and removes the oldest bundles that the other rules keep. The newest bundle of each damage stays, and so \
      does a bundle that is being worked on or waits for that.

      A bundle goes with what was unpacked and salvaged of it. That it was removed, when and by which rule, stays known: \
      lazaret inbox removed. That its damage was seen stays known too.

      It works beside lazaret serve --inbox, which takes the same rules and keeps to them every hour.
      """, examples: "lazaret inbox prune --home Support --keep-days 90 --keep-last 5 --dry-run")

  @OptionGroup(title: "Rules") var rules: InboxRetentionOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions

  @Flag(help: "Only tell what would be removed, and why.") var dryRun = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard rules.rules != nil else { throw ValidationError("Give --keep-days, --keep-last or --keep-bytes.") }
  }

  func perform() throws {
    guard let rules = rules.rules else { throw ExitStatus.usage }
    let inbox = try database.inbox(in: home, to: "prune the inbox")
    let result = try dryRun ? inbox.retentionPlan(rules) : inbox.prune(rules)
    try output.print(
      [
        "dryRun": dryRun, "removed": result.removed, "bytes": result.bytes, "spared": result.spared,
        "failures": result.failures,
        "kept": Dictionary(
          uniqueKeysWithValues: InboxKeepingReason.allCases.map { ($0.rawValue, result.kept[$0] ?? 0) }),
      ] as JSON.Object, content: text(result))
    if !result.failures.isEmpty { throw ExitStatus.doubtful }
  }

  private func text(_ result: InboxPruning) -> String {
    var text = ""
    if !result.removed.isEmpty { text += result.removed.table }
    let would = dryRun ? "would be " : ""
    text += "  \(counted(Int64(result.removed.count), "bundle")) \(would)removed (\(readableSize(result.bytes)))\n"
    for reason in InboxKeepingReason.allCases {
      guard let count = result.kept[reason], count > 0 else { continue }
      text += "  \(counted(Int64(count), "bundle")) kept: \(reason.words)\n"
    }
    if !result.spared.isEmpty {
      text +=
        "  \(counted(Int64(result.spared.count), "bundle")) left alone: work on it began meanwhile, or it was removed\n"
    }
    for failure in result.failures {
      text += "  the files of \(failure.bundle) cannot be removed now: \(printable(failure.words))\n"
    }
    return text
  }
}

extension InboxKeepingReason {
  fileprivate var words: String {
    switch self {
    case .work: "being worked on, or waiting for that"
    case .newest: "the newest of its damage"
    case .days: "arrived within the days that are kept"
    case .last: "among the last of its damage that are kept"
    case .none: "no rule is about it"
    }
  }
}

struct InboxRemovedCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "removed", abstract: "Lists the bundles that were removed: when, and by which rule.",
    usage: "lazaret inbox removed [--limit <n>] [--home <dir> | --database <url>] [<options>]",
    discussion: "The latest come first. A bundle that was discarded on the pages is there too.",
    examples: "lazaret inbox removed --home Support")

  @Option(help: .text("The most that are listed.", "n")) var limit = 100

  @Option(help: .text("Only those before this number, as \"next\" of --json says.", "number"))
  var after: Int64?

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func validate() throws {
    guard (1...10_000).contains(limit) else { throw ValidationError("--limit is from 1 to 10000.") }
  }

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "list what was removed").path }
    let found = try records.removals(after: after, limit: limit + 1)
    let removals = Array(found.prefix(limit))
    let next = found.count > removals.count ? removals.last?.number : nil
    var text = removals.isEmpty ? "No bundle was removed.\n" : removals.table
    if let next { text += "  There are earlier ones: lazaret inbox removed --after \(next)\n" }
    try output.print(["removed": removals, "next": JSON.orNull(next)] as JSON.Object, content: text)
  }
}

extension [InboxRemoval] {
  fileprivate var table: String {
    var table = TextTable(["bundle", "removed", "rule", "sender", "arrived", "size"], numericColumns: [5])
    for removal in self {
      table.append(
        removal.bundle, String(removal.date.prefix(10)), removal.rule.words, printable(removal.sender),
        String(removal.arrived.prefix(10)), readableSize(removal.bytes))
    }
    return table.text()
  }
}

extension InboxRemoval.Rule {
  fileprivate var words: String {
    switch self {
    case .days: "too old"
    case .last: "enough newer ones"
    case .bytes: "too many bytes"
    case .discarded: "discarded"
    }
  }
}

struct InboxRetentionOptions: ParsableArguments {
  @Option(help: .text("Keep what arrived within so many days.", "days")) var keepDays: Int?

  @Option(help: .text("Keep the newest so many bundles of each damage.", "n")) var keepLast: Int?

  @Option(
    help: .text(
      "Keep no more than so many bytes, with what was unpacked and salvaged; the oldest bundles go first.", "size"))
  var keepBytes: ByteCount?

  @Flag(
    name: .customLong("no-keep-one-of-each"),
    help: "Let the rules remove the newest bundle of a damage too, which stays otherwise.")
  var removesNewest = false

  func validate() throws {
    if let keepDays, !(0...36_500).contains(keepDays) { throw ValidationError("--keep-days is from 0 to 36500.") }
    if let keepLast, !(0...10_000).contains(keepLast) { throw ValidationError("--keep-last is from 0 to 10000.") }
  }

  var rules: InboxRetention? {
    let rules = InboxRetention(days: keepDays, last: keepLast, bytes: keepBytes?.bytes, keepsOneOfEach: !removesNewest)
    return rules.hasRules ? rules : nil
  }
}

struct InboxBatchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    verb: "batch", abstract: "Salvages the bundles of a damage again, and says what got better.",
    subcommands: [InboxBatchNewCommand.self, InboxBatchShowCommand.self])
}

struct InboxBatchNewCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "new", abstract: "Begins to salvage the bundles of a damage again.",
    usage: "lazaret inbox batch new <damage> [--home <dir> | --database <url>] [<options>]",
    discussion: """
      Takes the bundles of the damage whose last result is of an earlier version of this software. Their salvages wait for \
      the workers of lazaret serve --inbox or lazaret work, which have to be of this version. Earlier results stay; the best \
      is the one to install.
      """)

  @Argument(help: "The damage: its twelve digits, as the pages show them.") var damage: String

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  func perform() throws {
    let inbox = try database.inbox(in: home, to: "salvage its bundles again")
    guard try inbox.records.group(damage) != nil else {
      throw InboxError(.notFound, operation: "salvage the bundles again", detail: "no such damage was seen")
    }
    let batch = try inbox.salvageAgain(damage)
    try output.print(
      ["batch": JSON.orNull(batch)] as JSON.Object,
      batch.map { batch in
        "Batch \(batch.number): \(counted(Int64(batch.total), "bundle")) will be salvaged again with version "
          + "\(batch.version). See: lazaret inbox batch show \(batch.number)\n"
      } ?? "Every store of this damage was salvaged by version \(LibraryVersion.current).\n")
  }
}

struct InboxBatchShowCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "show", abstract: "Says how far a batch is, and what got better and what worse.",
    usage: "lazaret inbox batch show <number> [--home <dir> | --database <url>] [<options>]",
    discussion: "Exits with 2 where a store came out worse, or mixed.")

  @Argument(help: "The number of the batch.") var number: Int64

  @Option(help: "Only bundles with this change: worse, mixed, better, same or first.")
  var change: SalvageChange?

  @Option(help: .text("Only bundles behind this one, as \"next\" of --json says.", "bundle"))
  var after: String?

  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions
  @OptionGroup var output: OutputOptions

  private static let maximum = 1000

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "look at the batch").path }
    guard let batch = try records.batch(number) else {
      throw InboxError(.notFound, operation: "look at the batch", detail: "there is no such batch")
    }
    let found = try records.items(of: number, change: change, after: after, limit: Self.maximum + 1)
    let items = Array(found.prefix(Self.maximum))
    let next = found.count > items.count ? items.last?.bundle : nil
    try output.print(
      ["batch": batch, "items": items, "next": JSON.orNull(next)] as JSON.Object, content: text(batch, items, next))
    if batch.changes[.worse, default: 0] + batch.changes[.mixed, default: 0] > 0 { throw ExitStatus.doubtful }
  }

  private func text(_ batch: SalvageBatch, _ items: [SalvageBatchItem], _ next: String?) -> String {
    var table = TextTable(
      ["bundle", "change", "recovered", "doubtful", "lost", "before", "doubtful", "lost"],
      numericColumns: [2, 3, 4, 5, 6, 7])
    for item in items {
      table.append(
        [item.bundle, item.change?.rawValue ?? "not done"] + Self.cells(item.after) + Self.cells(item.before))
    }
    var text = items.isEmpty ? "" : table.text()
    text += "  \(grouped(batch.total - batch.remaining)) of \(counted(Int64(batch.total), "bundle")) ended; "
    text += SalvageChange.allCases.map { "\(grouped(batch.changes[$0] ?? 0)) \($0.rawValue)" }.joined(separator: ", ")
    text += ", \(grouped(batch.failed)) failed, \(grouped(batch.unknown)) unknown\n"
    text += "  recovered \(grouped(batch.before.recovered)) before, \(grouped(batch.after.recovered)) now; "
    text += "doubtful \(grouped(batch.before.doubtful)) and \(grouped(batch.after.doubtful)); "
    text += "lost \(grouped(batch.before.lost)) and \(grouped(batch.after.lost))\n"
    if let next { text += "  There are more: --after \(next)\n" }
    return text
  }

  private static func cells(_ count: SalvageCount?) -> [String] {
    guard let count else { return ["–", "–", "–"] }
    return [grouped(count.recovered), grouped(count.doubtful), grouped(count.lost)]
  }
}

extension SalvageChange: ExpressibleByArgument {}

struct DatabaseOptions: ParsableArguments {
  static let variable = "LAZARET_DATABASE"

  @Option(
    help: .text(
      "The PostgreSQL database with the inbox's records: postgresql://HOST/DATABASE, without a password. If not given, what LAZARET_DATABASE says, else a file in the home.",
      "url"))
  var database: String?

  func validate() throws {
    do throws(InboxError) {
      if let database { _ = try PostgresAddress(database, from: .commandLine) }
    } catch {
      // Do not repeat the address: it may contain a password.
      throw ValidationError("--database: \(error.detail). \(error.hint)")
    }
  }

  /// - Throws: `inbox-address` for the environment's.
  func address() throws -> PostgresAddress? {
    if let database { return try PostgresAddress(database, from: .commandLine) }
    guard let text = ProcessInfo.processInfo.environment[Self.variable], !text.isEmpty else { return nil }
    return try PostgresAddress(text, from: .environment)
  }

  func records(in home: () throws -> FilePath) throws -> any InboxRecords {
    if let address = try address() { return try PostgresDatabase(address, connections: 1).records }
    return try Inbox(home: home()).records
  }

  /// - Parameter operation: an infinitive phrase for errors.
  func inbox(in home: HomeOptions, to operation: String) throws -> Inbox {
    let home = try FileSystem().realPath(home.current().existing(to: operation).path)
    guard let address = try address() else { return try Inbox(home: home) }
    return try Inbox(home: home, database: PostgresDatabase(address, connections: 1), makesFolders: false)
  }
}
