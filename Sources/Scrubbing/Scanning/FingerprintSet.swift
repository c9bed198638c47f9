/// A set of 64-bit fingerprints in one flat array.
struct FingerprintSet: Sendable {
  private var slots = [UInt64](repeating: 0, count: 1 << 12)

  /// The number of fingerprints in it.
  private(set) var count = 0

  /// The bytes that it takes.
  var memory: Int { slots.count * 8 }

  /// The place of a fingerprint, or of the gap where it would be.
  @inline(__always)
  private func place(_ fingerprint: UInt64) -> Int {
    let mask = slots.count &- 1
    var index = Int(truncatingIfNeeded: (fingerprint &* 0x9e37_79b9_7f4a_7c15) >> 20) & mask
    while slots[index] != 0, slots[index] != fingerprint { index = (index &+ 1) & mask }
    return index
  }

  /// Whether a fingerprint is in it.
  @inline(__always)
  func contains(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    return slots[place(fingerprint)] == fingerprint
  }

  /// Puts a fingerprint in; whether it was new.
  @discardableResult
  mutating func insert(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    let index = place(fingerprint)
    guard slots[index] == 0 else { return false }
    slots[index] = fingerprint
    count += 1
    if count * 4 > slots.count * 3 { grow() }
    return true
  }

  /// Puts in what is in another set, until there are so many; gives how many found no room.
  @discardableResult
  mutating func add(_ other: FingerprintSet, upTo limit: Int = .max) -> Int64 {
    // Room is made first: what comes in the order of another table would fill a small one from its beginning.
    while min(limit, count + other.count) * 4 > slots.count * 3 { grow() }
    var left: Int64 = 0
    for fingerprint in other.slots where fingerprint != 0 {
      if count < limit { insert(fingerprint) } else if !contains(fingerprint) { left += 1 }
    }
    return left
  }

  private mutating func grow() {
    let old = slots
    slots = [UInt64](repeating: 0, count: old.count * 2)
    for fingerprint in old where fingerprint != 0 { slots[place(fingerprint)] = fingerprint }
  }
}
