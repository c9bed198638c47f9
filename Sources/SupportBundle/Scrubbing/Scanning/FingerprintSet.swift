/// A compact set of 64-bit fingerprints.
///
/// A full hash table is merged into runs: sorted fingerprints with the same first 16 bits, stored as the next 32. False
/// positives need equal 48 bits: with thirty million members, one lookup in nine million. With a table of a sixteenth
/// of the runs, a member takes five bytes; merging rebuilds a small part at a time.
package struct FingerprintSet: Sendable {
  /// 256 consecutive runs.
  private struct Stretch: Sendable {
    var rests: [UInt32] = []

    /// The start of each run, and the last end.
    var starts = [UInt32](repeating: 0, count: FingerprintSet.runsOfStretch + 1)
  }

  /// The hash table; 0 is empty.
  private var slots = [UInt64](repeating: 0, count: 1 << 12)
  private var waiting = 0

  private var stretches: [Stretch] = []
  private var settled = 0

  /// Hides the runs of unkeyed fingerprints.
  private let salt: UInt64

  /// The fewest members before merging.
  private static let leastOfRuns = 196_608

  private static let runsOfStretch = 256
  private static let stretchCount = 256

  package init(salt: UInt64 = 0) { self.salt = salt }

  package var count: Int { settled + waiting }

  package var memory: Int {
    slots.capacity * 8 + stretches.reduce(0) { $0 + 4 * ($1.rests.capacity + $1.starts.capacity) }
  }

  // MARK: Places

  /// Returns the slot of a fingerprint, or an empty one.
  @inline(__always)
  private func place(_ fingerprint: UInt64) -> Int {
    let mask = slots.count &- 1
    var index = Int(truncatingIfNeeded: (fingerprint &* 0x9e37_79b9_7f4a_7c15) >> 20) & mask
    while slots[index] != 0, slots[index] != fingerprint { index = (index &+ 1) & mask }
    return index
  }

  /// Returns the run (16 bits) and the stored part (32 bits).
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

  /// Searches a run, near the expected place of uniform values.
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

  @inline(__always)
  package func contains(_ fingerprint: UInt64) -> Bool {
    let fingerprint = fingerprint == 0 ? 1 : fingerprint
    if waiting > 0, slots[place(fingerprint)] == fingerprint { return true }
    return settled > 0 && isSettled(fingerprint)
  }

  /// Inserts a fingerprint; true if new.
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

  /// Merges after the last insertion.
  package mutating func seal() {
    if settled > 0 || waiting > Self.leastOfRuns / 4 {
      settle()
      slots = [UInt64](repeating: 0, count: 1 << 12)
    }
  }

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

  /// Merges sorted values; returns those beyond the limit.
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

  /// Moves the members of a set with the same salt; returns those beyond the limit.
  @discardableResult
  package mutating func take(_ other: inout FingerprintSet, upTo limit: Int = .max) -> Int64 {
    var left: Int64 = 0
    if other.settled > 0 {
      settle()
      // Freeing merged stretches avoids a third copy.
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

  /// Restores the values of a stretch.
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
