/// The one number of days by which all dates of a store are shifted, found so that every date still fits where it is.
///
/// Dates within 97 days of 2001-01-01 are stored in fewer bytes than others and stay; where there are any, later dates are
/// shifted one way and earlier ones the other, so that the order of all is kept.
struct DateShift: Sendable {
  /// The seconds from 2001-01-01 up to which dates stay.
  static let stuck = 8_388_608.0

  private static let day = 86400.0

  /// The seconds that later dates are shifted by; earlier ones by the opposite where ``isSplit``.
  private(set) var seconds = 0.0

  /// Whether dates before 2001 go the other way.
  private(set) var isSplit = false

  private var hasStuck = false
  private var roomUp = Double.infinity
  private var roomDown = Double.infinity
  private var roomOut = Double.infinity
  private var roomIn = Double.infinity
  private var low = Double.infinity
  private var high = -Double.infinity

  /// Takes note of a date.
  ///
  /// - Parameter limit: the largest number that its place can hold; nil for reals.
  mutating func note(_ date: Double, limit: Double?) {
    guard date.isFinite, abs(date) < 1e12 else { return }
    guard abs(date) > Self.stuck else {
      hasStuck = true
      return
    }
    roomIn = min(roomIn, abs(date) - Self.stuck - 1)
    if abs(date) < 5e9 {
      low = min(low, date)
      high = max(high, date)
    }
    guard let limit else { return }
    roomUp = min(roomUp, limit - 1 - date)
    roomDown = min(roomDown, limit - 1 + date)
    roomOut = min(roomOut, limit - 1 - abs(date))
  }

  /// Chooses the number of days.
  mutating func choose(_ function: KeyedFunction) {
    isSplit = hasStuck
    let (up, down) = isSplit ? (roomOut, roomIn) : (roomUp, roomDown)
    let isUp = up >= 30 * 365 * Self.day ? function(1, 2) & 1 == 0 || down < up / 4 : up >= down
    let room = min((isUp ? up : down) / Self.day, 200_000)
    guard room >= 1 else { return }
    // Beyond the span of all dates no shifted one falls on another.
    let span = high > low ? (high - low) / Self.day : 0
    var least = 30.0
    var most = min(room, 20 * 365)
    if !isSplit, span + 3650 < room {
      least = max(least, span + 1)
      most = max(most, least + 3650)
    }
    most = min(most, room)
    least = min(least, most)
    var stream = KeyStream(function, seed: 7)
    let days = least.rounded(.down) + Double(stream.below64(UInt64(max(0, most - least)) + 1))
    seconds = (isUp ? 1 : -1) * max(1, min(days, room.rounded(.down))) * Self.day
  }

  /// A date, shifted.
  func callAsFunction(_ date: Double) -> Double {
    guard abs(date) > Self.stuck, abs(date) < 1e12 else { return date }
    return isSplit && date < 0 ? date - seconds : date + seconds
  }

  /// A date that is stored as an integer, shifted.
  func callAsFunction(_ date: Int64) -> Int64 {
    guard abs(Double(date)) > Self.stuck, abs(Double(date)) < 1e12 else { return date }
    let days = Int64(seconds)
    return isSplit && date < 0 ? date - days : date + days
  }
}
