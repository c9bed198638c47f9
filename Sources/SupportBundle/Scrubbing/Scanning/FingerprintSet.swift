/// A set of 64-bit fingerprints in little memory.
///
/// What comes in is held as it is in a flat table, until that is full. Then it goes into runs: fingerprints whose first 16 bits
/// are the same are one run, in order, of which the next 32 bits are held each. Two fingerprints are told apart by 48 bits then:
/// where thirty million are held, one lookup in nine million finds what is none of them. With a table of a sixteenth of the
/// runs that takes five bytes a fingerprint, and no more than a small part of the runs is made anew at a time.
package struct FingerprintSet: Sendable {
  /// A stretch of the runs: 256 of them, one after the other.
  private struct Stretch: Sendable {
    /// The second halves of the fingerprints, run by run.
    var rests: [UInt32] = []

    /// Where each run begins, and the end of the last.
    var starts = [UInt32](repeating: 0, count: FingerprintSet.runsOfStretch + 1)
  }

  /// What is not in runs yet; a place without a fingerprint is 0.
  private var slots = [UInt64](repeating: 0, count: 1 << 12)
  private var waiting = 0

  private var stretches: [Stretch] = []
  private var settled = 0

  /// What makes it unknown in which run a fingerprint is that is not keyed itself.
  private let salt: UInt64

  /// The fingerprints that are held as they are at least before they go into runs.
  private static let leastOfRuns = 196_608

  private static let runsOfStretch = 256
  private static let stretchCount = 256

  /// An empty set.
  package init(salt: UInt64 = 0) { self.salt = salt }

  /// The number of fingerprints in it.
  package var count: Int { settled + waiting }

  /// The bytes that it takes.
  package var memory: Int {
    slots.capacity * 8 + stretches.reduce(0) { $0 + 4 * ($1.rests.capacity + $1.starts.capacity) }
  }

  // MARK: Places

  /// The place of a fingerprint in the table, or of the gap where it would be.
  @inline(__always)
  private func place(_ fingerprint: UInt64) -> Int {
    let mask = slots.count &- 1
    var index = Int(truncatingIfNeeded: (fingerprint &* 0x9e37_79b9_7f4a_7c15) >> 20) & mask
    while slots[index] != 0, slots[index] != fingerprint { index = (index &+ 1) & mask }
    return index
  }

  /// A fingerprint's run, in the first 16 bits, and what is held of it there, in the next 32.
  @inline(__always)
  private func mixed(_ fingerprint: UInt64) -> UInt64 {
    var bits = fingerprint ^ salt
    bits = (bits ^ bits &>> 33) &* 0xff51_afd7_ed55_8ccd
    bits = (bits ^ bits &>> 33) &* 0xc4ce_b9fe_1a85_ec53
    return (bits ^ bits &>> 33) & ~0xffff
  }

  @inline(__always)
  private static func rest(_ mixed: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: mixed &>> 16) }

  @inline(__always)
  private static func run(_ mixed: UInt64) -> Int { Int(truncatingIfNeeded: mixed &>> 48) & (runsOfStretch &- 1) }

  @inline(__always)
  private static func stretch(_ mixed: UInt64) -> Int { Int(truncatingIfNeeded: mixed &>> 56) }

  /// Whether what is held of a fingerprint is in a run.
  ///
  /// They are spread evenly, so that the search begins about where it ends.
  private static func contains(_ rest: UInt32, _ rests: [UInt32], from start: Int, to end: Int) -> Bool {
    var index = start &+ Int(truncatingIfNeeded: (UInt64(rest) &* UInt64(end &- start)) &>> 32)
    while index > start, rests[index &- 1] >= rest { index &-= 1 }
    while index < end, rests[index] < rest { index &+= 1 }
    return index < end && rests[index] == rest
  }

  private func isSettled(_ fingerprint: UInt64) -> Bool {
    let bits = mixed(fingerprint)
    let (stretch, run) = (Self.stretch(bits), Self.run(bits))
    let (start, end) = (Int(stretches[stretch].starts[run]), Int(stretches[stretch].starts[run &+ 1]))
    return Self.contains(Self.rest(bits), stretches[stretch].rests, from: start, to: end)
  }

  // MARK: Members

  /// Whether a fingerprint is in it.
  @inline(__always)
  package func contains(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    if waiting > 0, slots[place(fingerprint)] == fingerprint { return true }
    return settled > 0 && isSettled(fingerprint)
  }

  /// Puts a fingerprint in; whether it was new.
  @discardableResult
  package mutating func insert(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    let index = place(fingerprint)
    guard slots[index] == 0, settled == 0 || !isSettled(fingerprint) else { return false }
    slots[index] = fingerprint
    waiting += 1
    if waiting * 4 > slots.count * 3 { grow() }
    return true
  }

  private mutating func grow() {
    guard slots.count * 3 / 4 < max(Self.leastOfRuns, settled / 16) else { return settle() }
    let old = slots
    slots = [UInt64](repeating: 0, count: old.count * 2)
    for fingerprint in old where fingerprint != 0 { slots[place(fingerprint)] = fingerprint }
  }

  /// Puts all into runs where there are enough for that, once nothing more comes.
  package mutating func seal() {
    if settled > 0 || waiting > Self.leastOfRuns / 4 {
      settle()
      slots = [UInt64](repeating: 0, count: 1 << 12)
    }
  }

  /// Puts what is in the table into the runs.
  private mutating func settle() {
    guard waiting > 0 else { return }
    var added: [UInt64] = []
    added.reserveCapacity(waiting)
    for index in slots.indices where slots[index] != 0 {
      added.append(mixed(slots[index]))
      slots[index] = 0
    }
    waiting = 0
    added.sort()
    _ = merge(added[...], upTo: .max)
  }

  /// Merges what is in order into the runs; gives how many found no room.
  private mutating func merge(_ added: ArraySlice<UInt64>, upTo limit: Int) -> Int {
    if stretches.isEmpty { stretches = [Stretch](repeating: Stretch(), count: Self.stretchCount) }
    var left = 0
    var next = added.startIndex
    while next < added.endIndex {
      let number = Self.stretch(added[next])
      let first = next
      while next < added.endIndex, Self.stretch(added[next]) == number { next += 1 }
      left += merge(added[first..<next], into: number, upTo: limit)
    }
    return left
  }

  private mutating func merge(_ added: ArraySlice<UInt64>, into number: Int, upTo limit: Int) -> Int {
    var old = Stretch()
    swap(&old, &stretches[number])
    var new = Stretch()
    new.rests.reserveCapacity(old.rests.count + added.count)
    var (place, next, left) = (0, added.startIndex, 0)
    for run in 0..<Self.runsOfStretch {
      new.starts[run] = UInt32(truncatingIfNeeded: new.rests.count)
      let end = Int(old.starts[run + 1])
      while next < added.endIndex, Self.run(added[next]) == run {
        let rest = Self.rest(added[next])
        next += 1
        while place < end, old.rests[place] < rest {
          new.rests.append(old.rests[place])
          place += 1
        }
        if place < end, old.rests[place] == rest { continue }
        if new.rests.count > Int(new.starts[run]), new.rests.last == rest { continue }
        guard settled < limit else {
          left += 1
          continue
        }
        new.rests.append(rest)
        settled += 1
      }
      new.rests.append(contentsOf: old.rests[place..<end])
      place = end
    }
    new.starts[Self.runsOfStretch] = UInt32(truncatingIfNeeded: new.rests.count)
    stretches[number] = new
    return left
  }

  /// Takes in what is in another set of the same salt, which is empty then, until there are so many; gives how many found no
  /// room.
  @discardableResult
  package mutating func take(_ other: inout FingerprintSet, upTo limit: Int = .max) -> Int64 {
    var left: Int64 = 0
    if other.settled > 0 {
      settle()
      // Stretch by stretch, and each is given up when it was taken in, so that no more memory is needed than for both.
      for number in other.stretches.indices {
        var taken = Stretch()
        swap(&taken, &other.stretches[number])
        left += Int64(merge(Self.mixed(taken, number)[...], upTo: limit))
      }
    }
    let held = other.slots
    other = FingerprintSet(salt: other.salt)
    for fingerprint in held where fingerprint != 0 {
      if count < limit { insert(fingerprint) } else if !contains(fingerprint) { left += 1 }
    }
    return left
  }

  /// What is in a stretch, as it went into it.
  private static func mixed(_ stretch: Stretch, _ number: Int) -> [UInt64] {
    var bits: [UInt64] = []
    bits.reserveCapacity(stretch.rests.count)
    for run in 0..<runsOfStretch {
      let first = UInt64(number) << 56 | UInt64(run) << 48
      for place in Int(stretch.starts[run])..<Int(stretch.starts[run + 1]) {
        bits.append(first | UInt64(stretch.rests[place]) << 16)
      }
    }
    return bits
  }
}
