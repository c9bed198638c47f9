/// How the dates of a store are shifted: by a secret number of days, found so that every date still fits where it is and none
/// falls on another, and by a secret jitter that grows from week to week, so that one date that is known does not tell the others.
///
/// The jitter is of whole seconds and never shrinks: all dates keep their order, whether they are stored as integers or as
/// reals. Fractions of a second become others, in their order too.
///
/// Dates within 97 days of 2001-01-01 are stored in fewer bytes than others and are replaced like other numbers; where there
/// are any, later dates are shifted one way and earlier ones the other, so that the order of all is kept.
struct DateShift: Sendable {
  /// The seconds from 2001-01-01 up to which dates are not shifted.
  private static let stuck = 8_388_608.0

  private static let day = 86400.0

  /// The dates that are held to see whether a shift makes one of another.
  private static let limit = 1_000_000

  /// The seconds that later dates are shifted by; earlier ones by the opposite where ``isSplit``.
  private(set) var seconds = 0.0

  /// Whether dates before 2001 go the other way.
  private(set) var isSplit = false

  /// Whether there are dates that are to be shifted.
  private(set) var hasDates = false

  /// Whether the shift is no whole number of days.
  private(set) var hasSeconds = false

  /// Whether dates are left as they are because none of any kind would do.
  var isImpossible: Bool { hasDates && seconds == 0 }

  /// Where weeks begin, in seconds, and by how much the jitter has grown at the beginning of each.
  private var firstWeek = 0.0
  private var growth: [Double] = []

  /// Where in a second the fractions are cut in two, and where that place comes to lie.
  private var cut = (from: 0.5, to: 0.5)

  private static let week = 604_800.0

  /// The weeks that have a jitter of their own at most.
  private static let weekLimit = 12_000

  /// The largest part of a week that the jitter grows by in one.
  private static let largestGrowth = 0.3

  private var dates: [Double] = []
  private var hasStuck = false
  private var roomUp = Double.infinity
  private var roomDown = Double.infinity
  private var roomOut = Double.infinity
  private var roomIn = Double.infinity
  private var low = Double.infinity
  private var high = -Double.infinity

  /// Whether a date is stored in so few bytes that it cannot be shifted.
  static func isStuck(_ date: Double) -> Bool { !(abs(date) > stuck) || abs(date) >= 1e12 }

  /// Takes note of a date.
  ///
  /// - Parameter limit: the largest number that its place can hold; nil for reals.
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

  /// Adds the dates that were noted elsewhere.
  mutating func add(_ other: DateShift) {
    dates += other.dates.prefix(max(0, Self.limit - dates.count))
    hasDates = hasDates || other.hasDates
    hasStuck = hasStuck || other.hasStuck
    roomUp = min(roomUp, other.roomUp)
    roomDown = min(roomDown, other.roomDown)
    roomOut = min(roomOut, other.roomOut)
    roomIn = min(roomIn, other.roomIn)
    low = min(low, other.low)
    high = max(high, other.high)
  }

  /// Chooses the number of days.
  ///
  /// - Parameter isTaken: whether a number is one of the store's.
  mutating func choose(_ function: KeyedFunction, isTaken: (Double) -> Bool) {
    defer { dates = [] }
    isSplit = hasStuck
    makeJitter(function, room: isSplit ? roomOut : roomUp)
    let (up, down) = isSplit ? (roomOut - (growth.last ?? 0), roomIn) : (roomUp - (growth.last ?? 0), roomDown)
    let isUp = up >= 30 * 365 * Self.day ? function(1, 2) & 1 == 0 || down < up / 4 : up >= down
    let room = min((isUp ? up : down) / Self.day, 200_000).rounded(.down)
    guard hasDates, room >= 1 else { return }
    // Beyond the span of all dates no shifted one falls on another.
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
      // A part of a day is added as far as there is room, so that the time of day tells nothing either.
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

  /// Chooses by how much the jitter grows in each week between the first date and the last.
  ///
  /// - Parameter room: the seconds by which the latest date may move at most.
  private mutating func makeJitter(_ function: KeyedFunction, room: Double) {
    growth = []
    let (first, last) = isSplit ? (0, max(abs(low), abs(high))) : (low, high)
    guard hasDates, last > first, last - first < Self.week * Double(Self.weekLimit) else { return }
    var stream = KeyStream(function, seed: 8)
    firstWeek = (first - Self.week * Double(stream.below64(1000)) / 1000).rounded(.down)
    let weeks = Int((last - firstWeek) / Self.week) + 1
    // No more than a tenth of the room, which the shift itself needs too.
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

  /// The jitter of a second: never less than that of an earlier one.
  private func jitter(_ second: Double) -> Double {
    guard let last = growth.last else { return 0 }
    let place = (second - firstWeek) / Self.week
    guard place > 0 else { return 0 }
    guard place < Double(growth.count - 1) else { return last }
    let index = Int(place)
    return (growth[index] + (place - Double(index)) * (growth[index + 1] - growth[index])).rounded(.down)
  }

  /// A fraction of a second, as another one; zero stays.
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

  /// A date that is stored as an integer, shifted.
  func callAsFunction(_ date: Int64) -> Int64 { Int64(self(Double(date))) }
}
