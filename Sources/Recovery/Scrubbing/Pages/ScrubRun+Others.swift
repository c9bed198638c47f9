internal import PageRecovery
internal import SQLiteFormat
internal import StoreFiles

extension ScrubRun {
  /// Deals with a page that is no page of a tree, or not any more.
  func otherPage(_ image: PageImage, _ bytes: [UInt8], present: Int) throws(FileError) {
    mask.clear()
    var page: [UInt8] = []
    swap(&page, &output)
    page.withReplacedContent(bytes)
    let number = images.page(of: image)
    let span = bytes.span
    if isReplacing, !isZero(span), try copyWritten(image, bytes, present: present, used: 0) {
      setDone(image)
      tally.pages.pieces += 1
      output = page
      return
    }
    if isZero(span) {
      if isReplacing { tally.pages.structural += 1 }
    } else if number != 1, isPointerMap(number) {
      keepNumbers(span, from: 0, count: survey.pageLayout.pointerMapEntries, isPointerMap: true)
      if isReplacing { tally.pages.structural += 1 }
    } else if number != 1, survey.isTrunk(number) {
      let count = FreelistTrunk(bytes, usableSize: usableSize)?.leaves.count ?? 0
      mask.mark(0..<8, PageMask.kept)
      keepNumbers(span, from: 8, count: count, isPointerMap: false)
      remainsAnywhere(bytes, &page, of: number, from: 8 + 4 * count)
      if isReplacing { tally.pages.structural += 1 }
    } else {
      var from = 4
      if number == 1 {
        let isHeader = bytes.starts(with: DatabaseHeader.magic) || DatabaseHeader(bytes)?.hasUsualFractions == true
        from = isHeader ? DatabaseHeader.length : 0
        mask.mark(0..<from, PageMask.kept)
      } else {
        mask.mark(0..<4, PageMask.kept)
      }
      if !remainsAnywhere(bytes, &page, of: number, from: max(from, 8)) { unknownContent(image, &page, from: from) }
    }
    try finish(image, &page, present: present, isSure: false)
    output = page
  }

  /// Marks the entries of a pointer map, or of a list of free pages, that are numbers of pages: what damage put there may be anything.
  private func keepNumbers(_ bytes: Span<UInt8>, from start: Int, count: Int, isPointerMap: Bool) {
    let length = isPointerMap ? 5 : 4
    // The file may have been cut off, or grow in the log.
    let highest = max(1 << 16, 16 * UInt64(images.pageCount))
    for index in 0..<count {
      let offset = start + length * index
      guard let page = bytes.uint32(at: offset + length - 4), UInt64(page) <= highest,
        !isPointerMap || bytes[offset] <= 5
      else { continue }
      mask.mark(offset..<(offset + length), PageMask.kept)
    }
  }

  private func isPointerMap(_ number: UInt32) -> Bool {
    survey.pageLayout.isPointerMap(number) && (survey.isAutoVacuum || survey.standing(of: number) == .special)
  }

  private func isZero(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices where bytes[index] != 0 { return false }
    return true
  }

  /// Deals with the rows that are found on a page by their content alone; false where there are none.
  @discardableResult
  private func remainsAnywhere(_ bytes: [UInt8], _ page: inout [UInt8], of number: UInt32, from: Int) -> Bool {
    guard from < usableSize, let found = survey.remains(bytes.span, in: from..<usableSize, page: number)
    else { return false }
    // The first bytes may be what is left of a page's header.
    mask.mark(0..<8, PageMask.kept)
    for remain in found.remains { treat(remain, bytes, &page, tree: found.tree) }
    if isReplacing { tally.pages.rewritten += 1 }
    return true
  }

  /// Replaces what may be a piece of a long value: text word by word, anything else by noise.
  private func unknownContent(_ image: PageImage, _ page: inout [UInt8], from: Int) {
    guard isReplacing else { return }
    var end = usableSize
    while end > from, page[end - 1] == 0 { end -= 1 }
    guard end > from else { return }
    let textEnd = textLength(page.span, from..<end)
    if textEnd - from >= 64 || textEnd == end {
      pseudonyms.replaceWords(&page, from..<textEnd)
      if encoding == .utf8 {
        mask.mark(from..<textEnd, PageMask.text)
      } else {
        mask.markWide(from..<textEnd, isBigEndian: encoding == .utf16BigEndian)
      }
      tally.pages.pieces += 1
    } else {
      tally.pages.noise += 1
    }
    let rest = textEnd - from >= 64 || textEnd == end ? textEnd : from
    guard rest < end else { return }
    var stream = KeyStream(pseudonyms.function, seed: pseudonyms.function(page.span, rest..<end, tweak: 9))
    pseudonyms.replaceNoise(&page, rest..<end, &stream)
    mask.mark(rest..<end, PageMask.value)
    tally.gap(image.file, images.offset(of: image) + Int64(rest), end - rest)
  }

  /// Where the text ends that begins in a range, possibly within a character.
  private func textLength(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
    var index = range.lowerBound
    while index < range.upperBound {
      let character = TextCoding.read(bytes, at: index, before: range.upperBound, encoding)
      guard let scalar = character.scalar else {
        // A character may be cut off at the beginning or the end of the page.
        if index - range.lowerBound < 4 || range.upperBound - index < 4 {
          index += character.length
          continue
        }
        return index
      }
      if scalar < 0x20, scalar != 9, scalar != 10, scalar != 13 { return index }
      index += character.length
    }
    return min(index, range.upperBound)
  }
}
