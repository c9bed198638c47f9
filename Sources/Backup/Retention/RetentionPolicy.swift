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
  var isEmpty: Bool { counts.isEmpty && spans.isEmpty && within == nil && tags.isEmpty }

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
      withinYearly: try duration(.withinYearly), tags: try values.decodeIfPresent([[String]].self, forKey: .tags) ?? [])
  }

  /// Encodes the effective rules.
  package func encode(to encoder: any Encoder) throws {
    for (period, count) in counts { try encoder.encode([period.rawValue: count]) }
    try encoder.encode([
      "within": within, "withinHourly": withinHourly, "withinDaily": withinDaily, "withinWeekly": withinWeekly,
      "withinMonthly": withinMonthly, "withinYearly": withinYearly, "tags": tags.isEmpty ? nil : tags,
    ])
  }
}

/// A calendar period to keep one backup of.
package enum RetentionPeriod: String, Sendable, Hashable, CaseIterable, Codable {
  /// A period for each backup.
  case last

  case hourly, daily

  /// A week from Monday to Sunday (ISO 8601).
  case weekly

  case monthly, yearly

  /// Returns a number that is equal for moments of the same period only.
  ///
  /// - Parameter place: the position in the history, for `last`.
  func number(of moment: Timestamp, at place: Int) -> Int {
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

/// The number of backups to keep by a rule.
///
/// In JSON a number, or the text `unlimited`.
package enum RetentionCount: Sendable, Hashable, Codable, CustomStringConvertible {
  /// A number; 0 disables the rule.
  case number(Int)

  case unlimited

  /// Parses a number, `unlimited` or `-1`.
  package init?(_ text: String) {
    if text == "unlimited" || text == "-1" {
      self = .unlimited
    } else if let number = Int(text), (0...Self.largest).contains(number) {
      self = .number(number)
    } else {
      return nil
    }
  }

  /// A number beyond any place's backups.
  static let largest = 1_000_000

  var isNone: Bool { self == .number(0) }

  package var description: String {
    switch self {
    case .number(let number): "\(number)"
    case .unlimited: "unlimited"
    }
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Not a number: errors of the text are thrown.
    let text = try (try? container.decode(Int.self)).map { String($0) } ?? container.decode(String.self)
    guard let count = RetentionCount(text) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "it is neither a number from 0 on nor the text \"unlimited\"")
    }
    self = count
  }

  package func encode(to encoder: any Encoder) throws {
    switch self {
    case .number(let number): try number.encode(to: encoder)
    case .unlimited: try description.encode(to: encoder)
    }
  }
}

/// A calendar duration in years, months, days and hours, written `1y5m7d2h`.
///
/// Months and years vary in length, so it is no number of seconds.
package struct RetentionDuration: Sendable, Hashable, Codable, CustomStringConvertible {
  private(set) var years = 0
  private(set) var months = 0
  private(set) var days = 0
  private(set) var hours = 0

  /// Parses a positive duration, such as `1y5m7d2h` or `14d`.
  package init?(_ text: String) {
    var number: Int?
    var units = ""
    for character in text.utf8 {
      if (48...57).contains(character) {
        let next = (number ?? 0) * 10 + Int(character) - 48
        guard next <= 10_000_000 else { return nil }
        number = next
        continue
      }
      guard let count = number, !units.utf8.contains(character) else { return nil }
      switch character {
      case UInt8(ascii: "y") where count <= 10_000: years = count
      case UInt8(ascii: "m") where count <= 120_000: months = count
      case UInt8(ascii: "d") where count <= 3_660_000: days = count
      case UInt8(ascii: "h"): hours = count
      default: return nil
      }
      units.unicodeScalars.append(Unicode.Scalar(character))
      number = nil
    }
    guard number == nil, (years, months, days, hours) != (0, 0, 0, 0) else { return nil }
  }

  init(days: Int) { self.days = max(1, min(days, 3_660_000)) }

  package var description: String {
    [(years, "y"), (months, "m"), (days, "d"), (hours, "h")].filter { $0.0 > 0 }.map { "\($0.0)\($0.1)" }.joined()
  }

  /// Returns the moment this long before another.
  ///
  /// Years, months and days follow the calendar, at the same time of day; a nonexistent day continues into the next
  /// month, as in restic (31 March less one month is 3 March, or 2 March in a leap year).
  package func before(_ moment: Timestamp) -> Timestamp {
    let civil = moment.civil
    let monthsInAll = (civil.year - years) * 12 + civil.month - 1 - months
    let year = monthsInAll >= 0 ? monthsInAll / 12 : (monthsInAll - 11) / 12
    let first = Timestamp.daysSince1970(year: year, month: monthsInAll - year * 12 + 1, day: 1)
    let day = first + civil.day - 1 - days
    let time = civil.hour * 3600 + civil.minute * 60 + civil.second - hours * 3600
    return Timestamp(secondsSince1970: Int64(day * 86400 + time), nanoseconds: moment.nanoseconds)
  }

  package init(from decoder: any Decoder) throws {
    guard let duration = RetentionDuration(try String(from: decoder)) else {
      throw DecodingError.dataCorruptedError(
        in: try decoder.singleValueContainer(),
        debugDescription: "it is not a duration such as \"1y5m7d2h\" or \"14d\"")
    }
    self = duration
  }

  package func encode(to encoder: any Encoder) throws { try description.encode(to: encoder) }
}
