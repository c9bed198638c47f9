internal import SQLiteFormat
internal import Salvage
internal import StoreFiles

extension ScrubRun {
  /// A part of a payload on an overflow page.
  struct Piece {
    /// The page's image.
    var image: PageImage

    /// Where in the payload its bytes begin.
    var start: Int

    /// How many there are.
    var count: Int
  }

  /// The most bytes of one value that are held at once; pages behind them are dealt with one by one.
  static let longestPayload = 16 << 20

  /// Appends the rest of a payload, as far as its chain is whole and nobody else's, and says where it is from.
  func follow(_ first: UInt32, from image: PageImage, length: Int) throws(FileError) -> [Piece] {
    var pieces: [Piece] = []
    let perPage = usableSize - 4
    var seen: Set<UInt32> = []
    var next = first
    while payload.count < min(length, Self.longestPayload) {
      guard next >= 2, seen.insert(next).inserted, let place = images.image(of: next, from: image) else { break }
      if case .main(let page) = place, survey.standing(of: page) == .live { break }
      let present = try images.read(place, into: &overflow)
      guard present >= 4, overflow[0] < 2 || PageKind(rawValue: overflow[0]) == nil else { break }
      let used = min(perPage, length - payload.count)
      pieces.append(Piece(image: place, start: payload.count, count: used))
      payload.append(contentsOf: overflow[4..<(4 + used)])
      next = overflow.span.uint32(at: 0) ?? 0
    }
    return pieces
  }

  /// Writes the pieces of a replaced payload over their pages.
  func write(_ pieces: [Piece]) throws(FileError) {
    guard let outputs, !pieces.isEmpty else { return }
    var page: [UInt8] = []
    swap(&page, &overflow)
    defer { swap(&page, &overflow) }
    let content = payload
    for piece in pieces where !isDone(piece.image) {
      let present = try images.read(piece.image, into: &page)
      for index in 0..<piece.count { page[4 &+ index] = content[piece.start &+ index] }
      var gap: Int?
      for index in (4 + piece.count)..<max(4 + piece.count, pageSize) where page[index] != 0 {
        page[index] = 0xff
        if gap == nil { gap = index }
      }
      if let gap {
        tally.gap(piece.image.file, images.offset(of: piece.image) + Int64(gap), pageSize - gap)
      }
      separate(&page, isOverflow: true, isSure: true)
      setDone(piece.image)
      tally.pages.overflow += 1
      try outputs.write(piece.image, page, count: present, at: images.offset(of: piece.image))
    }
  }
}
