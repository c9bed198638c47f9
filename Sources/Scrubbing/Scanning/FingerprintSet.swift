/// A set of 64-bit fingerprints in little memory.
///
/// Up to some hundred thousand are held as they are, in one flat table. More are held in runs: those whose first 16 bits are
/// the same are one run, in order, and of each the next 32 bits are held. Two fingerprints are told apart by 48 bits then: where
/// thirty million are held, one lookup in nine million finds what is none of them.
struct FingerprintSet: Sendable {
  /// The table while there are few; a place without a fingerprint is 0. Empty when there are runs.
  private var slots = [UInt64](repeating: 0, count: 1 << 12)

  /// The runs, by the first bits; empty while there are few.
  private var runs: [[UInt32]] = []

  /// What makes it unknown in which run a fingerprint is that is not keyed itself.
  private let salt: UInt64

  /// The number of fingerprints in it.
  private(set) var count = 0

  /// The largest table; one that is full becomes runs.
  private static let mostSlots = 1 << 18

  private static let runBits: UInt64 = 16

  /// An empty set.
  init(salt: UInt64 = 0) { self.salt = salt }

  /// The bytes that it takes.
  var memory: Int { slots.capacity * 8 + runs.reduce(0) { $0 + $1.capacity * 4 + 40 } }

  private var hasRuns: Bool { !runs.isEmpty }

  /// The place of a fingerprint in the table, or of the gap where it would be.
  @inline(__always)
  private func place(_ fingerprint: UInt64) -> Int {
    let mask = slots.count &- 1
    var index = Int(truncatingIfNeeded: (fingerprint &* 0x9e37_79b9_7f4a_7c15) >> 20) & mask
    while slots[index] != 0, slots[index] != fingerprint { index = (index &+ 1) & mask }
    return index
  }

  /// The run of a fingerprint, and what is held of it there.
  @inline(__always)
  private func halves(_ fingerprint: UInt64) -> (run: Int, rest: UInt32) {
    var bits = fingerprint ^ salt
    bits = (bits ^ bits &>> 33) &* 0xff51_afd7_ed55_8ccd
    bits = (bits ^ bits &>> 33) &* 0xc4ce_b9fe_1a85_ec53
    bits ^= bits &>> 33
    return (
      Int(truncatingIfNeeded: bits &>> (64 &- Self.runBits)),
      UInt32(truncatingIfNeeded: bits &>> (32 &- Self.runBits))
    )
  }

  /// How many of a run come before one.
  ///
  /// They are spread evenly, so that the search begins about where it ends.
  @inline(__always)
  private static func place(_ rest: UInt32, in run: [UInt32]) -> Int {
    var index = Int(truncatingIfNeeded: (UInt64(rest) &* UInt64(run.count)) &>> 32)
    while index > 0, run[index &- 1] >= rest { index &-= 1 }
    while index < run.count, run[index] < rest { index &+= 1 }
    return index
  }

  /// Whether a fingerprint is in it.
  @inline(__always)
  func contains(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    return hasRuns ? runsContain(fingerprint) : slots[place(fingerprint)] == fingerprint
  }

  private func runsContain(_ fingerprint: UInt64) -> Bool {
    let (run, rest) = halves(fingerprint)
    let place = Self.place(rest, in: runs[run])
    return place < runs[run].count && runs[run][place] == rest
  }

  /// Puts a fingerprint in; whether it was new.
  @discardableResult
  mutating func insert(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    guard !hasRuns else { return insertIntoRun(fingerprint) }
    let index = place(fingerprint)
    guard slots[index] == 0 else { return false }
    slots[index] = fingerprint
    count += 1
    if count * 4 > slots.count * 3 { grow() }
    return true
  }

  private mutating func insertIntoRun(_ fingerprint: UInt64) -> Bool {
    let (number, rest) = halves(fingerprint)
    let place = Self.place(rest, in: runs[number])
    let held = runs[number].count
    if place < held, runs[number][place] == rest { return false }
    // Room for an eighth more: twice as much would be half empty on average.
    if held == runs[number].capacity { runs[number].reserveCapacity(held + max(4, held / 8)) }
    runs[number].insert(rest, at: place)
    count += 1
    return true
  }

  /// Takes in what is in another set, which is empty then, until there are so many; gives how many found no room.
  @discardableResult
  mutating func take(_ other: inout FingerprintSet, upTo limit: Int = .max) -> Int64 {
    guard other.hasRuns else {
      let held = other.slots
      other = FingerprintSet(salt: other.salt)
      var left: Int64 = 0
      for fingerprint in held where fingerprint != 0 {
        if count < limit { insert(fingerprint) } else if !contains(fingerprint) { left += 1 }
      }
      return left
    }
    if !hasRuns { makeRuns() }
    var left: Int64 = 0
    // Run by run, and each is given up when it was taken in, so that no more memory is needed than for both.
    for number in runs.indices {
      var run: [UInt32] = []
      swap(&run, &other.runs[number])
      left += Int64(merge(run, into: number, upTo: limit))
    }
    other = FingerprintSet(salt: other.salt)
    return left
  }

  /// Merges a run into the one of the same number; gives how many found no room.
  private mutating func merge(_ added: [UInt32], into number: Int, upTo limit: Int) -> Int {
    guard !added.isEmpty else { return 0 }
    var old: [UInt32] = []
    swap(&old, &runs[number])
    var merged: [UInt32] = []
    merged.reserveCapacity(old.count + added.count)
    var (first, left) = (0, 0)
    for rest in added {
      while first < old.count, old[first] < rest {
        merged.append(old[first])
        first += 1
      }
      if first < old.count, old[first] == rest { continue }
      guard count < limit else {
        left += 1
        continue
      }
      merged.append(rest)
      count += 1
    }
    merged.append(contentsOf: old[first...])
    runs[number] = merged
    return left
  }

  private mutating func grow() {
    guard slots.count < Self.mostSlots else { return makeRuns() }
    let old = slots
    slots = [UInt64](repeating: 0, count: old.count * 2)
    for fingerprint in old where fingerprint != 0 { slots[place(fingerprint)] = fingerprint }
  }

  /// Puts all fingerprints of the table into runs.
  private mutating func makeRuns() {
    let old = slots
    slots = []
    runs = [[UInt32]](repeating: [], count: 1 << Int(Self.runBits))
    count = 0
    for fingerprint in old where fingerprint != 0 { _ = insertIntoRun(fingerprint) }
  }
}
