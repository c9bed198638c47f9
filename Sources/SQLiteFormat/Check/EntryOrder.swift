/// The order of an index, for SQLite's own collations.
struct EntryOrder {
  struct Column {
    /// The text collation; nil if not comparable here.
    var collation: Collation?

    var isDescending = false
  }

  enum Collation {
    case binary
    /// ASCII letters in lower case.
    case noCase
    /// Without trailing spaces.
    case rightTrimmed

    /// Returns a name's collation, binary by default; nil for the app's own.
    ///
    /// `noCase` and `rightTrimmed` compare bytes, so they need UTF-8.
    init?(_ name: String?, encoding: TextEncoding) {
      guard let name, !isSameName(name, "binary") else {
        self = .binary
        return
      }
      guard encoding == .utf8 else { return nil }
      if isSameName(name, "nocase") {
        self = .noCase
      } else if isSameName(name, "rtrim") {
        self = .rightTrimmed
      } else {
        return nil
      }
    }
  }

  enum Relation {
    case ascending
    case wrong
    /// An unknown collation, or a value on overflow pages.
    case unknown
  }

  /// The columns, without the trailing rowid.
  let columns: [Column]

  func relation(
    _ bytes: Span<UInt8>, _ first: borrowing RecordFields, to others: Span<UInt8>, _ second: borrowing RecordFields
  ) -> Relation {
    for index in 0...columns.count {
      guard index < first.count, index < second.count else { return .unknown }
      let (code, other) = (first.codes[index], second.codes[index])
      let (start, otherStart) = (first.starts[index], second.starts[index])
      guard
        let order = Self.compare(
          code, bytes, start, other, others, otherStart,
          index < columns.count ? columns[index].collation : .binary)
      else { return .unknown }
      if order != 0 {
        let isAscending = (order < 0) != (index < columns.count && columns[index].isDescending)
        return isAscending ? .ascending : .wrong
      }
    }
    return .wrong
  }

  /// Returns nil if undecided.
  private static func compare(
    _ code: Int64, _ bytes: Span<UInt8>, _ start: Int, _ other: Int64, _ others: Span<UInt8>, _ otherStart: Int,
    _ collation: Collation?
  ) -> Int? {
    let (rank, otherRank) = (rank(of: code), Self.rank(of: other))
    if rank != otherRank { return rank < otherRank ? -1 : 1 }
    switch rank {
    case 0: return 0
    case 1:
      if code != 7, other != 7 {
        let (number, otherNumber) = (integer(code, bytes, start), integer(other, others, otherStart))
        return number == otherNumber ? 0 : number < otherNumber ? -1 : 1
      }
      return compareNumbers(number(code, bytes, start), number(other, others, otherStart))
    default:
      var (count, otherCount) = (Int((code &- 12) >> 1), Int((other &- 12) >> 1))
      guard let collation = rank == 2 ? collation : .binary else { return nil }
      if collation == .rightTrimmed {
        while count > 0, bytes[start &+ count &- 1] == 0x20 { count -= 1 }
        while otherCount > 0, others[otherStart &+ otherCount &- 1] == 0x20 { otherCount -= 1 }
      }
      for index in 0..<min(count, otherCount) {
        var (byte, otherByte) = (bytes[start &+ index], others[otherStart &+ index])
        // NOCASE ignores everything after a zero byte.
        if collation == .noCase, byte == 0 || otherByte == 0 { return nil }
        if byte == otherByte { continue }
        if collation == .noCase { (byte, otherByte) = (lowercased(byte), lowercased(otherByte)) }
        if byte != otherByte { return byte < otherByte ? -1 : 1 }
      }
      return count == otherCount ? 0 : count < otherCount ? -1 : 1
    }
  }

  private static func rank(of code: Int64) -> Int { code == 0 ? 0 : code < 12 ? 1 : code & 1 == 1 ? 2 : 3 }

  /// Codes 10 and 11 never occur in files.
  @inline(__always)
  private static func integer(_ code: Int64, _ bytes: Span<UInt8>, _ start: Int) -> Int64 {
    if code > 7 { return code == 9 ? 1 : 0 }
    return bytes.signedInteger(at: start, length: SerialType.length(of: code) ?? 1) ?? 0
  }

  private static func number(_ code: Int64, _ bytes: Span<UInt8>, _ start: Int) -> Value {
    SerialType.value(of: code, in: bytes, at: start, encoding: .utf8) ?? .null
  }

  private static func compareNumbers(_ first: Value, _ second: Value) -> Int? {
    if case .integer(let number) = first, case .integer(let other) = second {
      return number == other ? 0 : number < other ? -1 : 1
    }
    guard let number = first.real, let other = second.real else { return nil }
    if number != other { return number < other ? -1 : 1 }
    // An integer of more than 53 bits may differ from its closest real.
    return abs(number) < 9e15 ? 0 : nil
  }
}
