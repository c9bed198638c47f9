import Platform
/// A set of rowids as ascending ranges that neither touch nor overlap; in JSON, pairs of first and last rowid.
public struct KeyRanges: Sendable, Hashable {
  /// The ranges in ascending order.
  public private(set) var ranges: [ClosedRange<Int64>] = []

  /// Creates an empty set.
  public init() {}

  /// Creates a set of rowids in any order.
  public init(_ keys: some Sequence<Int64>) {
    for key in keys.sorted() { append(key) }
  }

  /// Creates a set of ranges in any order.
  public init(ranges: some Sequence<ClosedRange<Int64>>) {
    for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) { append(range) }
  }

  /// Whether the set is empty.
  public var isEmpty: Bool { ranges.isEmpty }

  /// The number of rowids, at most `Int64.max`.
  public var count: Int64 {
    var total: Int64 = 0
    for range in ranges {
      let (width, isTooWide) = range.upperBound.subtractingReportingOverflow(range.lowerBound)
      let (sum, isTooMuch) = total.addingReportingOverflow(isTooWide || width == .max ? .max : width + 1)
      if isTooMuch { return .max }
      total = sum
    }
    return total
  }

  /// Adds a rowid larger than all others, and ignores any other.
  @inline(__always)
  public mutating func append(_ key: Int64) {
    if let last = ranges.last {
      guard key > last.upperBound else { return }
      if key == last.upperBound &+ 1 {
        ranges[ranges.count &- 1] = last.lowerBound...key
        return
      }
    }
    ranges.append(key...key)
  }

  /// Adds a range that begins no earlier than any other.
  public mutating func append(_ range: ClosedRange<Int64>) {
    guard let last = ranges.last else {
      ranges.append(range)
      return
    }
    guard range.lowerBound >= last.lowerBound else { return }
    if last.upperBound == .max || range.lowerBound <= last.upperBound + 1 {
      ranges[ranges.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
    } else {
      ranges.append(range)
    }
  }

  /// Whether the set contains a rowid.
  public func contains(_ key: Int64) -> Bool {
    let place = firstRange(endingAtOrBehind: key)
    return place < ranges.count && ranges[place].lowerBound <= key
  }

  /// Returns the rowids that another set lacks.
  public func subtracting(_ other: KeyRanges) -> KeyRanges {
    var result = KeyRanges()
    for range in ranges {
      var low = range.lowerBound
      var isOpen = true
      var place = other.firstRange(endingAtOrBehind: low)
      while isOpen, place < other.ranges.count, other.ranges[place].lowerBound <= range.upperBound {
        let hole = other.ranges[place]
        if hole.lowerBound > low { result.append(low...(hole.lowerBound - 1)) }
        if hole.upperBound >= range.upperBound { isOpen = false } else { low = hole.upperBound + 1 }
        place += 1
      }
      if isOpen { result.append(low...range.upperBound) }
    }
    return result
  }

  /// Returns the rowids in both sets.
  public func intersection(_ other: KeyRanges) -> KeyRanges {
    var result = KeyRanges()
    for range in ranges {
      var place = other.firstRange(endingAtOrBehind: range.lowerBound)
      while place < other.ranges.count, other.ranges[place].lowerBound <= range.upperBound {
        result.append(range.clamped(to: other.ranges[place]))
        place += 1
      }
    }
    return result
  }

  /// Returns the rowids in either set.
  public func union(_ other: KeyRanges) -> KeyRanges { KeyRanges(ranges: ranges + other.ranges) }

  /// Returns the first ranges, up to a limit.
  public func prefix(ranges limit: Int) -> KeyRanges {
    var result = self
    if result.ranges.count > limit { result.ranges.removeLast(result.ranges.count - limit) }
    return result
  }

  private func firstRange(endingAtOrBehind key: Int64) -> Int {
    ranges.partitioningIndex { $0.upperBound >= key }
  }
}

extension KeyRanges {
  /// Formats the rowids for people: `17, 18, 40–44 and 12 more`.
  ///
  /// - Parameter limit: the most rowids and ranges written out.
  public func words(limit: Int = 12) -> String {
    let shown = shown(limit)
    let parts = shown.flatMap { range in
      range.lowerBound == range.upperBound
        ? ["\(range.lowerBound)"]
        : Self.isPair(range)
          ? ["\(range.lowerBound)", "\(range.upperBound)"] : ["\(range.lowerBound)–\(range.upperBound)"]
    }
    let rest = KeyRanges(ranges: ranges.dropFirst(shown.count)).count
    return parts.joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "")
  }

  private func shown(_ limit: Int) -> [ClosedRange<Int64>] {
    var parts = 0
    var shown: [ClosedRange<Int64>] = []
    for range in ranges {
      parts += Self.isPair(range) ? 2 : 1
      guard parts <= limit || shown.isEmpty else { break }
      shown.append(range)
    }
    return shown
  }

  private static func isPair(_ range: ClosedRange<Int64>) -> Bool {
    range.lowerBound < .max && range.upperBound == range.lowerBound + 1
  }
}

extension KeyRanges: Codable {
  /// Decodes pairs of first and last rowid.
  public init(from decoder: any Decoder) throws {
    var list = try decoder.unkeyedContainer()
    var ranges: [ClosedRange<Int64>] = []
    while !list.isAtEnd {
      let pair = try list.decode([Int64].self)
      guard pair.count == 2, pair[0] <= pair[1] else {
        throw DecodingError.dataCorruptedError(in: list, debugDescription: "a range is a pair of ascending numbers")
      }
      ranges.append(pair[0]...pair[1])
    }
    self.init(ranges: ranges)
  }

  /// Encodes pairs of first and last rowid.
  public func encode(to encoder: any Encoder) throws {
    var list = encoder.unkeyedContainer()
    for range in ranges { try list.encode([range.lowerBound, range.upperBound]) }
  }
}
