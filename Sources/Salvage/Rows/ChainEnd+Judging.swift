internal import SQLiteFormat

extension ChainEnd {
  /// The bytes that a judgement looks at: what stands before the page's content, and that content.
  private struct Scene {
    var bytes: [UInt8]

    /// Where the content begins.
    var seam: Int

    /// The part of a field that is at hand.
    func part(_ field: Field) -> Range<Int> {
      let start = max(field.range.lowerBound + seam, 0)
      return start..<max(start, min(field.range.upperBound + seam, bytes.count))
    }
  }

  /// Judges a content: the bytes of a page, the number of the next one first.
  func judge(_ content: [UInt8], _ statistics: TextStatistics, _ traits: ChainTraits) -> Judgement {
    guard content.count >= used + 4 else { return Judgement(share: 0, isBroken: true) }
    let scene = Scene(bytes: before + content[4..<(4 + used)], seam: before.count)
    var tally = TextStatistics.Tally()
    var judgement = Judgement(share: 0.5, isBroken: false)
    for (index, field) in fields.enumerated() {
      if field.isText {
        if !judgeText(field, scene, statistics, &tally) { judgement.isBroken = true }
      } else if field.isBlob {
        if isTextWithin(field, scene) { judgement.isBroken = true }
      } else if !isNumber(field, scene, traits) {
        judgement.isBroken = true
      }
      if index + 1 < fields.count, goesOn(from: field, to: fields[index + 1], scene, statistics) {
        judgement.isBroken = true
      }
    }
    judgement.share = tally.share ?? 0.5
    if traits.hasCleanTails, traits.isLastPage { judgeTail(content.span, before: traits.usableSize, &judgement) }
    return judgement
  }

  // MARK: Text

  /// Looks at a text; false where it is not valid, or has zeros in it.
  private func judgeText(
    _ field: Field, _ scene: Scene, _ statistics: TextStatistics, _ tally: inout TextStatistics.Tally
  ) -> Bool {
    let part = scene.part(field)
    let isBeginning = field.range.lowerBound >= 0
    let isEnd = field.range.upperBound <= used
    let span = scene.bytes.span
    let text = aligned(part, field, scene)
    // Where the middle of a text is unlike other texts, as codes and numbers are, its seams and ends tell nothing.
    let middle = middle(of: text, scene, statistics)
    if !isBeginning, (middle ?? 1) >= 0.6 { statistics.compareSeam(span, at: scene.seam, in: text, &tally) }
    if (middle ?? 0) >= 0.6 {
      statistics.compareEnds(span, part, isBeginning: isBeginning, isEnd: isEnd, &tally)
    }
    let isCut = field.range.lowerBound + scene.seam < 0
    return RecordText.isValid(span, text, isCutBefore: isCut, isCutBehind: !isEnd, encoding)
      && !hasZeros(span, max(part.lowerBound, scene.seam)..<part.upperBound)
  }

  /// The share of the sequences within a text that are in the store's other texts too; nil where it is too short.
  private func middle(of text: Range<Int>, _ scene: Scene, _ statistics: TextStatistics) -> Double? {
    var tally = TextStatistics.Tally()
    let start = max(scene.seam, text.lowerBound)
    for step in 1...4 {
      let place = start + 16 * step
      guard place + 12 < text.upperBound else { break }
      statistics.compareSeam(scene.bytes.span, at: place, in: text, &tally)
    }
    return tally.share
  }

  /// Whether text goes on from one field to the next as if no border were there: then the border is another row's.
  private func goesOn(from field: Field, to next: Field, _ scene: Scene, _ statistics: TextStatistics) -> Bool {
    let border = next.range.lowerBound
    let unit = encoding == .utf8 ? 1 : 2
    guard field.isText || next.isText, border > 0, border < used, field.range.count >= 4 * unit,
      next.range.count >= 4 * unit
    else { return false }
    let place = scene.seam + border
    let start = place - unit * min(8, place / unit)
    let end = min(scene.bytes.count, place + 8 * unit)
    var tally = TextStatistics.Tally()
    statistics.compareSeam(scene.bytes.span, at: place, in: start..<end, &tally)
    return tally.total >= 10 && (tally.share ?? 0) >= 0.7
  }

  /// In UTF-16 the characters that are at hand begin at an even distance from the text's beginning.
  private func aligned(_ range: Range<Int>, _ field: Field, _ scene: Scene) -> Range<Int> {
    guard encoding != .utf8 else { return range }
    let distance = range.lowerBound - (field.range.lowerBound + scene.seam)
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
  private func isTextWithin(_ field: Field, _ scene: Scene) -> Bool {
    let part = scene.part(field)
    guard part.lowerBound + 16 <= scene.seam, part.upperBound >= scene.seam + 64 else { return false }
    return !isText(scene.bytes.span, part.lowerBound..<scene.seam)
      && isText(scene.bytes.span, scene.seam..<part.upperBound)
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
  private func isNumber(_ field: Field, _ scene: Scene, _ traits: ChainTraits) -> Bool {
    let part = scene.part(field)
    guard field.code >= 1, field.code <= 6, field.range.lowerBound >= 0, field.range.upperBound <= used,
      let number = scene.bytes.span.signedInteger(at: part.lowerBound, length: part.count)
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

  /// Where a new page is all zeros, the value ends where they begin.
  private func judgeTail(_ content: Span<UInt8>, before limit: Int, _ judgement: inout Judgement) {
    let end = 4 + used
    let run = ChainTraits.run
    guard used >= run, limit <= content.count else { return }
    let isZeroBefore = ChainTraits.isZero(content, (end - run)..<end)
    if isZeroBefore { judgement.isBroken = true }
    guard end + run <= limit else { return }
    if ChainTraits.isZero(content, end..<limit) {
      judgement.endsExactly = !isZeroBefore
    } else {
      judgement.isBroken = true
    }
  }
}
