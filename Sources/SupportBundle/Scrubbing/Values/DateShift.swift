/// Shifts the dates of a store by a secret duration that fits every date and maps none to another, plus a secret jitter
/// that grows weekly, so that one known date does not reveal the others.
///
/// The jitter is in whole seconds and never shrinks, so all dates keep their order, as do replaced fractions.
///
/// Dates within 97 days of 2001-01-01 take fewer bytes and are replaced like other numbers. If there are any, later and
/// earlier dates shift in opposite directions to keep the order.
struct DateShift: Sendable {
  /// The seconds around 2001-01-01 without shift.
  private static let stuck = 8_388_608.0

  private static let day = 86400.0

  /// The most dates to test for collisions.
  private static let limit = 1_000_000

  /// The shift of later dates; earlier ones use the opposite if ``isSplit``.
  private(set) var seconds = 0.0

  private(set) var isSplit = false

  private(set) var hasDates = false

  /// Whether the shift is not in whole days.
  private(set) var hasSeconds = false

  var isImpossible: Bool { hasDates && seconds == 0 }

  /// The start of the first week, and the jitter at each.
  private var firstWeek = 0.0
  private var growth: [Double] = []

  /// The point that splits fractions of a second, before and after.
  private var cut = (from: 0.5, to: 0.5)

  private static let week = 604_800.0

  private static let weekLimit = 12_000

  /// The largest jitter growth as a part of a week.
  private static let largestGrowth = 0.3

  private var dates: [Double] = []
  private var hasStuck = false
  private var roomUp = Double.infinity
  private var roomDown = Double.infinity
  private var roomOut = Double.infinity
  private var roomIn = Double.infinity
  private var low = Double.infinity
  private var high = -Double.infinity

  /// Whether a date takes too few bytes for a shift.
  static func isStuck(_ date: Double) -> Bool { !(abs(date) > stuck) || abs(date) >= 1e12 }

  /// - Parameter limit: the largest number that fits; nil for reals.
  mutating func note(_ date: Double, limit: Double?) {
    guard date.isFinite, abs(date) < 1e12 else { return }
    guard abs(date) > Self.stuck else {
      hasStuck = true
      return
    }
    hasDates = true
    if dates.count < Self.limit { dates.append(date) }
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

  mutating func add(_ other: DateShift) {
    dates += other.dates.prefix(max(0, Self.limit - dates.count))
    hasDates = hasDates || other.hasDates
    hasStuck = hasStuck || other.hasStuck
    for bound in [\Self.roomUp, \.roomDown, \.roomOut, \.roomIn, \.low] {
      self[keyPath: bound] = min(self[keyPath: bound], other[keyPath: bound])
    }
    high = max(high, other.high)
  }

  /// Chooses the shift.
  ///
  /// - Parameter isTaken: whether the store has a number.
  mutating func choose(_ function: KeyedFunction, isTaken: (Double) -> Bool) {
    defer { dates = [] }
    isSplit = hasStuck
    makeJitter(function, room: isSplit ? roomOut : roomUp)
    let (up, down) = isSplit ? (roomOut - (growth.last ?? 0), roomIn) : (roomUp - (growth.last ?? 0), roomDown)
    let isUp = up >= 30 * 365 * Self.day ? function(1, 2) & 1 == 0 || down < up / 4 : up >= down
    let room = min((isUp ? up : down) / Self.day, 200_000).rounded(.down)
    guard hasDates, room >= 1 else { return }
    // Beyond the span, no date maps to another.
    let span = high > low ? (high - low) / Self.day : 0
    var least = min(30, room)
    var most = min(room, 20 * 365)
    if !isSplit, span + 3650 < room {
      least = max(least, span + 1)
      most = max(most, least + 3650)
    }
    most = min(most, room)
    least = min(least, most)
    var stream = KeyStream(function, seed: 7)
    var best = (seconds: 0.0, taken: Int.max)
    for attempt in 0..<64 where best.taken > 0 {
      // Part of a day hides the time of day.
      var days = (least + Double(stream.below64(UInt64(max(0, most - least)) + 1))).rounded(.down)
      if room >= 2 || attempt >= 32 { days = min(days, room - 1) + Double(1 + stream.below64(86398)) / Self.day }
      seconds = (isUp ? 1 : -1) * (days * Self.day).rounded()
      guard seconds != 0 else { continue }
      var taken = 0
      for date in dates where isTaken(self(date)) {
        taken += 1
        if taken >= best.taken { break }
      }
      if taken < best.taken { best = (seconds, taken) }
    }
    seconds = best.seconds
    hasSeconds = seconds.truncatingRemainder(dividingBy: Self.day) != 0
  }

  /// Chooses the weekly jitter.
  ///
  /// - Parameter room: the largest shift of the latest date in seconds.
  private mutating func makeJitter(_ function: KeyedFunction, room: Double) {
    growth = []
    let (first, last) = isSplit ? (0, max(abs(low), abs(high))) : (low, high)
    guard hasDates, last > first, last - first < Self.week * Double(Self.weekLimit) else { return }
    var stream = KeyStream(function, seed: 8)
    firstWeek = (first - Self.week * Double(stream.below64(1000)) / 1000).rounded(.down)
    let weeks = Int((last - firstWeek) / Self.week) + 1
    let most = min(Self.week * Self.largestGrowth, room / 10 / Double(weeks)).rounded(.down)
    guard most >= 60 else { return }
    var sum = 0.0
    for _ in 0...weeks {
      growth.append(sum)
      sum += Double(stream.below64(UInt64(most)))
    }
    func share() -> Double { 0.2 + 0.6 * Double(stream.below64(1 << 20)) / Double(1 << 20) }
    cut = (share(), share())
  }

  /// Never decreases.
  private func jitter(_ second: Double) -> Double {
    guard let last = growth.last else { return 0 }
    let place = (second - firstWeek) / Self.week
    guard place > 0 else { return 0 }
    guard place < Double(growth.count - 1) else { return last }
    let index = Int(place)
    return (growth[index] + (place - Double(index)) * (growth[index + 1] - growth[index])).rounded(.down)
  }

  /// Maps a fraction of a second; zero stays.
  private func fraction(_ part: Double) -> Double {
    part <= cut.from ? part / cut.from * cut.to : cut.to + (part - cut.from) / (1 - cut.from) * (1 - cut.to)
  }

  func callAsFunction(_ date: Double) -> Double {
    guard !Self.isStuck(date), seconds != 0 else { return date }
    let isMirrored = isSplit && date < 0
    let magnitude = isMirrored ? -date : date
    let whole = magnitude.rounded(.down)
    let shifted = whole + seconds + jitter(whole) + fraction(magnitude - whole)
    return isMirrored ? -shifted : shifted
  }

  func callAsFunction(_ date: Int64) -> Int64 { Int64(self(Double(date))) }
}
