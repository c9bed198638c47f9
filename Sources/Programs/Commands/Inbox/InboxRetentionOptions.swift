import ArgumentParser
import Inbox

/// Which bundles of an inbox are kept.
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

  /// The rules; nil where there are none.
  var rules: InboxRetention? {
    let rules = InboxRetention(
      days: keepDays, last: keepLast, bytes: keepBytes?.bytes, keepsOneOfEach: !removesNewest)
    return rules.hasRules ? rules : nil
  }
}
