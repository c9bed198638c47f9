package import Platform

/// A calendar duration in years, months, days and hours, written `1y5m7d2h`.
///
/// Months and years vary in length, so it is no number of seconds.
package struct RetentionDuration: Sendable, Hashable, Codable, CustomStringConvertible {
  package private(set) var years = 0
  package private(set) var months = 0
  package private(set) var days = 0
  package private(set) var hours = 0

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

  package init(days: Int) { self.days = max(1, min(days, 3_660_000)) }

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
    let container = try decoder.singleValueContainer()
    guard let duration = RetentionDuration(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "it is not a duration such as \"1y5m7d2h\" or \"14d\"")
    }
    self = duration
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(description)
  }
}
