import Platform

/// The integers of columns that share pseudonyms: one column, or several that refer to each other.
///
/// Short integers have up to six digits. Long ones share pseudonyms in the whole store; here it is only decided whether
/// they stay.
struct NumberDomains: Sendable {
  struct Domain: Sendable {
    /// The reason to keep all values: flags, or use in an expression.
    var fixed: ScrubReport.Staying.Reason?

    var isOrdered = false

    /// Whether it holds rowids.
    var isKey = false

    /// Whether the schema declares a key or reference.
    var isLink = false

    fileprivate(set) var count: Int64 = 0

    /// The rows numbered by it.
    fileprivate(set) var rows: Int64 = 0

    fileprivate var small = ShortNumbers()

    fileprivate var long = NumberRuns(limit: OrderedNumbers.limit)

    fileprivate(set) var largest: UInt64 = 0

    fileprivate(set) var keepsShort = true

    fileprivate(set) var keepsLong = false

    fileprivate var originals: [Int32] = []
    fileprivate var replaced: [Int32] = []

    /// Whether it holds only 0 and 1, which have no alternatives.
    fileprivate var isBinary = false

    init(fixed: ScrubReport.Staying.Reason? = nil, isOrdered: Bool = false, isKey: Bool = false) {
      self.fixed = fixed
      self.isOrdered = isOrdered
      self.isKey = isKey
    }
  }

  /// Enough for all short integers.
  private static let limit = 2_000_000

  /// The most distinct values of a column with few.
  private static let fewValues = 12

  /// Their least average frequency.
  private static let frequency: Int64 = 8

  /// The largest ratio of rowids to rows if software assigns them.
  private static let sparseness: Int64 = 16

  private(set) var domains: [Domain]

  private(set) var leftOut: Int64 = 0

  init(_ domains: [Domain]) { self.domains = domains }

  init(like other: NumberDomains) {
    domains = other.domains.map { Domain(fixed: $0.fixed, isOrdered: $0.isOrdered, isKey: $0.isKey) }
  }

  // MARK: Notes

  /// Notes a short integer, or the whole part of a real.
  mutating func note(short number: Int64, _ domain: Int, isCopy: Bool) {
    guard domain >= 0 else { return }
    if !isCopy { domains[domain].count += 1 }
    guard !domains[domain].isKey, let number = Int32(exactly: number) else { return }
    // Unordered groups need only a few.
    if !domains[domain].isOrdered, domains[domain].small.count > Self.fewValues { return }
    guard domains[domain].small.count < Self.limit else {
      if domains[domain].isOrdered, !domains[domain].small.contains(number) { leftOut += 1 }
      return
    }
    domains[domain].small.insert(number)
  }

  mutating func note(key number: Int64, _ domain: Int) {
    guard domain >= 0 else { return }
    domains[domain].largest = max(domains[domain].largest, number.magnitude)
    domains[domain].long.insert(number)
  }

  mutating func noteRow(_ domain: Int) { if domain >= 0 { domains[domain].rows += 1 } }

  /// Merges other notes; rowid counts are dropped.
  mutating func take(_ other: inout NumberDomains) {
    for place in other.domains.indices where place < domains.count {
      domains[place].count += other.domains[place].count
      domains[place].rows += other.domains[place].rows
      domains[place].small.formUnion(other.domains[place].small)
      domains[place].long.take(&other.domains[place].long)
      domains[place].largest = max(domains[place].largest, other.domains[place].largest)
    }
    leftOut += other.leftOut
  }

  // MARK: Decisions

  /// Decides what stays, and assigns pseudonyms to short integers that are ordered or few.
  mutating func decide(_ function: KeyedFunction) {
    for place in domains.indices {
      let domain = domains[place]
      domains[place].keepsShort = domain.isKey || domain.fixed != nil
      let isFew = domain.small.count <= Self.fewValues && domain.count >= Self.frequency * Int64(domain.small.count)
      domains[place].isBinary = domain.small.sorted().allSatisfy { $0 == 0 || $0 == 1 }
      let reach = domain.rows.multipliedReportingOverflow(by: Self.sparseness)
      domains[place].keepsLong =
        domain.isKey && domain.rows > 0 && !reach.overflow && domain.largest <= UInt64(max(0, reach.partialValue))
      if !domains[place].keepsShort {
        if domain.isOrdered { assign(place, function) } else if isFew { exchange(place, function) }
      }
      domains[place].small = ShortNumbers()
    }
  }

  private mutating func assign(_ place: Int, _ function: KeyedFunction) {
    let originals = domains[place].small.sorted()
    var replaced: [Int32] = []
    replaced.reserveCapacity(originals.count)
    var index = 0
    while index < originals.count {
      let region = NumberRegion.shortRegion(of: Int64(originals[index]))
      var end = index
      while end < originals.count, region.contains(Int64(originals[end])) { end += 1 }
      var stream = KeyStream(function, seed: UInt64(bitPattern: region.lowerBound) ^ UInt64(place) << 40)
      OrderedNumbers.spread(end - index, over: UInt64(region.upperBound - region.lowerBound), &stream) { _ in
        true
      } take: {
        replaced.append(Int32(truncatingIfNeeded: region.lowerBound + Int64($0)))
      }
      index = end
    }
    domains[place].originals = originals
    domains[place].replaced = replaced
  }

  /// Permutes few integers within each size, so that none stays.
  private mutating func exchange(_ place: Int, _ function: KeyedFunction) {
    let regions = Dictionary(grouping: domains[place].small.sorted()) { NumberRegion.shortRegion(of: Int64($0)) }
    var pairs: [(Int32, Int32)] = []
    for (region, numbers) in regions where numbers.count > 1 {
      var circle = numbers
      var stream = KeyStream(function, seed: UInt64(bitPattern: region.lowerBound) ^ UInt64(place) << 40 ^ 0x6369_7263)
      for last in stride(from: circle.count - 1, to: 0, by: -1) {
        circle.swapAt(last, Int(stream.below64(UInt64(last + 1))))
      }
      pairs += zip(circle, circle.dropFirst() + circle.prefix(1))
    }
    pairs.sort { $0.0 < $1.0 }
    domains[place].originals = pairs.map(\.0)
    domains[place].replaced = pairs.map(\.1)
  }

  // MARK: Answers

  /// Returns the reason to keep all short integers.
  func staying(_ domain: Int) -> ScrubReport.Staying.Reason? {
    guard domain >= 0, domains[domain].count > 0, !domains[domain].isLink else { return nil }
    if domains[domain].keepsShort { return domains[domain].fixed ?? .key }
    return domains[domain].isBinary ? .flag : nil
  }

  func keeps(long domain: Int) -> Bool { domain >= 0 && domains[domain].keepsLong }

  /// Returns the replaced long rowids, and clears all.
  mutating func takeReplacedKeys() -> [ClosedRange<Int64>] {
    var keys: [ClosedRange<Int64>] = []
    for place in domains.indices {
      domains[place].long.settle()
      leftOut += domains[place].long.leftOut
      if domains[place].isKey, !domains[place].keepsLong { keys += domains[place].long.runs }
      domains[place].long = NumberRuns(limit: OrderedNumbers.limit)
    }
    return keys
  }

  /// Returns a short integer's pseudonym, possibly itself.
  func pseudonym(short number: Int64, _ domain: Int, _ function: KeyedFunction) -> Int64 {
    let region = NumberRegion.shortRegion(of: number)
    guard domain < 0 || !domains[domain].keepsShort, region.count > 1 else { return number }
    if domain >= 0, let key = Int32(exactly: number),
      let place = OrderedNumbers.rank(of: key, in: domains[domain].originals)
    {
      return Int64(domains[domain].replaced[place])
    }
    let seed = UInt64(bitPattern: number) ^ UInt64(bitPattern: Int64(domain)) << 40 ^ 0x73_686f
    var stream = KeyStream(function, seed: seed)
    let other = region.lowerBound + Int64(stream.below64(UInt64(region.count - 1)))
    // Skip the number itself.
    return other >= number ? other + 1 : other
  }
}

/// A set of integers, stored as runs.
///
/// Merging in batches lets rowids in index order form runs.
package struct NumberRuns: Sendable {
  package private(set) var runs: [ClosedRange<Int64>] = []

  private var waiting: [ClosedRange<Int64>] = []

  private let limit: Int

  package private(set) var leftOut: Int64 = 0

  private static let leastWaiting = 1 << 14

  package init(limit: Int) { self.limit = limit }

  package mutating func insert(_ number: Int64) {
    if let last = waiting.last {
      if last.contains(number) { return }
      if last.upperBound < Int64.max, number == last.upperBound + 1 {
        waiting[waiting.count - 1] = last.lowerBound...number
        return
      }
    }
    if waiting.count >= max(Self.leastWaiting, runs.count / 4) { settle() }
    waiting.append(number...number)
  }

  package mutating func take(_ other: inout NumberRuns) {
    settle()
    other.settle()
    leftOut += other.leftOut
    swap(&waiting, &other.runs)
    other = NumberRuns(limit: limit)
    settle()
  }

  package mutating func settle() {
    guard !waiting.isEmpty else { return }
    waiting.sort { $0.lowerBound < $1.lowerBound }
    var merged: [ClosedRange<Int64>] = []
    var (first, second) = (0, 0)
    while first < runs.count || second < waiting.count {
      let isFirst =
        second == waiting.count || first < runs.count && runs[first].lowerBound <= waiting[second].lowerBound
      let next = isFirst ? runs[first] : waiting[second]
      if isFirst { first += 1 } else { second += 1 }
      guard let last = merged.last, last.upperBound == Int64.max || next.lowerBound <= last.upperBound + 1 else {
        if merged.count < limit { merged.append(next) } else { leftOut += 1 }
        continue
      }
      merged[merged.count - 1] = last.lowerBound...max(last.upperBound, next.upperBound)
    }
    runs = merged
    waiting.removeAll(keepingCapacity: waiting.count <= Self.leastWaiting)
  }
}

/// A set of integers of up to six digits: an array if few, otherwise bits.
package struct ShortNumbers: Sendable {
  private var few: [Int32] = []
  private var bits: [UInt64] = []

  package init() {}

  package private(set) var count = 0

  private static let mostFew = 64
  private static let largest = Int32(NumberRegion.kept)

  private static func place(_ number: Int32) -> (word: Int, bit: UInt64) {
    let place = Int(number + largest)
    return (place >> 6, 1 << UInt64(place & 63))
  }

  package func contains(_ number: Int32) -> Bool {
    guard !bits.isEmpty else { return few.contains(number) }
    guard abs(Int64(number)) <= Int64(Self.largest) else { return false }
    let (word, bit) = Self.place(number)
    return bits[word] & bit != 0
  }

  /// Inserts a number, unless longer.
  package mutating func insert(_ number: Int32) {
    guard abs(Int64(number)) <= Int64(Self.largest), !contains(number) else { return }
    count += 1
    if bits.isEmpty, few.count < Self.mostFew { return few.append(number) }
    if bits.isEmpty {
      bits = [UInt64](repeating: 0, count: Int(2 * Self.largest) / 64 + 1)
      for other in few { setBit(other) }
      few = []
    }
    setBit(number)
  }

  private mutating func setBit(_ number: Int32) {
    let (word, bit) = Self.place(number)
    bits[word] |= bit
  }

  package mutating func formUnion(_ other: ShortNumbers) { for number in other.sorted() { insert(number) } }

  package func sorted() -> [Int32] {
    guard !bits.isEmpty else { return few.sorted() }
    var numbers: [Int32] = []
    numbers.reserveCapacity(count)
    for (place, bits) in bits.enumerated() where bits != 0 {
      var rest = bits
      while rest != 0 {
        numbers.append(Int32(64 * place + rest.trailingZeroBitCount) - Self.largest)
        rest &= rest &- 1
      }
    }
    return numbers
  }
}
