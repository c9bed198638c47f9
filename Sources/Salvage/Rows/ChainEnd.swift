internal import SQLiteFormat

/// A page of a row's overflow chain, mostly the last one, and what the content must be that belongs there.
///
/// The pages before the last one lead to one another; the last one leads nowhere, and only its content tells whose it is.
struct ChainEnd {
  /// The number of the page.
  var page: UInt32

  /// How many bytes of content the row has on it.
  var used: Int

  /// What stands in the row right before those bytes.
  let before: [UInt8]

  /// The fields of the row that reach into the page.
  let fields: [Field]

  let encoding: TextEncoding

  /// The number of the tree that the row is of.
  let tree: Int

  /// A field of the record, its place relative to the page's content.
  struct Field {
    /// Its number in the record.
    var number: Int

    var code: Int64

    /// Where its bytes are; the content of the page begins at 0.
    var range: Range<Int>

    var isText: Bool { code >= 13 && code & 1 == 1 }
    var isBlob: Bool { code >= 12 && code & 1 == 0 }
  }

  /// What a content looks like in this place.
  struct Judgement {
    /// The share of character sequences that are usual in this store; 0.5 where there is no text to tell by.
    var share: Double

    /// Whether it contradicts what is known of the row: text that is not valid or goes on where it should end, bytes behind
    /// the value's end, numbers that SQLite would have written otherwise.
    var isBroken: Bool

    /// Whether the value ends just where the bytes do.
    var endsExactly = false

    /// Whether it can well be the right content.
    var isGood: Bool { !isBroken && (share >= 0.75 || endsExactly && share >= 0.5) }

    /// Whether it is hardly the right content.
    var isBad: Bool { isBroken || share < 0.5 }

    /// A number to compare judgements by.
    var value: Double {
      let value = endsExactly ? max(share, min(1, share + 0.4)) : share
      return isBroken ? value * 0.25 : value
    }
  }

  /// What is to be known of a page of a chain.
  ///
  /// - Parameters:
  ///   - payload: the whole payload, as far as it has been put together.
  ///   - start: where in the payload the page's content begins; nil where the page is the last one.
  ///   - used: how many bytes of it are on the page.
  init?(
    _ payload: Span<UInt8>, page: UInt32, start: Int? = nil, used: Int, encoding: TextEncoding, tree: Int = 0
  ) {
    self.page = page
    self.used = used
    self.encoding = encoding
    self.tree = tree
    let start = start ?? payload.count - used
    guard used > 0, start > 0, start + used <= payload.count else { return nil }
    var offset = 0
    guard let header = Varint.read(payload, at: &offset, before: payload.count), header > 0,
      header <= Int64(start)
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
  /// The bytes right before and behind the seam, so that what goes on across it can be compared.
  private struct Seam {
    var bytes: [UInt8]

    /// Where the page's content begins.
    var place: Int
  }

  /// Where the content begins on a page: behind the number of the next one.
  private static let base = 4

  /// Judges a content: the bytes of a page, the number of the next one first.
  func judge(_ content: [UInt8], _ statistics: TextStatistics, _ traits: ChainTraits) -> Judgement {
    var judgement = Judgement(share: 0.5, isBroken: true)
    guard content.count >= used + Self.base else { return judgement }
    // What is quick to look at comes first: many contents are tried for each place.
    let bytes = content.span
    if traits.hasCleanTails, traits.isLastPage, !judgeTail(bytes, before: traits.usableSize, &judgement) {
      return judgement
    }
    for field in fields where !field.isText && !field.isBlob {
      guard isNumber(field, bytes, traits) else { return judgement }
    }
    let seam = Seam(bytes: before + content[Self.base..<(Self.base + min(used, 96))], place: before.count)
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
    // One end may be unlike all others, and two hardly.
    judgement.share = oddEnds > 1 ? min(0.4, tally.share ?? 0.4) : tally.share ?? 0.5
    return judgement
  }

  /// The part of a field that is on the page.
  private func part(_ field: Field) -> Range<Int> {
    (max(field.range.lowerBound, 0) + Self.base)..<(min(field.range.upperBound, used) + Self.base)
  }

  // MARK: Text

  /// Looks at a text; false where it is not valid, or has zeros in it.
  private func judgeText(
    _ field: Field, _ seam: Seam, _ bytes: Span<UInt8>, _ statistics: TextStatistics,
    _ tally: inout TextStatistics.Tally, _ oddEnds: inout Int
  ) -> Bool {
    let part = part(field)
    let isBeginning = field.range.lowerBound >= 0
    let isEnd = field.range.upperBound <= used
    guard !hasZeros(bytes, part) else { return false }
    // Where the middle of a text is unlike other texts, as codes and numbers are, its seams and ends tell nothing.
    let middle = middle(of: aligned(part, from: field.range.lowerBound + Self.base), bytes, statistics)
    if !isBeginning {
      let text =
        max(0, field.range.lowerBound + seam.place)..<min(seam.bytes.count, field.range.upperBound + seam.place)
      let across = aligned(text, from: field.range.lowerBound + seam.place)
      let isCut = field.range.lowerBound + seam.place < 0
      let isWhole = isEnd && field.range.upperBound + seam.place <= seam.bytes.count
      guard RecordText.isValid(seam.bytes.span, across, isCutBefore: isCut, isCutBehind: !isWhole, encoding) else {
        return false
      }
      if (middle ?? 1) >= 0.6 { statistics.compareSeam(seam.bytes.span, at: seam.place, in: across, &tally) }
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

  /// The share of the sequences within a text that are in the store's other texts too; nil where it is too short.
  private func middle(of text: Range<Int>, _ bytes: Span<UInt8>, _ statistics: TextStatistics) -> Double? {
    var tally = TextStatistics.Tally()
    for step in 1...4 {
      let place = text.lowerBound + 16 * step
      guard place + 12 < text.upperBound else { break }
      statistics.compareSeam(bytes, at: place, in: text, &tally)
    }
    return tally.share
  }

  /// Whether text goes on from one field to the next as if no border were there: then the border is another row's.
  private func goesOn(
    from field: Field, to next: Field, _ bytes: Span<UInt8>, _ statistics: TextStatistics
  ) -> Bool {
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

  /// In UTF-16 the characters that are at hand begin at an even distance from the text's beginning.
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

  /// Whether a binary value turns into nothing but text where the page begins.
  private func isTextWithin(_ field: Field, _ seam: Seam, _ bytes: Span<UInt8>) -> Bool {
    let part = part(field)
    let start = max(0, field.range.lowerBound + seam.place)
    guard start + 16 <= seam.place, part.count >= 64 else { return false }
    return !isText(seam.bytes.span, start..<seam.place) && isText(bytes, part)
  }

  /// Whether nearly all bytes are letters, digits or spaces.
  private func isText(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var count = 0
    for index in range where bytes[index] >= 0x20 && bytes[index] < 0x7f { count += 1 }
    let share = Double(count) / Double(max(1, range.count))
    return encoding == .utf8 ? share >= 0.85 : share >= 0.4 && hasZeroColumns(bytes, range)
  }

  /// Whether every second byte is zero, as in the Latin letters of UTF-16.
  private func hasZeroColumns(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var zeros = [0, 0]
    for index in range where bytes[index] == 0 { zeros[index & 1] += 1 }
    return max(zeros[0], zeros[1]) * 5 >= range.count * 2
  }

  /// Whether a number is one that SQLite would have written so, and that its column can have.
  private func isNumber(_ field: Field, _ bytes: Span<UInt8>, _ traits: ChainTraits) -> Bool {
    let part = part(field)
    guard field.code >= 1, field.code <= 6, field.range.lowerBound >= 0, field.range.upperBound <= used,
      let number = bytes.signedInteger(at: part.lowerBound, length: part.count)
    else { return true }
    // The fewest bytes are used, always; the width of six follows that of four.
    let narrower = [2: 1, 3: 2, 4: 3, 6: 4, 8: 6][part.count]
    if let narrower {
      let limit = Int64(1) << Int64(8 * narrower - 1)
      if number >= -limit, number < limit { return false }
    }
    return traits.isUsual(number, tree: tree, field: field.number)
  }

  // MARK: What is behind the value

  /// Where a new page is all zeros, the value ends where they begin; false where it does not.
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
