/// What is known of the integers of the columns that share their pseudonyms: one column, or those that refer to each other.
///
/// Integers of more than six digits share theirs in the whole store; what is decided for them here is only whether they stay.
struct NumberDomains: Sendable {
  /// The integers of one such group of columns.
  struct Domain: Sendable {
    /// Why its values stay: the schema or the model says that they are flags, or an expression of the schema names it.
    var fixed: ScrubReport.Staying.Reason?

    /// Whether an index has it, so that its values keep their order.
    var isOrdered = false

    /// Whether it holds the numbers of rows.
    var isKey = false

    /// Whether the schema says so: a primary key, or a reference to one.
    var isLink = false

    /// How many integers were found, on pages of tables.
    fileprivate(set) var count: Int64 = 0

    /// How many rows were found of which it holds the number.
    fileprivate(set) var rows: Int64 = 0

    fileprivate var small = ShortNumbers()

    /// The numbers of rows of more than six digits, those that follow each other together.
    fileprivate var long = NumberRuns(limit: OrderedNumbers.limit)

    /// The largest magnitude among those.
    fileprivate(set) var largest: UInt64 = 0

    /// Whether integers of up to six digits stay.
    fileprivate(set) var keepsShort = true

    /// Whether integers of more than six digits stay.
    fileprivate(set) var keepsLong = false

    fileprivate var originals: [Int32] = []
    fileprivate var replaced: [Int32] = []

    /// Whether it has no integers but 0 and 1, which have no others of their size.
    fileprivate var isBinary = false

    init(fixed: ScrubReport.Staying.Reason? = nil, isOrdered: Bool = false, isKey: Bool = false) {
      self.fixed = fixed
      self.isOrdered = isOrdered
      self.isKey = isKey
    }
  }

  /// The different integers of up to six digits that are held of each at most: all that there are.
  private static let limit = 2_000_000

  /// A column of few different values has at most so many.
  private static let fewValues = 12

  /// How often each of few values comes at least, on average.
  private static let frequency: Int64 = 8

  /// How much larger than the number of rows the largest number of one is at most where the software numbered them.
  private static let sparseness: Int64 = 16

  private(set) var domains: [Domain]

  /// The numbers that found no room.
  private(set) var leftOut: Int64 = 0

  init(_ domains: [Domain]) { self.domains = domains }

  /// The same groups of columns, and no numbers yet.
  init(like other: NumberDomains) {
    domains = other.domains.map { Domain(fixed: $0.fixed, isOrdered: $0.isOrdered, isKey: $0.isKey) }
  }

  // MARK: Notes

  /// Takes note of an integer of up to six digits, also of one below a real.
  mutating func note(short number: Int64, _ domain: Int, isCopy: Bool) {
    guard domain >= 0 else { return }
    if !isCopy { domains[domain].count += 1 }
    guard !domains[domain].isKey, let number = Int32(exactly: number) else { return }
    // Without an order it only counts whether there are few.
    if !domains[domain].isOrdered, domains[domain].small.count > Self.fewValues { return }
    guard domains[domain].small.count < Self.limit else {
      if domains[domain].isOrdered, !domains[domain].small.contains(number) { leftOut += 1 }
      return
    }
    domains[domain].small.insert(number)
  }

  /// Takes note of an integer of more than six digits that leads to a row.
  mutating func note(key number: Int64, _ domain: Int) {
    guard domain >= 0 else { return }
    domains[domain].largest = max(domains[domain].largest, number.magnitude)
    domains[domain].long.insert(number)
  }

  /// Takes note of a row.
  mutating func noteRow(_ domain: Int) {
    if domain >= 0 { domains[domain].rows += 1 }
  }

  /// Adds the notes that were taken elsewhere, of which those of row numbers are given up.
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

  /// Decides what stays, and gives pseudonyms to the integers of up to six digits that keep an order, or are few.
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

  /// Gives the integers of a group pseudonyms in their order.
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

  /// Gives the few integers of a group each other's place: those of one size in a circle, so that none stays.
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

  /// Why all integers of up to six digits of a group stay; nil where they do not, or there are none.
  func staying(_ domain: Int) -> ScrubReport.Staying.Reason? {
    guard domain >= 0, domains[domain].count > 0, !domains[domain].isLink else { return nil }
    if domains[domain].keepsShort { return domains[domain].fixed ?? .key }
    return domains[domain].isBinary ? .flag : nil
  }

  /// Whether an integer of up to six digits stays.
  func keeps(short domain: Int) -> Bool { domain >= 0 && domains[domain].keepsShort }

  /// Whether an integer of more than six digits stays.
  func keeps(long domain: Int) -> Bool { domain >= 0 && domains[domain].keepsLong }

  /// Gives away the row numbers of more than six digits that are replaced, and forgets all of them.
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

  /// The pseudonym of an integer of up to six digits; itself where it stays.
  func pseudonym(short number: Int64, _ domain: Int, _ function: KeyedFunction) -> Int64 {
    let region = NumberRegion.shortRegion(of: number)
    guard !keeps(short: domain), region.count > 1 else { return number }
    if domain >= 0, !domains[domain].originals.isEmpty, let key = Int32(exactly: number) {
      let (originals, replaced) = (domains[domain].originals, domains[domain].replaced)
      var low = 0
      var high = originals.count
      while low < high {
        let middle = (low + high) / 2
        if originals[middle] < key { low = middle + 1 } else { high = middle }
      }
      if low < originals.count, originals[low] == key { return Int64(replaced[low]) }
    }
    let seed = UInt64(bitPattern: number) ^ UInt64(bitPattern: Int64(domain)) << 40 ^ 0x73_686f
    var stream = KeyStream(function, seed: seed)
    let other = region.lowerBound + Int64(stream.below64(UInt64(region.count - 1)))
    // Any but the number itself.
    return other >= number ? other + 1 : other
  }
}

/// Different whole numbers, those that follow each other together, in the memory that the runs take and not the numbers.
///
/// What is put in waits until there is enough of it to be worth a merge, so that the numbers of rows that an index holds in
/// another order than theirs come together too.
package struct NumberRuns: Sendable {
  /// The runs, in order and apart from each other.
  package private(set) var runs: [ClosedRange<Int64>] = []

  private var waiting: [ClosedRange<Int64>] = []

  private let limit: Int

  /// The numbers that found no room.
  package private(set) var leftOut: Int64 = 0

  /// The runs that wait before they are merged, at the least.
  private static let leastWaiting = 1 << 14

  /// No numbers, and room for so many runs.
  package init(limit: Int) { self.limit = limit }

  /// Puts a number in.
  package mutating func insert(_ number: Int64) {
    if let last = waiting.last {
      if last.contains(number) { return }
      if last.upperBound < Int64.max, number == last.upperBound + 1 {
        waiting[waiting.count - 1] = last.lowerBound...number
        return
      }
    }
    insert(number...number)
  }

  private mutating func insert(_ run: ClosedRange<Int64>) {
    if waiting.count >= max(Self.leastWaiting, runs.count / 4) { settle() }
    waiting.append(run)
  }

  /// Puts in what is in another one, which is empty then.
  package mutating func take(_ other: inout NumberRuns) {
    settle()
    other.settle()
    leftOut += other.leftOut
    swap(&waiting, &other.runs)
    other = NumberRuns(limit: limit)
    settle()
  }

  /// Merges what waits into the runs.
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

/// Different integers of up to six digits: a few as they are, more as one bit for each that there can be.
package struct ShortNumbers: Sendable {
  private var few: [Int32] = []
  private var bits: [UInt64] = []

  /// None.
  package init() {}

  /// How many there are.
  package private(set) var count = 0

  private static let mostFew = 64
  private static let largest = Int32(NumberRegion.kept)

  private static func place(_ number: Int32) -> (word: Int, bit: UInt64) {
    let place = Int(number + largest)
    return (place >> 6, 1 << UInt64(place & 63))
  }

  /// Whether a number is among them.
  package func contains(_ number: Int32) -> Bool {
    guard !bits.isEmpty else { return few.contains(number) }
    guard abs(Int64(number)) <= Int64(Self.largest) else { return false }
    let (word, bit) = Self.place(number)
    return bits[word] & bit != 0
  }

  /// Puts a number in; one of more digits is left out.
  package mutating func insert(_ number: Int32) {
    guard abs(Int64(number)) <= Int64(Self.largest), !contains(number) else { return }
    count += 1
    if bits.isEmpty, few.count < Self.mostFew {
      few.append(number)
      return
    }
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

  /// Puts in what is in another one.
  package mutating func formUnion(_ other: ShortNumbers) {
    for number in other.sorted() { insert(number) }
  }

  /// All of them, the least first.
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
