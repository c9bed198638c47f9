package import Platform

/// The retention rules in restic's grammar (`--keep-last`, `--keep-daily`, `--keep-within` …).
///
/// A backup is kept if any rule keeps it. A count keeps the newest backup of each of the last periods that have one.
/// Durations count back from the newest backup, not from now.
package struct RetentionPolicy: Sendable, Hashable, Codable {
  package var last: RetentionCount
  package var hourly: RetentionCount
  package var daily: RetentionCount
  package var weekly: RetentionCount
  package var monthly: RetentionCount
  package var yearly: RetentionCount

  /// The maximum age of all backups to keep, relative to the newest.
  package var within: RetentionDuration?
  package var withinHourly: RetentionDuration?
  package var withinDaily: RetentionDuration?
  package var withinWeekly: RetentionDuration?
  package var withinMonthly: RetentionDuration?
  package var withinYearly: RetentionDuration?

  /// Lists of tags; a backup with all tags of one list is kept.
  package var tags: [[String]]

  /// Creates a policy, which without any rule keeps all backups.
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

  /// The default: the last 10, one each of 7 days, 5 weeks, 12 months and 5 years, and all of three days.
  package static let usual = RetentionPolicy(
    last: .number(10), daily: .number(7), weekly: .number(5), monthly: .number(12), yearly: .number(5),
    within: RetentionDuration(days: 3))

  /// Whether there are no rules, so that all backups are kept.
  package var isEmpty: Bool { counts.isEmpty && spans.isEmpty && within == nil && tags.isEmpty }

  /// The periods with a count, in the order of reported reasons.
  var counts: [(period: RetentionPeriod, count: RetentionCount)] {
    [
      (.last, last), (.hourly, hourly), (.daily, daily), (.weekly, weekly), (.monthly, monthly), (.yearly, yearly),
    ].filter { !$0.1.isNone }
  }

  /// The periods with a duration.
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

  static var knownKeys: Set<String> { Set(CodingKeys.allCases.map(\.rawValue)) }

  /// Decodes a policy; missing rules keep no backups.
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

  /// Encodes the effective rules.
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

/// A calendar period to keep one backup of.
package enum RetentionPeriod: String, Sendable, Hashable, CaseIterable, Codable {
  /// A period for each backup.
  case last

  case hourly

  case daily

  /// A week from Monday to Sunday (ISO 8601).
  case weekly

  case monthly

  case yearly

  /// Returns a number that is equal for moments of the same period only.
  ///
  /// - Parameter place: the position in the history, for `last`.
  package func number(of moment: Timestamp, at place: Int) -> Int {
    let civil = moment.civil
    switch self {
    case .last: return place
    case .hourly: return ((civil.year * 100 + civil.month) * 100 + civil.day) * 100 + civil.hour
    case .daily: return (civil.year * 100 + civil.month) * 100 + civil.day
    case .weekly:
      // A week belongs to the year of its Thursday, so its Monday's number identifies it.
      let day = Timestamp.daysSince1970(year: civil.year, month: civil.month, day: civil.day)
      let sinceMonday = ((day + 3) % 7 + 7) % 7
      return day - sinceMonday
    case .monthly: return civil.year * 100 + civil.month
    case .yearly: return civil.year
    }
  }
}
