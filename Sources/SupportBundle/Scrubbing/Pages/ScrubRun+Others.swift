internal import Platform
internal import SQLiteFormat
import Salvage

extension ScrubRun {
  /// Processes a page that is not, or no longer, of a b-tree.
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
    var isStructural = true
    if isZero(span) {
      // It stays.
    } else if number != 1, isPointerMap(number) {
      keepNumbers(span, from: 0, count: survey.pageLayout.pointerMapEntries, isPointerMap: true)
    } else if number != 1, survey.isTrunk(number) {
      let count = FreelistTrunk(bytes, usableSize: usableSize)?.leaves.count ?? 0
      mask.mark(0..<8, PageMask.kept)
      keepNumbers(span, from: 8, count: count, isPointerMap: false)
      remainsAnywhere(image, bytes, &page, from: 8 + 4 * count)
    } else {
      isStructural = false
      var from = 4
      if number == 1 {
        let isHeader = bytes.starts(with: DatabaseHeader.magic) || DatabaseHeader(bytes)?.hasUsualFractions == true
        from = isHeader ? DatabaseHeader.length : 0
      }
      mask.mark(0..<from, PageMask.kept)
      if !remainsAnywhere(image, bytes, &page, from: max(from, 8)) { unknownContent(image, &page, from: from) }
    }
    if isStructural, isReplacing { tally.pages.structural += 1 }
    try writeImage(image, &page, present: present, isSure: false)
    output = page
  }

  /// Keeps plausible page numbers; damage may have put any data there.
  private func keepNumbers(_ bytes: Span<UInt8>, from start: Int, count: Int, isPointerMap: Bool) {
    let length = isPointerMap ? 5 : 4
    // The file may be truncated, or larger in the WAL.
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

  /// Processes rows found by content; false if there are none.
  @discardableResult
  private func remainsAnywhere(_ image: PageImage, _ bytes: [UInt8], _ page: inout [UInt8], from: Int) -> Bool {
    guard from < usableSize else { return false }
    let found = survey.remains(
      bytes.span, in: from..<usableSize, page: images.page(of: image), of: images.carvedTables[image])
    images.carvedTables[image] = found.map { $0.tree..<($0.tree + 1) } ?? 0..<0
    guard let found else { return false }
    // Possible remains of a page header.
    mask.mark(0..<8, PageMask.kept)
    for remain in found.remains { treat(remain, bytes, &page, tree: found.tree) }
    if isReplacing { tally.pages.rewritten += 1 }
    return true
  }

  /// Replaces possible overflow content: text by words, other bytes with noise.
  private func unknownContent(_ image: PageImage, _ page: inout [UInt8], from: Int) {
    guard isReplacing else { return }
    var end = usableSize
    while end > from, page[end - 1] == 0 { end -= 1 }
    guard end > from else { return }
    let textEnd = textLength(page.span, from..<end)
    let isText = textEnd - from >= 64 || textEnd == end
    if isText {
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
    let rest = isText ? textEnd : from
    guard rest < end else { return }
    pseudonyms.replaceNoise(&page, rest..<end, seededBy: rest..<end, tweak: 9)
    mask.mark(rest..<end, PageMask.value)
    tally.gap(image.part, images.offset(of: image) + Int64(rest), end - rest)
  }

  /// Returns the end of text at the start of a range.
  private func textLength(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Int {
    var index = range.lowerBound
    while index < range.upperBound {
      let character = TextCoding.read(bytes, at: index, before: range.upperBound, encoding)
      if let scalar = character.scalar {
        if scalar < 0x20, scalar != 9, scalar != 10, scalar != 13 { return index }
      } else if index - range.lowerBound >= 4, range.upperBound - index >= 4 {
        // Only page boundaries may split a character.
        return index
      }
      index += character.length
    }
    return min(index, range.upperBound)
  }
}

extension ScrubRun {
  /// The check finds values beyond this limit.
  private static let changeLimit = 65536

  private static let chanceLimit = 1 << 20

  /// Changes written bytes that contain an original value: within or across pseudonyms, or in apparent structure.
  ///
  /// Changes depend only on these bytes, so equal texts stay equal.
  ///
  /// - Parameter isSure: whether the structure is certain, so that a match in it is chance.
  func separate(_ page: inout [UInt8], _ marks: PageMask, of image: PageImage, isSure: Bool) {
    if let before = chances.removeValue(forKey: image) { chanceCount -= before.count }
    var offset = 0
    var rounds = 0
    var last = -1
    var repeated = 0
    while rounds < Self.changeLimit, let hit = pseudonyms.firstHit(page.span, from: offset, before: page.count) {
      let low = hit.range.lowerBound
      rounds += 1
      repeated = low == last ? repeated + 1 : 0
      last = low
      if repeated < 256, change(&page, marks, hit.range, round: repeated) {
        changedPlaces += 1
        offset = max(0, low - WatchedValues.longestForm)
      } else if settle(&page, marks, hit, of: image, isSure: isSure) {
        offset = max(0, low - WatchedValues.longestForm)
      } else {
        offset = low + 1
      }
    }
  }

  /// Changes one byte, preferably of text; false if all must stay.
  private func change(_ page: inout [UInt8], _ marks: PageMask, _ hit: Range<Int>, round: Int) -> Bool {
    var sum = round
    for place in hit { sum &+= Int(page[place]) &* (1 &+ place &- hit.lowerBound) }
    let texts = hit.filter { marks[$0] == PageMask.text }
    for step in texts.indices {
      if changeCharacter(&page, texts[(sum + step) % texts.count], step: 1 + sum % 9, round: round) { return true }
    }
    for place in hit.reversed() where marks[place] == PageMask.value && page[place] != 0 {
      page[place] = page[place] == 255 ? 1 : page[place] + 1
      return true
    }
    return false
  }

  /// Replaces a character by one of its kind, after some rounds of another; false if it stays.
  private func changeCharacter(_ page: inout [UInt8], _ place: Int, step: Int, round: Int) -> Bool {
    let byte = page[place]
    if encoding != .utf8 {
      let other = encoding == .utf16LittleEndian ? place + 1 : place - 1
      guard page.indices.contains(other) else { return false }
      if page[other] != 0 {
        page[place] = byte &+ UInt8(step)
        return true
      }
    }
    func turned(_ low: UInt8, _ count: Int) -> UInt8 { low + UInt8((Int(byte - low) + step) % count) }
    switch byte {
    case 0x30...0x39: page[place] = round < 16 ? turned(0x30, 10) : 0x61 + UInt8((Int(byte) + step) % 26)
    case 0x41...0x5a: page[place] = turned(0x41, 26)
    case 0x61...0x7a: page[place] = turned(0x61, 26)
    case 0x80...0xbf where encoding == .utf8: page[place] = turned(0x80, 64)
    case 0xc0...0xff where encoding != .utf8: page[place] = turned(0xc0, 64)
    default: return false
    }
    return true
  }

  /// Classifies a match without changeable bytes; true if overwritten.
  private func settle(
    _ page: inout [UInt8], _ marks: PageMask, _ hit: WatchedValues.Hit, of image: PageImage, isSure: Bool
  ) -> Bool {
    if (hit.range.contains { marks[$0] == PageMask.stays }) {
      pseudonyms.watched.exempt(hit)
      tally.keptMatches += 1
      return false
    }
    guard isSure else {
      // Apparent structure may be user data here.
      var isChanged = false
      for place in hit.range where page[place] != 0xff {
        page[place] = 0xff
        isChanged = true
      }
      if isChanged { changedPlaces += 1 }
      return isChanged
    }
    // The check reports ordered values, unless two fields spell one, and finds those beyond the limit.
    if chanceCount < Self.chanceLimit, !hit.range.allSatisfy({ marks[$0] == PageMask.fixed }) {
      chances[image, default: [:]][hit.range.lowerBound] = hit.key
      chanceCount += 1
    }
    return false
  }
}

/// A page image in one of the files.
enum PageImage: Hashable, Sendable {
  case main(UInt32)

  case log(Int)

  case journal(Int)

  var part: StoreFileSet.Part {
    switch self {
    case .main: .main
    case .log: .wal
    case .journal: .journal
    }
  }
}
