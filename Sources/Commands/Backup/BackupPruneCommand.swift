import ArgumentParser
import Backup
import Platform

struct BackupPruneCommand: Verb {
  static let configuration = CommandConfiguration(
    verb: "prune", abstract: "Drops the backups that no rule keeps, into the trash first.",
    discussion: """
      The rules are restic's; without any, those of backup-policy.json in the home, or the usual ones. Whatever they \
      say, the last backup that was found good is kept, of each depth to which backups were checked, and whatever a \
      kept one cannot be restored without; backups that were not found good take the place of none that was, and none \
      takes the place of one that was checked further; evidence stays; and nothing is dropped because of a clock that \
      jumped. An original with records that its migration removed, and the last backup before an entity lost more than \
      half of its records, stay until they are released, the latter for 30 days at most. See: lazaret backup release

      Before anything is dropped, the newest good backup is read with all that it needs. Where it is damaged it counts no \
      longer, and the exit code is 2.

      What is dropped stays in the trash for seven days, unless the policy says otherwise. See: lazaret backup undelete
      """, examples: "lazaret backup prune --of Stores/App.sqlite --keep-daily 7 --dry-run")

  @OptionGroup var source: BackupPlaceOptions
  @OptionGroup(title: "Rules") var rules: RetentionOptions

  @Option(help: .text("The days for which dropped backups stay in the trash.", "days"))
  var trashDays: Int?

  @Flag(help: "Only tell what would be done.") var dryRun = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let trashDays, !(0...36500).contains(trashDays) { throw ValidationError("--trash-days is from 0 to 36500.") }
  }

  func perform() throws {
    let source = try source.chosen(to: "prune the backups")
    let policy = try BackupPolicy.load(home: source.home.path)
    let options = BackupPruner.Options(trashDays: trashDays ?? policy.trashDays, isRehearsal: dryRun, verifies: true)
    var hasFailed = false
    var stores: [JSON.Object] = []
    let line = ProgressLine()
    for place in try source.places() {
      line.show("Reading the newest good backup of \(printable(place.name)) …")
      let result = try BackupPruner(of: place).prune(rules.policy ?? policy.keep, options: options)
      if !result.failed.isEmpty { hasFailed = true }
      stores.append(JSON.Object(result, ["place": place.shownLocation]))
      if !output.json {
        Terminal.standardOutput.write(result.text(of: place, in: source.home, isRehearsal: dryRun))
      }
    }
    line.clear()
    let kept = try source.storage?.keepingWords()
    if let kept, !output.json { Terminal.standardOutput.write("  \(kept)\n") }
    if output.json {
      try Terminal.standardOutput.write(json: ["dryRun": dryRun, "places": stores, "kept": kept] as JSON.Object)
    } else if stores.isEmpty {
      Terminal.standardOutput.write("There are no backups in the home: \(source.home.words). \(ChosenHome.another)\n")
    }
    if hasFailed { throw ExitStatus.doubtful }
  }
}

extension RetentionPlan.Decision {
  /// Whether an entity lost many records after it.
  fileprivate var isKeptForFall: Bool {
    reasons.contains { if case .beforeFall = $0 { true } else { false } }
  }
}

extension PruningReport {
  fileprivate func text(of place: any BackupPlace, in home: ChosenHome, isRehearsal: Bool) -> String {
    var table = TextTable(["", "backup", "why"], wrapsLast: true)
    for decision in plan.decisions {
      table.append(
        decision.isKept ? "keep" : "drop", decision.snapshot.identifier,
        decision.reasons.map { printable($0.words) }.joined(separator: ", "))
    }
    var lines = "\(printable(place.location))\n" + table.text()
    let would = isRehearsal ? "would be " : ""
    let dropped = plan.dropped.count
    lines += "  \(counted(Int64(plan.kept.count), "backup")) kept, \(dropped) \(would)dropped into the trash "
    lines += "(\(readableSize(droppedBytes)))\n"
    if !emptied.isEmpty {
      lines += "  \(emptied.count) \(would)removed from the trash for good (\(readableSize(freedBytes)))\n"
    }
    for id in failed {
      lines += "  \(id) is damaged and counts no longer; verify it with: lazaret backup verify \(id)\(home.option)\n"
    }
    for decision in plan.kept where decision.snapshot.onlyHere != nil || decision.isKeptForFall {
      lines += "  The rules judge \(decision.id) when it is released with: "
      lines += "lazaret backup release \(decision.id)\(home.option)\n"
    }
    if !plan.isClockTrusted {
      lines += "  The dates do not go on as a clock does, so that the trash is not emptied for now\n"
    }
    return lines
  }
}

/// Retention rules in restic's grammar.
struct RetentionOptions: ParsableArguments {
  @Option(help: .text("Keep the last so many; or unlimited, here and below.", "n"), transform: RetentionCount.argument)
  var keepLast: RetentionCount?

  @Option(
    help: .text("Keep the newest of each of so many hours that have one.", "n"), transform: RetentionCount.argument)
  var keepHourly: RetentionCount?

  @Option(help: .text("Keep the newest of each of so many days.", "n"), transform: RetentionCount.argument)
  var keepDaily: RetentionCount?

  @Option(help: .text("Keep the newest of each of so many weeks.", "n"), transform: RetentionCount.argument)
  var keepWeekly: RetentionCount?

  @Option(help: .text("Keep the newest of each of so many months.", "n"), transform: RetentionCount.argument)
  var keepMonthly: RetentionCount?

  @Option(help: .text("Keep the newest of each of so many years.", "n"), transform: RetentionCount.argument)
  var keepYearly: RetentionCount?

  @Option(
    help: .text("Keep what is not older than the newest by this, as 1y5m7d2h.", "duration"),
    transform: RetentionDuration.argument)
  var keepWithin: RetentionDuration?

  @Option(help: .text("Keep the newest of each hour for this long.", "duration"), transform: RetentionDuration.argument)
  var keepWithinHourly: RetentionDuration?

  @Option(help: .text("Keep the newest of each day for this long.", "duration"), transform: RetentionDuration.argument)
  var keepWithinDaily: RetentionDuration?

  @Option(help: .text("Keep the newest of each week for this long.", "duration"), transform: RetentionDuration.argument)
  var keepWithinWeekly: RetentionDuration?

  @Option(
    help: .text("Keep the newest of each month for this long.", "duration"), transform: RetentionDuration.argument)
  var keepWithinMonthly: RetentionDuration?

  @Option(help: .text("Keep the newest of each year for this long.", "duration"), transform: RetentionDuration.argument)
  var keepWithinYearly: RetentionDuration?

  @Option(help: .text("Keep what has all of these tags; may be given again.", "tag,tag"))
  var keepTag: [String] = []

  var policy: RetentionPolicy? {
    let none = RetentionCount.number(0)
    let counts = [keepLast, keepHourly, keepDaily, keepWeekly, keepMonthly, keepYearly]
    let durations = [
      keepWithin, keepWithinHourly, keepWithinDaily, keepWithinWeekly, keepWithinMonthly, keepWithinYearly,
    ]
    guard counts.contains(where: { $0 != nil }) || durations.contains(where: { $0 != nil }) || !keepTag.isEmpty else {
      return nil
    }
    return RetentionPolicy(
      last: keepLast ?? none, hourly: keepHourly ?? none, daily: keepDaily ?? none, weekly: keepWeekly ?? none,
      monthly: keepMonthly ?? none, yearly: keepYearly ?? none, within: keepWithin, withinHourly: keepWithinHourly,
      withinDaily: keepWithinDaily, withinWeekly: keepWithinWeekly, withinMonthly: keepWithinMonthly,
      withinYearly: keepWithinYearly, tags: keepTag.map { $0.split(separator: ",").map(String.init) })
  }
}

extension RetentionCount {
  fileprivate static func argument(_ text: String) throws -> RetentionCount {
    guard let count = RetentionCount(text) else {
      throw ValidationError("'\(text)' is neither a number from 0 on nor unlimited.")
    }
    return count
  }
}

extension RetentionDuration {
  fileprivate static func argument(_ text: String) throws -> RetentionDuration {
    guard let duration = RetentionDuration(text) else {
      throw ValidationError("'\(text)' is not a duration such as 1y5m7d2h or 14d.")
    }
    return duration
  }
}
