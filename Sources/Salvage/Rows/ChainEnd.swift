internal import SQLiteFormat

/// A page of a row's overflow chain, with the expectations on its content.
///
/// Only content attributes the last page of a chain.
struct ChainEnd {
  var page: UInt32

  /// The bytes of the row on the page.
  var used: Int

  /// The last bytes of the row before the page.
  let before: [UInt8]

  let fields: [Field]

  let encoding: TextEncoding

  let tree: Int

  struct Field {
    var number: Int

    var code: Int64

    /// The range relative to the page's content.
    var range: Range<Int>

    var isText: Bool { code >= 13 && code & 1 == 1 }
    var isBlob: Bool { code >= 12 && code & 1 == 0 }
  }

  /// An assessment of content in this place.
  struct Judgement {
    /// The share of character sequences usual in this store; 0.5 without text.
    var share: Double

    /// Whether it contradicts the row: invalid text, bytes after the end, or unusual number encodings.
    var isBroken: Bool

    /// Whether the value ends exactly where the bytes do.
    var endsExactly = false

    /// Whether it is plausibly the right content.
    var isGood: Bool { !isBroken && (share >= 0.75 || endsExactly && share >= 0.5) }

    /// Whether it is hardly the right content.
    var isBad: Bool { isBroken || share < 0.5 }

    var value: Double {
      let value = endsExactly ? max(share, min(1, share + 0.4)) : share
      return isBroken ? value * 0.25 : value
    }
  }

  /// Derives the expectations; nil where the payload does not reach the page.
  ///
  /// - Parameters:
  ///   - payload: as far as assembled.
  ///   - start: the content's offset in the payload; nil for the last page.
  ///   - used: the payload bytes on the page.
  init?(_ payload: Span<UInt8>, page: UInt32, start: Int? = nil, used: Int, encoding: TextEncoding, tree: Int = 0) {
    self.page = page
    self.used = used
    self.encoding = encoding
    self.tree = tree
    let start = start ?? payload.count - used
    guard used > 0, start > 0, start + used <= payload.count else { return nil }
    var offset = 0
    guard let header = Varint.read(payload, at: &offset, before: payload.count), header > 0, header <= Int64(start)
    else { return nil }
    var body = Int(header)
    var number = 0
    var fields: [Field] = []
    while offset < Int(header) {
      guard let code = Varint.read(payload, at: &offset, before: Int(header)),
        let width = SerialType.length(of: code), width <= payload.count - body
      else { return nil }
      if body + width > start, body < start + used {
        fields.append(Field(number: number, code: code, range: (body - start)..<(body + width - start)))
      }
      body += width
      number += 1
    }
    self.fields = fields
    let kept = min(24, start)
    before = Array(copying: payload.extracting((start - kept)..<start))
  }
}

extension ChainEnd {
  /// The content follows the number of the next page.
  private static let base = 4

  /// Judges a page's bytes, including the number of the next page.
  func judge(_ content: [UInt8], _ statistics: TextStatistics, _ traits: ChainTraits) -> Judgement {
    var judgement = Judgement(share: 0.5, isBroken: true)
    guard content.count >= used + Self.base else { return judgement }
    // Cheap checks first, since many contents are tried.
    let bytes = content.span
    if traits.hasCleanTails, traits.isLastPage, !judgeTail(bytes, before: traits.usableSize, &judgement) {
      return judgement
    }
    for field in fields where !field.isText && !field.isBlob {
      guard isNumber(field, bytes, traits) else { return judgement }
    }
    // The bytes around the start of the page.
    let seam = before + content[Self.base..<(Self.base + min(used, 96))]
    for field in fields where field.isBlob {
      guard !isTextWithin(field, seam, bytes) else { return judgement }
    }
    var tally = TextStatistics.Tally()
    var oddEnds = 0
    for (index, field) in fields.enumerated() {
      if field.isText, !judgeText(field, seam, bytes, statistics, &tally, &oddEnds) { return judgement }
      if index + 1 < fields.count, goesOn(from: field, to: fields[index + 1], bytes, statistics) { return judgement }
    }
    judgement.isBroken = false
    // One unusual end is normal, two are suspicious.
    judgement.share = oddEnds > 1 ? min(0.4, tally.share ?? 0.4) : tally.share ?? 0.5
    return judgement
  }

  private func part(_ field: Field) -> Range<Int> {
    (max(field.range.lowerBound, 0) + Self.base)..<(min(field.range.upperBound, used) + Self.base)
  }

  // MARK: Text

  /// Judges a text; false if invalid or with zeros.
  private func judgeText(
    _ field: Field, _ seam: [UInt8], _ bytes: Span<UInt8>, _ statistics: TextStatistics,
    _ tally: inout TextStatistics.Tally, _ oddEnds: inout Int
  ) -> Bool {
    let part = part(field)
    let isBeginning = field.range.lowerBound >= 0
    let isEnd = field.range.upperBound <= used
    guard !hasZeros(bytes, part) else { return false }
    // Codes and numbers are unlike other texts: their seams and ends are no evidence.
    let middle = middle(of: aligned(part, from: field.range.lowerBound + Self.base), bytes, statistics)
    if !isBeginning {
      let text =
        max(0, field.range.lowerBound + before.count)..<min(seam.count, field.range.upperBound + before.count)
      let across = aligned(text, from: field.range.lowerBound + before.count)
      let isCut = field.range.lowerBound + before.count < 0
      let isWhole = isEnd && field.range.upperBound + before.count <= seam.count
      guard RecordText.isValid(seam.span, across, isCutBefore: isCut, isCutBehind: !isWhole, encoding) else {
        return false
      }
      if (middle ?? 1) >= 0.6 { statistics.compareSeam(seam.span, at: before.count, in: across, &tally) }
    }
    if (middle ?? 0) >= 0.6 {
      for isEndWanted in [false, true] where isEndWanted ? isEnd : isBeginning {
        var end = TextStatistics.Tally()
        statistics.compareEnds(bytes, part, isBeginning: !isEndWanted, isEnd: isEndWanted, &end)
        if end.total >= 3, end.seen == 0 { oddEnds += 1 }
        tally.seen += end.seen
        tally.total += end.total
      }
    }
    let text = aligned(part, from: field.range.lowerBound + Self.base)
    return RecordText.isValid(bytes, text, isCutBefore: !isBeginning, isCutBehind: !isEnd, encoding)
  }

  /// Returns the share of a text's sequences that other texts have.
  private func middle(of text: Range<Int>, _ bytes: Span<UInt8>, _ statistics: TextStatistics) -> Double? {
    var tally = TextStatistics.Tally()
    for step in 1...4 {
      let place = text.lowerBound + 16 * step
      guard place + 12 < text.upperBound else { break }
      statistics.compareSeam(bytes, at: place, in: text, &tally)
    }
    return tally.share
  }

  private func goesOn(from field: Field, to next: Field, _ bytes: Span<UInt8>, _ statistics: TextStatistics) -> Bool {
    let border = next.range.lowerBound
    let unit = encoding == .utf8 ? 1 : 2
    guard field.isText || next.isText, border >= 6 * unit, border + 6 * unit <= used, field.range.count >= 4 * unit,
      next.range.count >= 4 * unit
    else { return false }
    let place = Self.base + border
    var tally = TextStatistics.Tally()
    statistics.compareSeam(bytes, at: place, in: (place - 6 * unit)..<(place + 6 * unit), &tally)
    return tally.total >= 10 && (tally.share ?? 0) >= 0.7
  }

  /// Aligns UTF-16 to whole units from the beginning of the text.
  private func aligned(_ range: Range<Int>, from beginning: Int) -> Range<Int> {
    guard encoding != .utf8 else { return range }
    let distance = range.lowerBound - beginning
    return min(range.lowerBound + distance % 2, range.upperBound)..<range.upperBound
  }

  private func hasZeros(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var run = 0
    for index in range {
      run = bytes[index] == 0 ? run + 1 : 0
      if run >= (encoding == .utf8 ? 1 : 3) { return true }
    }
    return false
  }

  // MARK: Other values

  /// Whether binary data turns into text at the start of the page.
  private func isTextWithin(_ field: Field, _ seam: [UInt8], _ bytes: Span<UInt8>) -> Bool {
    let part = part(field)
    let start = max(0, field.range.lowerBound + before.count)
    guard start + 16 <= before.count, part.count >= 64 else { return false }
    return !isText(seam.span, start..<before.count) && isText(bytes, part)
  }

  /// Whether nearly all bytes are printable ASCII.
  private func isText(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var count = 0
    for index in range where bytes[index] >= 0x20 && bytes[index] < 0x7f { count += 1 }
    let share = Double(count) / Double(max(1, range.count))
    return encoding == .utf8 ? share >= 0.85 : share >= 0.4 && hasZeroColumns(bytes, range)
  }

  /// Whether every second byte is zero, as in Latin UTF-16.
  private func hasZeroColumns(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var zeros = [0, 0]
    for index in range where bytes[index] == 0 { zeros[index & 1] += 1 }
    return max(zeros[0], zeros[1]) * 5 >= range.count * 2
  }

  /// Whether a number is encoded as SQLite does and usual for its column.
  private func isNumber(_ field: Field, _ bytes: Span<UInt8>, _ traits: ChainTraits) -> Bool {
    let part = part(field)
    guard field.code >= 1, field.code <= 6, field.range.lowerBound >= 0, field.range.upperBound <= used,
      let number = bytes.signedInteger(at: part.lowerBound, length: part.count)
    else { return true }
    // The shortest encoding applies; six bytes follow four.
    let narrower = [2: 1, 3: 2, 4: 3, 6: 4, 8: 6][part.count]
    if let narrower {
      let limit = Int64(1) << Int64(8 * narrower - 1)
      if number >= -limit, number < limit { return false }
    }
    return traits.isUsual(number, tree: tree, field: field.number)
  }

  // MARK: Bytes after the value

  /// Checks that the value ends where the zeros of a new page begin.
  private func judgeTail(_ content: Span<UInt8>, before limit: Int, _ judgement: inout Judgement) -> Bool {
    let end = Self.base + used
    let run = ChainTraits.run
    guard used >= run, limit <= content.count else { return true }
    guard !ChainTraits.isZero(content, (end - run)..<end) else { return false }
    guard end + run <= limit else { return true }
    judgement.endsExactly = ChainTraits.isZero(content, end..<limit)
    return judgement.endsExactly
  }
}

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
