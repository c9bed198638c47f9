internal import SQLiteFormat

/// The last page of a row's overflow chain, and what the content must be that belongs there.
///
/// The pages before it lead to one another; the last one leads nowhere, and only its content tells whose it is.
struct ChainEnd {
  /// The number of the page.
  var page: UInt32

  /// How many bytes of content the row has on it.
  var used: Int

  /// What stands in the row right before those bytes.
  private var before: [UInt8]

  /// The texts of the row that reach into the page, by their places relative to its content.
  private var texts: [Range<Int>]

  private let encoding: TextEncoding

  /// What a content looks like in this place.
  struct Judgement {
    /// The share of character sequences that are usual in this store; 0.5 where there is no text to tell by.
    var share: Double

    /// Whether text is not valid, or has zeros in it.
    var isBroken: Bool

    /// Whether it can well be the right content.
    var isGood: Bool { !isBroken && share >= 0.75 }

    /// Whether it is hardly the right content.
    var isBad: Bool { isBroken || share < 0.5 }

    /// A number to compare judgements by.
    var value: Double { isBroken ? share * 0.25 : share }
  }

  /// What is to be known of the end of a chain.
  ///
  /// - Parameters:
  ///   - payload: the whole payload, as far as it has been put together.
  ///   - used: how many bytes of it are on the last page.
  init?(_ payload: Span<UInt8>, page: UInt32, used: Int, encoding: TextEncoding) {
    self.page = page
    self.used = used
    self.encoding = encoding
    let start = payload.count - used
    guard used > 0, start > 0 else { return nil }
    var offset = 0
    guard let header = Varint.read(payload, at: &offset, before: payload.count), header > 0,
      header <= Int64(start)
    else { return nil }
    var body = Int(header)
    texts = []
    while offset < Int(header) {
      guard let code = Varint.read(payload, at: &offset, before: Int(header)),
        let width = SerialType.length(of: code), width <= payload.count - body
      else { return nil }
      if code >= 13, code & 1 == 1, body + width > start { texts.append((body - start)..<(body + width - start)) }
      body += width
    }
    let kept = min(24, start)
    before = Array(copying: payload.extracting((start - kept)..<start))
  }

  /// Judges a content: the bytes of a page, the number of the next one first.
  func judge(_ content: [UInt8], _ statistics: TextStatistics) -> Judgement {
    guard content.count >= used + 4 else { return Judgement(share: 0, isBroken: true) }
    let bytes = before + content[4..<(4 + used)]
    let seam = before.count
    var tally = TextStatistics.Tally()
    var isBroken = false
    let span = bytes.span
    for text in texts {
      let isBeginning = text.lowerBound >= 0
      let start = max(text.lowerBound + seam, 0)
      let whole = start..<(text.upperBound + seam)
      if !isBeginning { statistics.compareSeam(span, at: seam, in: aligned(whole, text), &tally) }
      statistics.compareEnds(span, whole, isBeginning: isBeginning, isEnd: true, &tally)
      if !RecordText.isValid(span, aligned(whole, text), isCutBefore: text.lowerBound + seam < 0, encoding) {
        isBroken = true
      }
      if hasZeros(span, max(start, seam)..<whole.upperBound) { isBroken = true }
    }
    return Judgement(share: tally.share ?? 0.5, isBroken: isBroken)
  }

  /// In UTF-16 the characters that are at hand begin at an even distance from the text's beginning.
  private func aligned(_ range: Range<Int>, _ text: Range<Int>) -> Range<Int> {
    guard encoding != .utf8 else { return range }
    let distance = range.lowerBound - (text.lowerBound + before.count)
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
}
