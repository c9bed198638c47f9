internal import SQLiteFormat

/// What the last pages of long values are like in a store, as far as that tells a right one from a wrong one.
struct ChainTraits {
  /// Last pages that a value does not fill, by what is behind it.
  private var cleanTails = 0
  private var dirtyTails = 0

  /// Values among those that end with a run of zeros.
  private var zeroEnds = 0

  /// The integers of each column, by the number of the tree and of the field.
  private var integers: [Int: [ClosedRange<Int64>?]] = [:]

  /// Whether the page that is judged is the last one of its chain; only such a page has anything behind the value.
  var isLastPage = true

  /// The usable bytes of a page.
  let usableSize: Int

  init(usableSize: Int) { self.usableSize = usableSize }

  /// How many zeros at the end of a value are taken for bytes that no value has written.
  static let run = 8

  /// Whether what is behind a value is mostly zeros in this store: SQLite takes a new page as zeros, and one that was in use
  /// before mostly as it was.
  var hasCleanTails: Bool { cleanTails >= 4 && dirtyTails * 9 <= cleanTails && zeroEnds * 10 <= cleanTails }

  /// Learns a last page.
  ///
  /// - Parameter used: the bytes of content on it, behind the number of the next page.
  mutating func learn(_ page: Span<UInt8>, used: Int) {
    guard used >= Self.run, 4 + used + Self.run <= usableSize, page.count >= usableSize else { return }
    if Self.isZero(page, (4 + used)..<usableSize) {
      cleanTails += 1
      if Self.isZero(page, (4 + used - Self.run)..<(4 + used)) { zeroEnds += 1 }
    } else {
      dirtyTails += 1
    }
  }

  /// Learns the integers of a record as far as it is at hand.
  mutating func learn(_ bytes: Span<UInt8>, _ record: Range<Int>, tree: Int) {
    var offset = record.lowerBound
    guard let header = Varint.read(bytes, at: &offset, before: record.upperBound), header > 0,
      header <= Int64(record.count)
    else { return }
    let end = record.lowerBound + Int(header)
    var body = end
    var columns = integers[tree] ?? []
    var field = 0
    while offset < end, field < 256 {
      guard let code = Varint.read(bytes, at: &offset, before: end), let width = SerialType.length(of: code) else {
        return
      }
      if columns.count <= field { columns.append(nil) }
      if code >= 1, code <= 6, body + width <= record.upperBound,
        let number = bytes.signedInteger(at: body, length: width)
      {
        let known = columns[field] ?? number...number
        columns[field] = min(known.lowerBound, number)...max(known.upperBound, number)
      }
      body += width
      field += 1
      if body > record.upperBound { break }
    }
    integers[tree] = columns
  }

  /// Whether a number can be one of a column: within what is known of it, or not far from that.
  func isUsual(_ number: Int64, tree: Int, field: Int) -> Bool {
    guard let columns = integers[tree], columns.indices.contains(field), let known = columns[field] else { return true }
    let slack = max(16, known.upperBound.subtractingClamped(known.lowerBound) / 4)
    return number >= known.lowerBound.subtractingClamped(slack) && number <= known.upperBound.addingClamped(slack)
  }

  static func isZero(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    for index in range where bytes[index] != 0 { return false }
    return true
  }
}
