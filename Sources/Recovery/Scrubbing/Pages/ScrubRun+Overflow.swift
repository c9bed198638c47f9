internal import PageRecovery
internal import SQLiteFormat
internal import StoreFiles

extension ScrubRun {
  /// A part of a payload on an overflow page.
  struct Piece {
    var image: PageImage

    /// Where in the payload its bytes begin.
    var start: Int

    var count: Int
  }

  /// The most bytes of one value that are held at once; pages behind them are dealt with one by one.
  static let longestPayload = 16 << 20

  /// Appends the rest of a payload, as far as its chain is whole and of no other payload.
  ///
  /// - Returns: where it is from, and whether the chain leads on behind its end, so that it may be another's.
  func follow(
    _ first: UInt32, from image: PageImage, length: Int
  ) throws(FileError) -> (pieces: [Piece], leadsOn: Bool) {
    var pieces: [Piece] = []
    let perPage = usableSize - 4
    var seen: Set<UInt32> = []
    var next = first
    while payload.count < min(length, Self.longestPayload) {
      guard next >= 2, seen.insert(next).inserted, var place = images.image(of: next, from: image) else { break }
      if case .main(let page) = place { place = .main(survey.place(of: page)) }
      if case .main(let page) = place, survey.standing(of: page) == .live { break }
      let present = try images.read(place, into: &overflow)
      guard present >= 4, overflow[0] < 2 || PageKind(rawValue: overflow[0]) == nil else { break }
      let used = min(perPage, length - payload.count)
      pieces.append(Piece(image: place, start: payload.count, count: used))
      payload.append(contentsOf: overflow[4..<(4 + used)])
      next = overflow.span.uint32(at: 0) ?? 0
    }
    return (pieces, next != 0 && payload.count >= length)
  }

  /// Writes the pieces of a replaced payload over their pages.
  func write(_ pieces: [Piece]) throws(FileError) {
    guard let outputs, !pieces.isEmpty else { return }
    var page: [UInt8] = []
    swap(&page, &overflow)
    defer { swap(&page, &overflow) }
    let content = ownContent()
    for piece in pieces {
      let offset = images.offset(of: piece.image)
      if isDone(piece.image) {
        try add(piece, of: content, to: &page, at: offset, outputs)
        continue
      }
      setDone(piece.image)
      tally.pages.overflow += 1
      let present = try images.read(piece.image, into: &page)
      if try copyWritten(piece.image, page, present: present, used: piece.count) { continue }
      overflowMask.clear(count: pageSize)
      overflowMask.mark(0..<4, PageMask.kept)
      overflowMask.mark(from: payloadMask, piece.start..<(piece.start + piece.count), at: 4)
      for index in 0..<piece.count { page[4 &+ index] = content[piece.start &+ index] }
      var gap: Int?
      for index in (4 + piece.count)..<max(4 + piece.count, pageSize) where page[index] != 0 {
        page[index] = 0xff
        if gap == nil { gap = index }
      }
      if let gap { tally.gap(piece.image.file, offset + Int64(gap), pageSize - gap) }
      separate(&page, overflowMask, of: piece.image, isSure: true)
      try outputs.write(piece.image, page, count: present, at: offset)
    }
  }

  /// The record in `payload`, with what belongs to none of its fields overwritten.
  private func ownContent() -> [UInt8] {
    var content = payload
    let marks = payloadMask.marks
    for index in content.indices where marks[index] == PageMask.free && content[index] != 0 { content[index] = 0xff }
    return content
  }

  /// Writes what a page has of a payload that the one who had it before did not claim.
  private func add(
    _ piece: Piece, of content: [UInt8], to page: inout [UInt8], at offset: Int64, _ outputs: ScrubbedSet
  ) throws(FileError) {
    guard case .main(let number) = piece.image, Int(number) < overflowEnds.count else { return }
    let end = Int(overflowEnds[Int(number)])
    guard end > 0, end < piece.count else { return }
    overflowEnds[Int(number)] = UInt16(clamping: piece.count)
    let present = try outputs.read(piece.image, at: offset, into: &page)
    for index in end..<piece.count { page[4 &+ index] = content[piece.start &+ index] }
    try outputs.write(piece.image, page, count: present, at: offset)
  }

  /// Writes what was written for the same content elsewhere; false where there is none of it.
  ///
  /// - Parameter used: how many bytes of the page are claimed.
  func copyWritten(_ image: PageImage, _ bytes: [UInt8], present: Int, used: Int) throws(FileError) -> Bool {
    guard let outputs, case .main(let number) = image, Int(number) < overflowEnds.count else { return false }
    overflowEnds[Int(number)] = UInt16(clamping: used)
    guard survey.isDamaged else { return false }
    let digest = pseudonyms.function(bytes.span, 0..<bytes.count, tweak: 0x70_6167)
    guard let other = written[digest] else {
      written[digest] = image
      return false
    }
    var copy = bytes
    guard try outputs.read(other, at: images.offset(of: other), into: &copy) >= present else { return false }
    try outputs.write(image, copy, count: present, at: images.offset(of: image))
    if let same = chances[other], chances[image] == nil {
      chances[image] = same
      chanceCount += same.count
    }
    return true
  }
}
