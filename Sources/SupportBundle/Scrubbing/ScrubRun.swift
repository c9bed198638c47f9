internal import Platform
internal import SQLiteFormat
internal import Salvage
internal import SystemPackage

/// One pass over all page images: the first notes every value, the second replaces them.
///
/// Not thread-safe.
final class ScrubRun {
  let survey: StoreSurvey
  var images: PageImages
  let rules: ColumnRules
  let pseudonyms: Pseudonyms

  /// The output; nil in the first pass.
  let outputs: ScrubbedSet?

  var isReplacing: Bool { outputs != nil }

  var tally = ScrubTally()

  /// The places where structure or numbers match a value by chance.
  var chances: [PageImage: [Int: UInt64]] = [:]
  var chanceCount = 0

  var changedPlaces: Int64 = 0

  let pageSize: Int
  let usableSize: Int
  let geometry: PayloadGeometry
  let encoding: TextEncoding

  /// Images with disputed overflow pages; processed last, with the unclaimed bytes.
  var deferred: [PageImage] = []
  var isDeferring = true

  /// The claimed bytes by overflow page.
  var overflowEnds: [UInt16]

  /// Pages of uncertain structure, which may be overwritten.
  private(set) var unsurePages = PageSet()

  /// Unowned content by digest, so that copies stay equal.
  var written: [UInt64: PageImage] = [:]

  private var mainDone = PageSet()
  private var logDone: [Bool]
  private var journalDone: [Bool]

  // Reusable buffers.
  var mask: PageMask
  var fields = ScrubbedRecordFields()
  var payload: [UInt8] = []
  var payloadMask = PageMask(count: 0)
  var overflowMask = PageMask(count: 0)
  var overflow: [UInt8]
  var output: [UInt8]

  private var visited: Int64 = 0
  private let progress: (Int64, Int64) -> Bool

  init(
    _ survey: StoreSurvey, _ images: PageImages, _ rules: ColumnRules, _ pseudonyms: Pseudonyms,
    into outputs: ScrubbedSet?, progress: @escaping (Int64, Int64) -> Bool
  ) {
    self.survey = survey
    self.images = images
    self.rules = rules
    self.pseudonyms = pseudonyms
    self.outputs = outputs
    self.progress = progress
    pageSize = survey.pageSize
    usableSize = survey.usableSize
    geometry = PayloadGeometry(usableSize: survey.usableSize)
    encoding = survey.encoding
    logDone = [Bool](repeating: false, count: images.frames.count)
    journalDone = [Bool](repeating: false, count: images.records.count)
    mask = PageMask(count: survey.pageSize)
    overflow = [UInt8](repeating: 0, count: survey.pageSize)
    output = [UInt8](repeating: 0, count: survey.pageSize)
    overflowEnds = [UInt16](repeating: 0, count: Int(survey.pageCount) + 1)
    // The last row is for unknown tables.
    tally.fields = (rules.rules.map(\.count) + [1]).map { Array(repeating: ScrubReport.Counts(), count: $0) }
  }

  /// Processes live pages first, as they show the owners of overflow pages.
  func run() throws {
    try runLive(images.pages)
    try runRest()
  }

  func runLive(_ pages: some Sequence<UInt32>) throws {
    var buffer = [UInt8](repeating: 0, count: pageSize)
    for page in pages where survey.standing(of: page) == .live {
      try visit(.main(page), &buffer, onlyTrees: true)
    }
  }

  func runRest() throws {
    var buffer = [UInt8](repeating: 0, count: pageSize)
    let logs = images.frames.indices.lazy.map(PageImage.log)
    let others = [logs, images.records.indices.lazy.map(PageImage.journal)].joined()
    for image in others { try visit(image, &buffer, onlyTrees: true) }
    for page in images.pages { try visit(.main(page), &buffer, onlyTrees: true) }
    isDeferring = false
    for image in deferred { try visit(image, &buffer, onlyTrees: true, isAgain: true) }
    for page in images.pages { try visit(.main(page), &buffer, onlyTrees: false) }
    for image in others { try visit(image, &buffer, onlyTrees: false) }
  }

  private func visit(_ image: PageImage, _ buffer: inout [UInt8], onlyTrees: Bool, isAgain: Bool = false) throws {
    visited += 1
    if visited % 256 == 0 {
      let total = 2 * Int64(images.pageCount) + Int64(images.frames.count + images.records.count)
      guard progress(visited, total) else { throw SupportBundleError.cancelled(SupportBundleErrors.scrubbing) }
    }
    guard isAgain || !isDone(image) else { return }
    let present = try images.read(image, into: &buffer)
    if present == 0 { return }
    if let kind = treeKind(buffer, image) {
      try treePage(image, buffer, present: present, kind: kind.kind, start: kind.start)
    } else if !onlyTrees {
      try otherPage(image, buffer, present: present)
    }
  }

  /// Returns the page type and header offset, if of a b-tree.
  private func treeKind(_ bytes: [UInt8], _ image: PageImage) -> (kind: PageKind, start: Int)? {
    let start = images.page(of: image) == 1 && bytes[0] != 13 && bytes[0] != 10 ? DatabaseHeader.length : 0
    return PageKind(rawValue: bytes[start]).map { ($0, start) }
  }

  // MARK: Accounts

  func isDone(_ image: PageImage) -> Bool {
    switch image {
    case .main(let page): mainDone.contains(page)
    case .log(let index): logDone[index]
    case .journal(let index): journalDone[index]
    }
  }

  /// Merges a run over other live pages.
  func take(_ other: ScrubRun) {
    for page in images.pages {
      if other.mainDone.contains(page) { _ = mainDone.insert(page) }
      if other.unsurePages.contains(page) { _ = unsurePages.insert(page) }
    }
    deferred += other.deferred
    chances.merge(other.chances) { first, _ in first }
    chanceCount += other.chanceCount
    changedPlaces += other.changedPlaces
    visited += other.visited
    tally.add(other.tally)
    if isReplacing {
      pseudonyms.takeFindings(of: other.pseudonyms)
    } else {
      pseudonyms.takeNotes(of: other.pseudonyms)
    }
  }

  func setDone(_ image: PageImage) {
    switch image {
    case .main(let page): _ = mainDone.insert(page)
    case .log(let index): logDone[index] = true
    case .journal(let index): journalDone[index] = true
    }
  }

  /// Overwrites unclaimed bytes, and writes an image.
  ///
  /// - Parameter isSure: whether its structure is certain.
  func writeImage(_ image: PageImage, _ page: inout [UInt8], present: Int, isSure: Bool) throws(FileError) {
    setDone(image)
    guard let outputs else { return }
    fillGaps(image, &page)
    separate(&page, mask, of: image, isSure: isSure)
    if !isSure, case .main(let number) = image { _ = unsurePages.insert(number) }
    try outputs.write(image, page, count: present, at: images.offset(of: image))
  }

  private func fillGaps(_ image: PageImage, _ page: inout [UInt8]) {
    // Avoids an exclusivity check per byte.
    let marks = mask.marks
    var gap: Int?
    for index in 0..<min(page.count, marks.count) {
      if marks[index] == PageMask.free, page[index] != 0 {
        page[index] = 0xff
        if gap == nil { gap = index }
      } else if let start = gap, marks[index] != PageMask.free {
        note(gapFrom: start, to: index, in: image)
        gap = nil
      }
    }
    if let gap { note(gapFrom: gap, to: page.count, in: image) }
  }

  private func note(gapFrom start: Int, to end: Int, in image: PageImage) {
    tally.gap(image.part, images.offset(of: image) + Int64(start), end - start)
  }
}

extension ScrubRun {
  /// A part of a payload on an overflow page.
  struct Piece {
    var image: PageImage

    var start: Int

    var count: Int
  }

  /// The longest value in memory; later pages are processed singly.
  static let longestPayload = 16 << 20

  /// Appends the overflow of a payload, while intact and unshared.
  ///
  /// - Returns: the pieces, and whether the chain continues and so may be another's.
  func follow(_ first: UInt32, of image: PageImage, length: Int) throws(FileError) -> (pieces: [Piece], leadsOn: Bool) {
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
      if let gap { tally.gap(piece.image.part, offset + Int64(gap), pageSize - gap) }
      separate(&page, overflowMask, of: piece.image, isSure: true)
      try outputs.write(piece.image, page, count: present, at: offset)
    }
  }

  private func ownContent() -> [UInt8] {
    var content = payload
    let marks = payloadMask.marks
    for index in content.indices where marks[index] == PageMask.free && content[index] != 0 { content[index] = 0xff }
    return content
  }

  /// Writes unclaimed bytes of a payload.
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

  /// Writes the replacement of equal content elsewhere, if any.
  ///
  /// - Parameter used: the claimed bytes.
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

/// The counts of a running scrub.
struct ScrubTally {
  var fields: [[ScrubReport.Counts]] = []

  var pages = ScrubReport.Pages()

  private var gaps: [ScrubReport.Gap] = []
  private var gapCount = 0
  private var gapBytes: Int64 = 0

  var keptMatches: Int64 = 0

  private static let gapLimit = 10_000

  mutating func gap(_ part: StoreFileSet.Part, _ offset: Int64, _ length: Int) {
    gapCount += 1
    gapBytes += Int64(length)
    if gaps.count < Self.gapLimit { gaps.append(.init(file: part.rawValue, offset: offset, length: length)) }
  }

  func fillGaps(of report: inout ScrubReport) {
    (report.gaps, report.gapCount, report.gapBytes) = (gaps, gapCount, gapBytes)
  }

  mutating func add(_ other: ScrubTally) {
    for (tree, counts) in other.fields.enumerated() where tree < fields.count {
      for (field, count) in counts.enumerated() where field < fields[tree].count { fields[tree][field].add(count) }
    }
    pages.add(other.pages)
    gaps += other.gaps.prefix(max(0, Self.gapLimit - gaps.count))
    gapCount += other.gapCount
    gapBytes += other.gapBytes
    keptMatches += other.keptMatches
  }

  mutating func count(_ outcome: Pseudonyms.Outcome, _ tree: Int?, _ field: Int) {
    guard let tree, tree < fields.count, field < fields[tree].count else {
      if let last = fields.indices.last, !fields[last].isEmpty { fields[last][0].add(outcome) }
      return
    }
    fields[tree][field].add(outcome)
  }
}

/// The serial types and ranges of a record's fields.
struct ScrubbedRecordFields {
  private(set) var codes: [Int64] = []

  private(set) var starts: [Int] = []

  /// The offset of each serial type.
  private(set) var heads: [Int] = []

  private(set) var headerEnd = 0

  /// Whether header and length agree.
  private(set) var isWellFormed = false

  /// Reads a record's header; false if malformed.
  ///
  /// - Parameters:
  ///   - end: the end of the available bytes.
  ///   - length: the length of the whole record.
  mutating func read(_ bytes: Span<UInt8>, at start: Int, before end: Int, length: Int) -> Bool {
    codes.removeAll(keepingCapacity: true)
    starts.removeAll(keepingCapacity: true)
    heads.removeAll(keepingCapacity: true)
    isWellFormed = false
    var offset = start
    guard let header = Varint.read(bytes, at: &offset, before: end), header > 0, header <= Int64(end &- start) else {
      return false
    }
    headerEnd = start &+ Int(header)
    var body = headerEnd
    while offset < headerEnd {
      heads.append(offset)
      guard let code = Varint.read(bytes, at: &offset, before: headerEnd), let width = SerialType.length(of: code),
        width <= Cell.maximumPayloadLength, codes.count < 32768
      else { return false }
      codes.append(code)
      starts.append(body)
      body &+= width
    }
    isWellFormed = body &- start == length
    return true
  }

  /// Returns a field's available bytes; nil for a partial number.
  @inline(__always)
  func range(_ field: Int, before end: Int) -> Range<Int>? {
    let start = starts[field]
    let code = codes[field]
    let width = SerialType.length(of: code) ?? 0
    if width <= end &- start { return start..<(start &+ width) }
    guard code >= 12, start < end else { return nil }
    return start..<end
  }
}
