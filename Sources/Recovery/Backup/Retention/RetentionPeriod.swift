package import StoreFiles

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
