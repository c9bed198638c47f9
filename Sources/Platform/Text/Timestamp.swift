/// A moment in UTC.
public struct Timestamp: Sendable, Hashable, Comparable {
  /// Whole seconds since 1970-01-01T00:00:00Z; negative before.
  public var secondsSince1970: Int64

  /// The fraction, from 0 to 999,999,999.
  public var nanoseconds: Int32

  /// Makes a moment.
  public init(secondsSince1970: Int64, nanoseconds: Int32 = 0) {
    self.secondsSince1970 = secondsSince1970
    self.nanoseconds = nanoseconds
  }

  /// Whole seconds since 2001-01-01T00:00:00Z, Core Data's reference date.
  package var secondsSinceReferenceDate: Double { Double(secondsSince1970) - 978_307_200 }

  /// Compares two moments.
  public static func < (left: Timestamp, right: Timestamp) -> Bool {
    (left.secondsSince1970, left.nanoseconds) < (right.secondsSince1970, right.nanoseconds)
  }

  /// The moment as a file name: `2026-11-21-10-11-12`.
  public var fileName: String {
    let parts = civil
    return [parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second]
      .enumerated().map { padded($1, to: $0 == 0 ? 4 : 2) }.joined(separator: "-")
  }

  /// The prefix of backup names; quarantined stores lack it.
  package static let backupMark = "b-"

  /// The moment as a backup name: `b-2026-11-21-10-11-12`.
  package var backupName: String { Self.backupMark + fileName }

  /// The moment in RFC 3339: `2026-11-21T10:11:12Z`.
  public var rfc3339: String {
    let parts = civil
    let date = "\(padded(parts.year, to: 4))-\(padded(parts.month, to: 2))-\(padded(parts.day, to: 2))"
    return "\(date)T\(padded(parts.hour, to: 2)):\(padded(parts.minute, to: 2)):\(padded(parts.second, to: 2))Z"
  }

  /// Parses `rfc3339` or `fileName`; nil for other text.
  public init?(_ text: String) {
    let digits = text.utf8.map { $0 }
    let marks = digits.count == 20 ? Array("--T::Z".utf8) : digits.count == 19 ? Array("-----".utf8) : []
    let places = [4, 7, 10, 13, 16, 19]
    guard !marks.isEmpty, zip(places, marks).allSatisfy({ digits[$0] == $1 }) else { return nil }
    let starts = [0, 5, 8, 11, 14, 17]
    var numbers: [Int] = []
    for (index, start) in starts.enumerated() {
      var number = 0
      for digit in digits[start..<(start + (index == 0 ? 4 : 2))] {
        guard (48...57).contains(digit) else { return nil }
        number = number * 10 + Int(digit - 48)
      }
      numbers.append(number)
    }
    guard (1...12).contains(numbers[1]), (1...31).contains(numbers[2]), numbers[3] < 24, numbers[4] < 60,
      numbers[5] < 61
    else { return nil }
    let days = Self.daysSince1970(year: numbers[0], month: numbers[1], day: numbers[2])
    self.init(secondsSince1970: Int64(days * 86400 + numbers[3] * 3600 + numbers[4] * 60 + numbers[5]))
  }

  /// The Gregorian date and time in UTC, clamped to years 0…9999.
  package var civil: (year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int) {
    let seconds = Int(min(max(secondsSince1970, -62_167_219_200), 253_402_300_799))
    let day = Int((Double(seconds) / 86400).rounded(.down))
    let rest = seconds - day * 86400
    let date = Self.date(daysSince1970: day)
    return (date.year, date.month, date.day, rest / 3600, rest / 60 % 60, rest % 60)
  }

  package var beginningOfMonth: Timestamp {
    let parts = civil
    return Timestamp(
      secondsSince1970: Int64(Timestamp.daysSince1970(year: parts.year, month: parts.month, day: 1)) * 86400)
  }

  package var isBeginningOfMonth: Bool { self == beginningOfMonth }

  // Eras of 400 years begin on 1 March, so that the leap day is the last of its year.
  package static func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let shifted = month <= 2 ? year - 1 : year
    let era = (shifted >= 0 ? shifted : shifted - 399) / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func date(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch + (monthFromMarch < 10 ? 3 : -9)
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
  }
}

extension Timestamp: Encodable {
  /// Encodes the moment in RFC 3339.
  public func encode(to encoder: any Encoder) throws { try rfc3339.encode(to: encoder) }
}

private func padded(_ number: Int, to width: Int) -> String { zeroPadded(String(number), to: width) }
