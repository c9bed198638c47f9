/// Fingerprints in a table of bounded size.
///
/// Where there are more than find room, those are held that end in a zero bit, half of them, then a quarter.
struct FingerprintTable: Sendable {
  private var table: [UInt64]
  private var count = 0

  /// The bits that are zero in all fingerprints that are held.
  private(set) var sampling: UInt64 = 0

  private let room: Int

  /// The places that so many take at most: a third more, rounded up to a power of two.
  private let mostPlaces: Int

  /// An empty table.
  ///
  /// - Parameter expected: about how many there will be: it begins as large as that takes, as one that grows is there twice for a while.
  init(room: Int, expecting expected: Int = 0) {
    self.room = room
    mostPlaces = max(1 << 12, 1 << (Int.bitWidth - (room * 4 / 3 - 1).leadingZeroBitCount))
    let places = 1 << (Int.bitWidth - max(0, expected - 1).leadingZeroBitCount)
    table = [UInt64](repeating: 0, count: max(1 << 12, min(mostPlaces, places)))
  }

  @inline(__always)
  private func slot(_ key: UInt64) -> Int {
    let mask = table.count &- 1
    var index = Int(truncatingIfNeeded: key >> 20) & mask
    while table[index] != 0, table[index] != key { index = (index &+ 1) & mask }
    return index
  }

  /// Whether a fingerprint, which is not zero, is held.
  func contains(_ key: UInt64) -> Bool { key & sampling == 0 && table[slot(key)] == key }

  /// Holds a fingerprint, which is not zero; false where there is no room for it.
  mutating func insert(_ key: UInt64) -> Bool {
    guard key & sampling == 0 else { return false }
    let place = slot(key)
    guard table[place] == 0 else { return true }
    if count >= room {
      sampling = sampling << 1 | 1
      thin()
      return insert(key)
    }
    table[place] = key
    count += 1
    if count * 10 >= table.count * 7, table.count < mostPlaces { rebuild(table.count * 2) }
    return true
  }

  /// Gives up what is not held any more, in place: from a gap on each that stays moves to the first place that is free for it, which
  /// is never behind its own.
  private mutating func thin() {
    guard let gap = table.firstIndex(of: 0) else { return }
    count = 0
    for step in 1..<table.count {
      let index = (gap &+ step) & (table.count &- 1)
      let key = table[index]
      guard key != 0 else { continue }
      table[index] = 0
      guard key & sampling == 0 else { continue }
      table[slot(key)] = key
      count += 1
    }
  }

  private mutating func rebuild(_ size: Int) {
    let old = table
    table = [UInt64](repeating: 0, count: size)
    count = 0
    for key in old where key != 0 {
      table[slot(key)] = key
      count += 1
    }
  }
}
