/// The rows with long values that are not written at the first try, because the pages of others may tell more of them.
struct PendingRows {
  /// How many of a kind are kept at most.
  static let limit = 1 << 17

  /// Rows whose long values could not be put together.
  private(set) var broken: [FoundRow] = []

  /// Rows that are whole with a page that something else leads to as well, and of which it is not decided yet whose it is.
  private(set) var rivals: [FoundRow] = []

  /// Rows that are whole, and are looked at together before they are written, because pages changed places.
  var waiting: [WaitingRow] = []

  /// Whether rows that cannot be put together are kept for another try; there is none behind the last one.
  var hasTriesLeft = true

  /// Keeps a row that could not be put together for another try; false where there is none, or no room.
  mutating func keepBroken(_ row: FoundRow) -> Bool {
    guard hasTriesLeft, broken.count < Self.limit else { return false }
    broken.append(row)
    return true
  }

  /// Keeps a row with a page that something else leads to.
  mutating func keepRival(_ row: FoundRow) { rivals.append(row) }

  /// Whether there is room for another rival; where there is none, rows get the pages that they lead to.
  var hasRoomForRivals: Bool { rivals.count < Self.limit }

  /// The rows that could not be put together, which are kept no longer.
  mutating func takeBroken() -> [FoundRow] {
    defer { broken = [] }
    return broken
  }

  /// The rivals, which are kept no longer.
  mutating func takeRivals() -> [FoundRow] {
    defer { rivals = [] }
    return rivals
  }

  /// The rows that wait, which are kept no longer.
  mutating func takeWaiting() -> [WaitingRow] {
    defer { waiting = [] }
    return waiting
  }
}
