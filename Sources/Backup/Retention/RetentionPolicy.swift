package import Platform

/// Which backups are kept, in restic's grammar (`--keep-last`, `--keep-daily`, `--keep-within` …).
///
/// Each rule is looked at by itself, and a backup is kept if one of them keeps it. A count of a period keeps the newest
/// backup of each of the last so many hours, days … that have one. Durations go back from the newest backup, not from now.
package struct RetentionPolicy: Sendable, Hashable, Codable {
  /// How many of the newest are kept.
  package var last: RetentionCount
  /// Of how many hours.
  package var hourly: RetentionCount
  /// Of how many days.
  package var daily: RetentionCount
  /// Of how many weeks.
  package var weekly: RetentionCount
  /// Of how many months.
  package var monthly: RetentionCount
  /// Of how many years.
  package var yearly: RetentionCount

  /// All backups not older than this, counted from the newest.
  package var within: RetentionDuration?
  /// One of each hour that is not older than this.
  package var withinHourly: RetentionDuration?
  /// One of each day that is not older than this.
  package var withinDaily: RetentionDuration?
  /// One of each week that is not older than this.
  package var withinWeekly: RetentionDuration?
  /// One of each month that is not older than this.
  package var withinMonthly: RetentionDuration?
  /// One of each year that is not older than this.
  package var withinYearly: RetentionDuration?

  /// Backups with all tags of one of these lists.
  package var tags: [[String]]

  /// A policy; without any rule everything is kept.
  package init(
    last: RetentionCount = .number(0), hourly: RetentionCount = .number(0), daily: RetentionCount = .number(0),
    weekly: RetentionCount = .number(0), monthly: RetentionCount = .number(0), yearly: RetentionCount = .number(0),
    within: RetentionDuration? = nil, withinHourly: RetentionDuration? = nil, withinDaily: RetentionDuration? = nil,
    withinWeekly: RetentionDuration? = nil, withinMonthly: RetentionDuration? = nil,
    withinYearly: RetentionDuration? = nil, tags: [[String]] = []
  ) {
    self.last = last
    self.hourly = hourly
    self.daily = daily
    self.weekly = weekly
    self.monthly = monthly
    self.yearly = yearly
    self.within = within
    self.withinHourly = withinHourly
    self.withinDaily = withinDaily
    self.withinWeekly = withinWeekly
    self.withinMonthly = withinMonthly
    self.withinYearly = withinYearly
    self.tags = tags
  }

  /// What is kept where nothing was said: the last 10, one of each of 7 days, 5 weeks, 12 months and 5 years, and
  /// whatever is not older than three days.
  package static let usual = RetentionPolicy(
    last: .number(10), daily: .number(7), weekly: .number(5), monthly: .number(12), yearly: .number(5),
    within: RetentionDuration(days: 3))

  /// Whether there is no rule at all, so that everything is kept.
  package var isEmpty: Bool { counts.isEmpty && spans.isEmpty && within == nil && tags.isEmpty }

  /// The periods of which a number is kept, in the order in which reasons are told.
  var counts: [(period: RetentionPeriod, count: RetentionCount)] {
    [
      (.last, last), (.hourly, hourly), (.daily, daily), (.weekly, weekly), (.monthly, monthly), (.yearly, yearly),
    ].filter { !$0.1.isNone }
  }

  /// The periods of which one is kept each for some time.
  var spans: [(period: RetentionPeriod, duration: RetentionDuration)] {
    let all: [(RetentionPeriod, RetentionDuration?)] = [
      (.hourly, withinHourly), (.daily, withinDaily), (.weekly, withinWeekly), (.monthly, withinMonthly),
      (.yearly, withinYearly),
    ]
    return all.compactMap { period, duration in duration.map { (period, $0) } }
  }

  private enum CodingKeys: String, CodingKey, CaseIterable {
    case last, hourly, daily, weekly, monthly, yearly
    case within, withinHourly, withinDaily, withinWeekly, withinMonthly, withinYearly, tags
  }

  /// The keys that its JSON may have.
  static var knownKeys: Set<String> { Set(CodingKeys.allCases.map(\.rawValue)) }

  /// Reads a policy; what is missing keeps nothing.
  package init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    func count(_ key: CodingKeys) throws -> RetentionCount {
      try values.decodeIfPresent(RetentionCount.self, forKey: key) ?? .number(0)
    }
    func duration(_ key: CodingKeys) throws -> RetentionDuration? {
      try values.decodeIfPresent(RetentionDuration.self, forKey: key)
    }
    self.init(
      last: try count(.last), hourly: try count(.hourly), daily: try count(.daily), weekly: try count(.weekly),
      monthly: try count(.monthly), yearly: try count(.yearly), within: try duration(.within),
      withinHourly: try duration(.withinHourly), withinDaily: try duration(.withinDaily),
      withinWeekly: try duration(.withinWeekly), withinMonthly: try duration(.withinMonthly),
      withinYearly: try duration(.withinYearly),
      tags: try values.decodeIfPresent([[String]].self, forKey: .tags) ?? [])
  }

  /// Writes a policy; what keeps nothing is left out.
  package func encode(to encoder: any Encoder) throws {
    var values = encoder.container(keyedBy: CodingKeys.self)
    let counts: [(CodingKeys, RetentionCount)] = [
      (.last, last), (.hourly, hourly), (.daily, daily), (.weekly, weekly), (.monthly, monthly), (.yearly, yearly),
    ]
    for (key, count) in counts where !count.isNone { try values.encode(count, forKey: key) }
    try values.encodeIfPresent(within, forKey: .within)
    try values.encodeIfPresent(withinHourly, forKey: .withinHourly)
    try values.encodeIfPresent(withinDaily, forKey: .withinDaily)
    try values.encodeIfPresent(withinWeekly, forKey: .withinWeekly)
    try values.encodeIfPresent(withinMonthly, forKey: .withinMonthly)
    try values.encodeIfPresent(withinYearly, forKey: .withinYearly)
    if !tags.isEmpty { try values.encode(tags, forKey: .tags) }
  }
}

/// A stretch of the calendar of which one backup may be kept.
package enum RetentionPeriod: String, Sendable, Hashable, CaseIterable, Codable {
  /// Each backup is a stretch of its own.
  case last

  /// An hour of a day.
  case hourly

  case daily

  /// A week from Monday to Sunday (ISO 8601).
  case weekly

  case monthly

  case yearly

  /// A number that two moments have in common if, and only if, they are in the same stretch.
  ///
  /// - Parameter place: the moment's place in its history, for `last`.
  package func number(of moment: Timestamp, at place: Int) -> Int {
    let civil = moment.civil
    switch self {
    case .last: return place
    case .hourly: return ((civil.year * 100 + civil.month) * 100 + civil.day) * 100 + civil.hour
    case .daily: return (civil.year * 100 + civil.month) * 100 + civil.day
    case .weekly:
      // A week belongs to the year that its Thursday is in, so that its Monday's number is enough to tell it.
      let day = Timestamp.daysSince1970(year: civil.year, month: civil.month, day: civil.day)
      let sinceMonday = ((day + 3) % 7 + 7) % 7
      return day - sinceMonday
    case .monthly: return civil.year * 100 + civil.month
    case .yearly: return civil.year
    }
  }
}
