import Backup
import Platform

extension RetentionReason {
  /// Whether it is one of restic's rules.
  var isRule: Bool {
    switch self {
    case .policyIsEmpty, .tags, .within, .newest, .newestWithin: true
    case .lastProven, .newestOfAll, .neededBy, .apart, .onlyHere, .beforeQuarantine, .beforeFall, .holdsValues,
      .showsFall, .unknown, .datedInTheFuture, .datedBeforeParent, .clockMayHaveJumped, .notProven, .noRule, .noProof:
      false
    }
  }
}

/// Random histories and policies for tests of retention, from a seed.
struct RetentionHistory {
  var generator: SeededGenerator

  init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

  /// The newest moment of any history: the last evening of a month, so that months of other lengths are met.
  static let latest = Timestamp(secondsSince1970: 1_793_489_400)  // 2026-10-31T23:30:00Z

  /// Different moments over so many hours before the latest.
  mutating func moments(_ count: Int, overHours hours: Int64) -> [Timestamp] {
    var result: Set<Int64> = []
    while result.count < count { result.insert(Int64.random(in: 0..<(hours * 3600), using: &generator)) }
    return result.sorted().map { Timestamp(secondsSince1970: Self.latest.secondsSince1970 - $0) }
  }

  /// Moments close together, over weeks, over a year, and over years.
  mutating func pool(_ count: Int) -> [Timestamp] {
    var result: Set<Timestamp> = []
    for hours: Int64 in [36, 24 * 40, 24 * 430, 24 * 365 * 9] {
      result.formUnion(moments(count / 4, overHours: hours))
    }
    return result.sorted()
  }

  mutating func tags() -> [String] {
    ["a", "b", "c"].filter { _ in Int.random(in: 0..<5, using: &generator) == 0 }
  }

  private mutating func duration() -> String {
    let parts = [("y", 3), ("m", 14), ("d", 40), ("h", 60)]
    while true {
      let chosen = parts.filter { _ in Int.random(in: 0..<3, using: &generator) == 0 }
      let text = chosen.map { unit, most in "\(Int.random(in: 1...most, using: &generator))\(unit)" }.joined()
      if !text.isEmpty { return text }
    }
  }

  /// A policy as restic's command line says it; never empty.
  mutating func arguments() -> [String] {
    var result: [String] = []
    while result.isEmpty {
      for period in RetentionPeriod.allCases where Int.random(in: 0..<4, using: &generator) == 0 {
        let many = Int.random(in: 0..<8, using: &generator) == 0
        result += ["--keep-\(period.rawValue)", "\(Int.random(in: 1...(many ? 200 : 12), using: &generator))"]
      }
      if Int.random(in: 0..<5, using: &generator) == 0 { result += ["--keep-within", duration()] }
      for period in RetentionPeriod.allCases.dropFirst() where Int.random(in: 0..<7, using: &generator) == 0 {
        result += ["--keep-within-\(period.rawValue)", duration()]
      }
      for tags in ["a", "b,c"] where Int.random(in: 0..<6, using: &generator) == 0 { result += ["--keep-tag", tags] }
    }
    return result
  }

  /// Which of a pool of moments are a history; never none.
  mutating func members(of count: Int) -> [Int] {
    while true {
      let shares = (0..<4).map { _ in [0, 3, 10, 45].randomElement(using: &generator) ?? 0 }
      let members = (0..<count).filter { place in
        Int.random(in: 0..<100, using: &generator) < shares[min(3, place * 4 / count)]
      }
      if !members.isEmpty { return members }
    }
  }
}

extension RetentionPolicy {
  /// The policy that restic's command line says.
  init(arguments: [String]) {
    self.init()
    for index in stride(from: 0, to: arguments.count - 1, by: 2) {
      let (option, value) = (arguments[index], arguments[index + 1])
      switch option {
      case "--keep-last": last = RetentionCount(value) ?? last
      case "--keep-hourly": hourly = RetentionCount(value) ?? hourly
      case "--keep-daily": daily = RetentionCount(value) ?? daily
      case "--keep-weekly": weekly = RetentionCount(value) ?? weekly
      case "--keep-monthly": monthly = RetentionCount(value) ?? monthly
      case "--keep-yearly": yearly = RetentionCount(value) ?? yearly
      case "--keep-within": within = RetentionDuration(value)
      case "--keep-within-hourly": withinHourly = RetentionDuration(value)
      case "--keep-within-daily": withinDaily = RetentionDuration(value)
      case "--keep-within-weekly": withinWeekly = RetentionDuration(value)
      case "--keep-within-monthly": withinMonthly = RetentionDuration(value)
      case "--keep-within-yearly": withinYearly = RetentionDuration(value)
      case "--keep-tag": tags.append(value.split(separator: ",").map(String.init))
      default: break
      }
    }
  }
}
