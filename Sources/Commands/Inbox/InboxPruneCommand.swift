import ArgumentParser
import Inbox
import Lazaret
import Platform

struct InboxPruneCommand: Verb {
  static let configuration = CommandConfiguration(
    commandName: "prune", abstract: "Removes the bundles that no rule keeps, for good.",
    usage: "lazaret inbox prune [--keep-days <days>] [--keep-last <n>] [--keep-bytes <size>] [<options>]",
    discussion: """
      A bundle stays if any rule keeps it, or none is about it: --keep-last is about bundles with a damage. --keep-bytes \
      comes last, and removes the oldest bundles that the other rules keep. The newest bundle of each damage stays, and so \
      does a bundle that is being worked on or waits for that.

      A bundle goes with what was unpacked and salvaged of it. That it was removed, when and by which rule, stays known: \
      lazaret inbox removed. That its damage was seen stays known too.

      It works beside lazaret serve --inbox, which takes the same rules and keeps to them every hour.

      EXAMPLE
        lazaret inbox prune --home Support --keep-days 90 --keep-last 5 --dry-run

      \(ExitStatus.help)
      """)

  @OptionGroup(title: "Rules") var rules: InboxRetentionOptions
  @OptionGroup var home: HomeOptions
  @OptionGroup var database: DatabaseOptions

  @Flag(help: "Only tell what would be removed, and why.")
  var dryRun = false

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
    if !result.removed.isEmpty { text += InboxRemovalTable(result.removed).text }
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

  func perform() throws {
    let records = try database.records { try home.current().existing(to: "list what was removed").path }
    let found = try records.removals(after: after, limit: limit + 1)
    let removals = Array(found.prefix(limit))
    let next = found.count > removals.count ? removals.last?.number : nil
    var text = removals.isEmpty ? "No bundle was removed.\n" : InboxRemovalTable(removals).text
    if let next { text += "  There are earlier ones: lazaret inbox removed --after \(next)\n" }
    try output.print(["removed": removals, "next": JSON.orNull(next)] as JSON.Object, content: text)
  }
}

struct InboxRemovalTable {
  let text: String

  init(_ removals: [InboxRemoval]) {
    var table = TextTable(["bundle", "removed", "rule", "sender", "arrived", "size"], numericColumns: [5])
    for removal in removals {
      table.append([
        removal.bundle, String(removal.date.prefix(10)), removal.rule.words, printable(removal.sender),
        String(removal.arrived.prefix(10)), readableSize(removal.bytes),
      ])
    }
    text = table.text()
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
  @Option(help: ArgumentHelp("Keep what arrived within so many days.", valueName: "days"))
  var keepDays: Int?

  @Option(help: ArgumentHelp("Keep the newest so many bundles of each damage.", valueName: "n"))
  var keepLast: Int?

  @Option(
    help: ArgumentHelp(
      "Keep no more than so many bytes, with what was unpacked and salvaged; the oldest bundles go first.",
      valueName: "size"))
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
    let rules = InboxRetention(
      days: keepDays, last: keepLast, bytes: keepBytes?.bytes, keepsOneOfEach: !removesNewest)
    return rules.hasRules ? rules : nil
  }
}
