/// The order of an index, as far as it can be told without the app's own collations.
struct EntryOrder {
  /// How the values of one column are ordered.
  struct Column {
    /// Whether text is compared byte by byte; false where it cannot be compared here.
    var isBinary: Bool

    /// Whether the order is descending.
    var isDescending = false
  }

  /// How two entries lie.
  enum Relation {
    /// The second comes after the first.
    case ascending
    /// It does not, or both are the same.
    case wrong
    /// It cannot be told: a collation is unknown, or a value goes on behind the page.
    case unknown
  }

  /// The columns, without the rowid at the end.
  let columns: [Column]

  private var first = RecordFields()
  private var second = RecordFields()

  init(_ columns: [Column]) { self.columns = columns }

  /// How an entry lies behind another one.
  mutating func relation(
    _ bytes: Span<UInt8>, _ range: Range<Int>, to others: Span<UInt8>, _ otherRange: Range<Int>
  ) -> Relation {
    let count = columns.count + 1
    guard first.read(bytes, in: range, upTo: count), second.read(others, in: otherRange, upTo: count) else {
      return .unknown
    }
    for index in 0..<count {
      guard index < first.codes.count, index < second.codes.count else { return .unknown }
      let (code, other) = (first.codes[index], second.codes[index])
      let (start, otherStart) = (first.starts[index], second.starts[index])
      guard start &+ (SerialType.length(of: code) ?? 0) <= range.upperBound,
        otherStart &+ (SerialType.length(of: other) ?? 0) <= otherRange.upperBound,
        let order = Self.compare(
          code, bytes, start, other, others, otherStart, isBinary: index < columns.count ? columns[index].isBinary : true)
      else { return .unknown }
      if order != 0 {
        let isAscending = (order < 0) != (index < columns.count && columns[index].isDescending)
        return isAscending ? .ascending : .wrong
      }
    }
    return .wrong
  }

  /// Below 0 where the first value comes before the second, 0 where they are the same; nil where that cannot be told.
  private static func compare(
    _ code: Int64, _ bytes: Span<UInt8>, _ start: Int, _ other: Int64, _ others: Span<UInt8>, _ otherStart: Int,
    isBinary: Bool
  ) -> Int? {
    let (rank, otherRank) = (rank(of: code), Self.rank(of: other))
    if rank != otherRank { return rank < otherRank ? -1 : 1 }
    switch rank {
    case 0: return 0
    case 1: return compareNumbers(number(code, bytes, start), number(other, others, otherStart))
    default:
      if rank == 2, !isBinary { return nil }
      let (count, otherCount) = (Int((code &- 12) >> 1), Int((other &- 12) >> 1))
      for index in 0..<min(count, otherCount) where bytes[start &+ index] != others[otherStart &+ index] {
        return bytes[start &+ index] < others[otherStart &+ index] ? -1 : 1
      }
      return count == otherCount ? 0 : count < otherCount ? -1 : 1
    }
  }

  /// NULL comes first, then numbers, text and blobs.
  private static func rank(of code: Int64) -> Int { code == 0 ? 0 : code < 12 ? 1 : code & 1 == 1 ? 2 : 3 }

  private static func number(_ code: Int64, _ bytes: Span<UInt8>, _ start: Int) -> Value {
    SerialType.value(of: code, in: bytes, at: start, encoding: .utf8) ?? .null
  }

  private static func compareNumbers(_ first: Value, _ second: Value) -> Int? {
    if case .integer(let number) = first, case .integer(let other) = second {
      return number == other ? 0 : number < other ? -1 : 1
    }
    guard let number = first.real, let other = second.real else { return nil }
    if number != other { return number < other ? -1 : 1 }
    // An integer of more than 53 bits may differ from the real that it is closest to.
    return abs(number) < 9e15 ? 0 : nil
  }
}
