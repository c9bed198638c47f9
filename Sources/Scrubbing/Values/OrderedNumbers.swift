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

  /// Adds a real, or an integer of a column that has reals.
  mutating func insert(real number: Double) {
    guard number.isFinite, reals.count < Self.limit else {
      leftOut += 1
      return
    }
    if found.insert(number.bitPattern | 1 << 63 ^ 0x5555) { reals.append(number) }
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

  /// The pseudonym of a real: a number between it and the next one, in the same power of two.
  func pseudonym(real number: Double, _ function: KeyedFunction) -> Double? {
    guard !reals.isEmpty else { return nil }
    let place = Self.place(of: number, in: reals)
    guard place < reals.count, reals[place] == number, number != 0 else { return nil }
    // Numbers of one sign and power of two are in the order of their bits.
    let bits = number.bitPattern
    var limit = (bits | (1 << 52 - 1)) &+ 1
    var low = bits
    if number > 0 {
      if place + 1 < reals.count { limit = min(limit, reals[place + 1].bitPattern) }
    } else {
      // Of negative numbers the next one has smaller bits.
      low = bits & ~(1 << 52 - 1)
      if place + 1 < reals.count, reals[place + 1] < 0 { low = max(low, reals[place + 1].bitPattern &+ 1) }
      limit = bits &+ 1
    }
    guard limit > low else { return number }
    var stream = KeyStream(function, seed: bits)
    return Double(bitPattern: low &+ stream.below64(limit &- low))
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
