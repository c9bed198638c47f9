/// Pseudonyms that keep the order of the numbers of indexed columns, each in its region of the same sign and width.
///
/// Numbers of up to six digits stay.
struct OrderedNumbers {
  /// The numbers that are held at most.
  static let limit = 2_000_000

  private var found = FingerprintSet()
  private var originals: [Int64] = []
  private var replaced: [Int64] = []
  private var reals: [Double] = []

  /// The numbers that found no room, whose order is not kept.
  private(set) var leftOut: Int64 = 0

  /// The bytes that it takes.
  var memory: Int { found.memory + (originals.capacity + replaced.capacity + reals.capacity) * 8 }

  /// Adds an integer of more than six digits.
  mutating func insert(_ number: Int64) {
    guard originals.count < Self.limit else {
      leftOut += 1
      return
    }
    if found.insert(UInt64(bitPattern: number) &* 2) { originals.append(number) }
  }

  /// Adds a real.
  mutating func insert(real number: Double) {
    guard number.isFinite, reals.count < Self.limit else {
      leftOut += 1
      return
    }
    guard found.insert(number.bitPattern | 1 << 63 ^ 0x5555) else { return }
    reals.append(number)
    // The whole number below it is replaced like any other.
    if let whole = Self.whole(number), NumberRegion.isLong(whole) { insert(whole) }
  }

  /// The whole number below a real; nil where reals have no fractions any more.
  private static func whole(_ number: Double) -> Int64? {
    abs(number) < 4_503_599_627_370_496 ? Int64(number.rounded(.down)) : nil
  }

  /// Puts the numbers in order and gives each its pseudonym.
  mutating func assign(_ function: KeyedFunction) {
    found = FingerprintSet()
    originals.sort()
    reals.sort()
    replaced.reserveCapacity(originals.count)
    var index = 0
    while index < originals.count {
      let region = NumberRegion.region(of: originals[index])
      var end = index
      while end < originals.count, region.contains(originals[end]) { end += 1 }
      var next = region.lowerBound
      let width = UInt64(bitPattern: region.upperBound &- region.lowerBound)
      let free = width - UInt64(end - index - 1)
      var stream = KeyStream(function, seed: UInt64(bitPattern: region.lowerBound))
      let step = free / UInt64(end - index)
      while index < end {
        next = next &+ Int64(bitPattern: stream.below64(step + 1))
        replaced.append(next)
        next = next &+ 1
        index += 1
      }
    }
  }

  /// The pseudonym of an integer; nil where it is not among those.
  func pseudonym(_ number: Int64) -> Int64? {
    guard !originals.isEmpty else { return nil }
    let place = Self.place(of: number, in: originals)
    return place < originals.count && originals[place] == number ? replaced[place] : nil
  }

  /// The pseudonym of a real: that of the whole number below it, and a fraction between its own and the next one's.
  func pseudonym(real number: Double, _ function: KeyedFunction) -> Double? {
    let place = Self.place(of: number, in: reals)
    guard place < reals.count, reals[place] == number, number != 0 else { return nil }
    guard let whole = Self.whole(number) else { return number }
    let base = NumberRegion.isLong(whole) ? pseudonym(whole) ?? whole : whole
    let fraction = number - Double(whole)
    var next = 1.0
    if place + 1 < reals.count, Self.whole(reals[place + 1]) == whole { next = reals[place + 1] - Double(whole) }
    var stream = KeyStream(function, seed: number.bitPattern)
    let share = Double(stream.below64(1 << 20)) / Double(1 << 20)
    return Double(base) + fraction + (next - fraction) * share
  }

  private static func place<Number: Comparable>(of number: Number, in numbers: [Number]) -> Int {
    var low = 0
    var high = numbers.count
    while low < high {
      let middle = (low + high) / 2
      if numbers[middle] < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
