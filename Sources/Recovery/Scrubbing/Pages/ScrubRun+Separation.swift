internal import SQLiteFormat

extension ScrubRun {
  /// How often one page is changed at most; what is still found in it then, the check finds.
  private static let changeLimit = 65536

  /// How many places are noted at which structure or numbers spell a value.
  private static let chanceLimit = 1 << 20

  /// Changes what was written where an original value is in it: a pseudonym that happens to be one, two that make one
  /// together, or what seemed to be structure.
  ///
  /// What is changed, and to what, follows from the bytes that were found, so that equal text stays equal.
  ///
  /// - Parameters:
  ///   - marks: what each byte of the page is.
  ///   - image: the image that it is; what is there by chance is noted for it anew.
  ///   - isSure: whether the page's structure is beyond doubt, so that a value in it is there by chance.
  func separate(_ page: inout [UInt8], _ marks: PageMask, of image: PageImage, isSure: Bool) {
    if let before = chances.removeValue(forKey: image) { chanceCount -= before.count }
    var offset = 0
    var rounds = 0
    var last = -1
    var repeated = 0
    while rounds < Self.changeLimit, let hit = pseudonyms.firstHit(page.span, from: offset, before: page.count) {
      let low = hit.range.lowerBound
      if pseudonyms.watched.isCommon(hit) {
        offset = low + 1
        continue
      }
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

  /// Changes one of some bytes, characters of text first; false where all of them must stay.
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

  /// Replaces a character by another of its kind, and after a while by one of another kind; false where it is one that
  /// stays.
  private func changeCharacter(_ page: inout [UInt8], _ place: Int, step: Int, round: Int) -> Bool {
    let byte = page[place]
    var isWide = false
    if encoding != .utf8 {
      let other = encoding == .utf16LittleEndian ? place + 1 : place - 1
      guard page.indices.contains(other) else { return false }
      isWide = page[other] != 0
    }
    func turned(_ low: UInt8, _ count: Int) -> UInt8 { low + UInt8((Int(byte - low) + step) % count) }
    if isWide {
      page[place] = byte &+ UInt8(step)
      return true
    }
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

  /// Says what a value is that nothing of can be changed; whether it was overwritten after all.
  private func settle(
    _ page: inout [UInt8], _ marks: PageMask, _ hit: WatchedValues.Hit, of image: PageImage, isSure: Bool
  ) -> Bool {
    var stays = false
    var isOrdered = true
    for place in hit.range {
      if marks[place] == PageMask.stays { stays = true }
      if marks[place] != PageMask.fixed { isOrdered = false }
    }
    if stays {
      pseudonyms.exempt(hit)
      tally.keptMatches += 1
      return false
    }
    guard isSure else {
      // What looks like structure may be anything on such a page.
      var isChanged = false
      for place in hit.range where page[place] != 0xff {
        page[place] = 0xff
        isChanged = true
      }
      if isChanged { changedPlaces += 1 }
      return isChanged
    }
    // A value within an ordered pseudonym is left for the check to find.
    guard !isOrdered else { return false }
    // Where there are too many, the check finds them.
    if chanceCount < Self.chanceLimit {
      chances[image, default: [:]][hit.range.lowerBound] = hit.key
      chanceCount += 1
    }
    return false
  }
}
