import ArgumentParser
import StoreCoordination

/// Which backups are kept, in restic's grammar.
struct RetentionOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp("Keep the last so many; or unlimited, here and below.", valueName: "n"),
    transform: RetentionCount.argument)
  var keepLast: RetentionCount?

  @Option(
    help: ArgumentHelp("Keep the newest of each of so many hours that have one.", valueName: "n"),
    transform: RetentionCount.argument)
  var keepHourly: RetentionCount?

  @Option(
    help: ArgumentHelp("Keep the newest of each of so many days.", valueName: "n"), transform: RetentionCount.argument)
  var keepDaily: RetentionCount?

  @Option(
    help: ArgumentHelp("Keep the newest of each of so many weeks.", valueName: "n"), transform: RetentionCount.argument)
  var keepWeekly: RetentionCount?

  @Option(
    help: ArgumentHelp("Keep the newest of each of so many months.", valueName: "n"), transform: RetentionCount.argument
  )
  var keepMonthly: RetentionCount?

  @Option(
    help: ArgumentHelp("Keep the newest of each of so many years.", valueName: "n"), transform: RetentionCount.argument)
  var keepYearly: RetentionCount?

  @Option(
    help: ArgumentHelp("Keep what is not older than the newest by this, as 1y5m7d2h.", valueName: "duration"),
    transform: RetentionDuration.argument)
  var keepWithin: RetentionDuration?

  @Option(
    help: ArgumentHelp("Keep the newest of each hour for this long.", valueName: "duration"),
    transform: RetentionDuration.argument)
  var keepWithinHourly: RetentionDuration?

  @Option(
    help: ArgumentHelp("Keep the newest of each day for this long.", valueName: "duration"),
    transform: RetentionDuration.argument)
  var keepWithinDaily: RetentionDuration?

  @Option(
    help: ArgumentHelp("Keep the newest of each week for this long.", valueName: "duration"),
    transform: RetentionDuration.argument)
  var keepWithinWeekly: RetentionDuration?

  @Option(
    help: ArgumentHelp("Keep the newest of each month for this long.", valueName: "duration"),
    transform: RetentionDuration.argument)
  var keepWithinMonthly: RetentionDuration?

  @Option(
    help: ArgumentHelp("Keep the newest of each year for this long.", valueName: "duration"),
    transform: RetentionDuration.argument)
  var keepWithinYearly: RetentionDuration?

  @Option(help: ArgumentHelp("Keep what has all of these tags; may be given again.", valueName: "tag,tag"))
  var keepTag: [String] = []

  /// The policy; nil where no rule was given.
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
