internal import SQLiteFormat

/// The store's usual last overflow pages, to recognize wrong ones.
struct ChainTraits {
  /// Partly filled last pages, by the bytes after the value.
  private var cleanTails = 0
  private var dirtyTails = 0

  /// Values that end with a run of zeros.
  private var zeroEnds = 0

  /// Integer ranges by tree and field.
  private var integers: [Int: [ClosedRange<Int64>?]] = [:]

  /// Only a last page has bytes after the value.
  var isLastPage = true

  let usableSize: Int

  init(usableSize: Int) { self.usableSize = usableSize }

  /// The number of zeros taken as unwritten bytes.
  static let run = 8

  /// Whether zeros usually follow values: SQLite zeroes new pages, but mostly not reused ones.
  var hasCleanTails: Bool { cleanTails >= 4 && dirtyTails * 9 <= cleanTails && zeroEnds * 10 <= cleanTails }

  /// - Parameter used: the content bytes after the number of the next page.
  mutating func learn(_ page: Span<UInt8>, used: Int) {
    guard used >= Self.run, 4 + used + Self.run <= usableSize, page.count >= usableSize else { return }
    if Self.isZero(page, (4 + used)..<usableSize) {
      cleanTails += 1
      if Self.isZero(page, (4 + used - Self.run)..<(4 + used)) { zeroEnds += 1 }
    } else {
      dirtyTails += 1
    }
  }

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

  /// Whether a number is in or near a column's known range.
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
