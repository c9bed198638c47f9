/// A set of 64-bit fingerprints in one flat array, with a number beside each where that is wanted.
struct FingerprintSet: Sendable {
  private var slots: [UInt64]
  private var extra: [UInt32]
  private let hasExtra: Bool

  /// The number of fingerprints in it.
  private(set) var count = 0

  init(hasExtra: Bool = false) {
    slots = [UInt64](repeating: 0, count: 1 << 12)
    extra = hasExtra ? [UInt32](repeating: 0, count: 1 << 12) : []
    self.hasExtra = hasExtra
  }

  /// The bytes that it takes.
  var memory: Int { slots.count * (hasExtra ? 12 : 8) }

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

  /// The number beside a fingerprint; nil where it is not in the set.
  @inline(__always)
  func number(of fingerprint: UInt64) -> UInt32? {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    let index = place(fingerprint)
    return slots[index] == fingerprint ? extra[index] : nil
  }

  /// Puts a fingerprint in, or adds bits to the number of one that is there; whether it was new.
  @discardableResult
  mutating func insert(_ fingerprint: UInt64, adding bits: UInt32 = 0) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    let index = place(fingerprint)
    if slots[index] == fingerprint {
      if hasExtra { extra[index] |= bits }
      return false
    }
    slots[index] = fingerprint
    if hasExtra { extra[index] = bits }
    count += 1
    if count * 4 > slots.count * 3 { grow() }
    return true
  }

  /// Puts in what is in another set, without the numbers beside.
  mutating func add(_ other: FingerprintSet) {
    for fingerprint in other.slots where fingerprint != 0 { insert(fingerprint) }
  }

  private mutating func grow() {
    let old = slots
    let oldExtra = extra
    slots = [UInt64](repeating: 0, count: old.count * 2)
    if hasExtra { extra = [UInt32](repeating: 0, count: old.count * 2) }
    for (index, fingerprint) in old.enumerated() where fingerprint != 0 {
      let place = place(fingerprint)
      slots[place] = fingerprint
      if hasExtra { extra[place] = oldExtra[index] }
    }
  }
}
