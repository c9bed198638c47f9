/// Fingerprints in a table of bounded size.
///
/// Where there are more than find room, those are held that end in a zero bit, half of them, then a quarter.
struct FingerprintTable: Sendable {
  private var table = [UInt64](repeating: 0, count: 1 << 12)
  private var count = 0

  /// The bits that are zero in all fingerprints that are held.
  private(set) var sampling: UInt64 = 0

  /// How many find room.
  private let room: Int

  /// The places that so many take at most: a third more, rounded up to a power of two.
  private let mostPlaces: Int

  /// An empty table.
  init(room: Int) {
    self.room = room
    mostPlaces = max(1 << 12, 1 << (Int.bitWidth - (room * 4 / 3 - 1).leadingZeroBitCount))
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

  /// Gives up what is not held any more, without another table.
  private mutating func thin() {
    var kept: [UInt64] = []
    kept.reserveCapacity(count / 2 + count / 16)
    for place in table.indices {
      if table[place] != 0, table[place] & sampling == 0 { kept.append(table[place]) }
      table[place] = 0
    }
    for key in kept { table[slot(key)] = key }
    count = kept.count
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
