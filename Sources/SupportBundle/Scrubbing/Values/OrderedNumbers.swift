import Platform

/// Order-preserving pseudonyms for indexed numbers, of the same sign and width.
///
/// Short whole numbers are assigned by column. A real gets the pseudonym of its whole part and another fraction, in
/// order. Reals too large for fractions stay between the same powers of two.
struct OrderedNumbers {
  static let limit = 4_000_000

  private var integers = DifferentNumbers<Int64>()
  private var fractions = DifferentNumbers<Double>()
  private var larges = DifferentNumbers<Double>()

  // Sorted and unique after the notes.
  private var originals: [Int64] = []
  private var replaced: [Int64] = []
  private var reals: [Double] = []

  private var large: [Double] = []
  private var largeReplaced: [Double] = []

  /// The unordered numbers beyond the limit.
  private(set) var leftOut: Int64 = 0

  mutating func insert(_ number: Int64) { if !integers.insert(number, limit: Self.limit) { leftOut += 1 } }

  mutating func insert(real number: Double) {
    let whole = Self.whole(number)
    guard number.isFinite,
      whole == nil ? larges.insert(number, limit: Self.limit) : fractions.insert(number, limit: Self.limit)
    else {
      leftOut += 1
      return
    }
    if let whole, NumberRegion.isLong(whole) { insert(whole) }
  }

  mutating func take(_ other: inout OrderedNumbers) {
    let taken = other
    other = OrderedNumbers()
    for number in taken.integers.numbers { insert(number) }
    for number in taken.fractions.numbers { insert(real: number) }
    for number in taken.larges.numbers { insert(real: number) }
    leftOut += taken.leftOut
  }

  /// Returns a real's whole part; nil if too large for fractions.
  static func whole(_ number: Double) -> Int64? {
    abs(number) < 4_503_599_627_370_496 ? Int64(number.rounded(.down)) : nil
  }

  /// Sorts and assigns pseudonyms.
  ///
  /// - Parameters:
  ///   - isFree: whether a number of a width may be a pseudonym; ignored if none is.
  ///   - isRealFree: the same for a real.
  mutating func assign(
    _ function: KeyedFunction, isFree: (_ number: Int64, _ width: Int) -> Bool, isRealFree: (_ number: Double) -> Bool
  ) {
    integers.settle()
    fractions.settle()
    larges.settle()
    (originals, reals, large) = (integers.numbers, fractions.numbers, larges.numbers)
    (integers, fractions, larges) = (DifferentNumbers(), DifferentNumbers(), DifferentNumbers())
    replaced.reserveCapacity(originals.count)
    var index = 0
    while index < originals.count {
      let region = NumberRegion.region(of: originals[index])
      let bytes = NumberRegion.width(region.lowerBound > 0 ? region.upperBound : region.lowerBound)
      var end = index
      while end < originals.count, region.contains(originals[end]) { end += 1 }
      var stream = KeyStream(function, seed: UInt64(bitPattern: region.lowerBound))
      Self.spread(end - index, over: UInt64(bitPattern: region.upperBound &- region.lowerBound), &stream) { place in
        isFree(region.lowerBound &+ Int64(bitPattern: place), bytes)
      } take: { place in
        replaced.append(region.lowerBound &+ Int64(bitPattern: place))
      }
      index = end
    }
    assignLarge(function, isRealFree)
  }

  /// Assigns reals without fractions by magnitude.
  private mutating func assignLarge(_ function: KeyedFunction, _ isFree: (Double) -> Bool) {
    largeReplaced = large
    let firstPositive = large.firstIndex { $0 > 0 } ?? large.count
    for places in [Array((0..<firstPositive).reversed()), Array(firstPositive..<large.count)] {
      var index = 0
      while index < places.count {
        let start = large[places[index]].binade.bitPattern
        var end = index
        while end < places.count, large[places[end]].binade.bitPattern == start { end += 1 }
        var stream = KeyStream(function, seed: start)
        var next = index
        Self.spread(end - index, over: 1 << 52 - 1, &stream) { place in
          isFree(Double(bitPattern: start + place))
        } take: { place in
          largeReplaced[places[next]] = Double(bitPattern: start + place)
          next += 1
        }
        index = end
      }
    }
  }

  /// Chooses sorted places at random distances.
  static func spread(
    _ count: Int, over last: UInt64, _ stream: inout KeyStream, isFree: (UInt64) -> Bool, take: (UInt64) -> Void
  ) {
    var next: UInt64 = 0
    var free = last - UInt64(count - 1)
    for number in 0..<count {
      let gap = min(free, stream.below64(free / UInt64(count - number) * 2 + 1))
      next += gap
      free -= gap
      var tries = 0
      while tries < 256, free > 0, !isFree(next) {
        next += 1
        free -= 1
        tries += 1
      }
      take(next)
      next &+= 1
    }
  }

  func pseudonym(_ number: Int64) -> Int64? { Self.rank(of: number, in: originals).map { replaced[$0] } }

  /// Returns a real's rank.
  func place(of number: Double) -> Int? { Self.rank(of: number, in: reals) }

  func pseudonym(large number: Double) -> Double? { Self.rank(of: number, in: large).map { largeReplaced[$0] } }

  /// Returns a new pseudonym for the real at a rank on each call.
  ///
  /// - Parameter short: the pseudonym of a short whole number.
  func pseudonym(_ place: Int, _ stream: inout KeyStream, short: (Int64) -> Int64) -> Double {
    let number = reals[place]
    guard let whole = Self.whole(number) else { return number }
    let base = NumberRegion.isLong(whole) ? pseudonym(whole) ?? whole : short(whole)
    guard number != Double(whole) else { return Double(base) }
    var low = Self.place(of: Double(whole), in: reals)
    if reals[low] == Double(whole) { low += 1 }
    let high = Self.place(of: Double(whole) + 1, in: reals)
    let share = 0.05 + 0.9 * Double(stream.below64(1 << 30)) / Double(1 << 30)
    return Double(base) + (Double(place - low) + share) / Double(max(1, high - low))
  }

  private static func place<Number: Comparable>(of number: Number, in numbers: [Number]) -> Int {
    numbers.partitioningIndex { !($0 < number) }
  }

  static func rank<Number: Comparable>(of number: Number, in numbers: [Number]) -> Int? {
    let place = place(of: number, in: numbers)
    return place < numbers.count && numbers[place] == number ? place : nil
  }
}

/// A set of numbers, deduplicated whenever it has grown by half.
package struct DifferentNumbers<Number: Comparable & Sendable>: Sendable {
  /// Sorted after ``settle()``.
  package private(set) var numbers: [Number] = []

  private var settled = 0

  package init() {}

  private static var least: Int { 1 << 12 }

  /// Inserts a number; false if full.
  ///
  /// - Parameter limit: the capacity, exceeded by up to a half.
  package mutating func insert(_ number: Number, limit: Int) -> Bool {
    guard settled < limit else { return false }
    if numbers.count >= max(Self.least, settled + settled / 2) {
      settle()
      guard settled < limit else { return false }
      numbers.reserveCapacity(max(Self.least, settled + settled / 2))
    }
    numbers.append(number)
    return true
  }

  package mutating func settle() {
    numbers.sort()
    var kept = 0
    for index in numbers.indices where kept == 0 || numbers[index] != numbers[kept - 1] {
      numbers[kept] = numbers[index]
      kept += 1
    }
    numbers.removeSubrange(kept...)
    settled = kept
  }
}
