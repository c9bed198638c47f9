internal import Platform
internal import SQLiteFormat

/// Reads pages by number, newest committed image first; not thread-safe.
final class PageReader {
  let main: any ByteSource
  private(set) var layout: FileLayout
  let pageSize: Int
  let usableSize: Int
  let geometry: PayloadGeometry

  let overlay: PageOverlay?
  private let overlaySource: (any ByteSource)?

  /// The highest number of a page with any byte.
  let pageCount: UInt32

  /// The store's original page count; larger than ``pageCount`` if truncated.
  let statedPageCount: UInt32

  /// The pages removed from the file.
  private let removed: Range<UInt32>

  /// Whether the file contradicts log or journal, so that their pages are marked.
  var isOverlayContradicted = false

  /// Pages with their content in another place.
  var moved: [UInt32: UInt32] = [:]

  enum Images {
    case newest

    /// Those of an unfinished transaction; for display only.
    case uncommitted

    /// Those in the database file; for display only.
    case main
  }

  private let images: Images

  private var window: [UInt8]
  private var windowStart: Int64 = 0
  private var windowCount = 0
  private var lastPage: UInt32 = 0

  init(evidence: Evidence, layout: FileLayout, overlay: PageOverlay?) {
    main = evidence.main
    self.layout = layout
    let size = Int64(layout.pageSize)
    removed =
      (main as? RealignedFile)?.hole.map {
        UInt32(clamping: $0.lowerBound / size + 1)..<UInt32(clamping: $0.upperBound / size + 1)
      } ?? 0..<0
    pageSize = layout.pageSize
    usableSize = layout.usableSize
    geometry = layout.geometry
    self.overlay = overlay
    isOverlayContradicted = overlay?.isContradicted ?? false
    images = .newest
    overlaySource = overlay.map { $0.source == .log ? evidence.log : evidence.journal } ?? nil
    var count = layout.pageCount
    if let overlay, overlaySource != nil {
      // A hostile log can name any page; there are at most as many pages as images.
      let reach = UInt32(clamping: Int64(layout.pageCount) + Int64(overlay.images.count) + 65536)
      count = max(count, overlay.images.keys.filter { $0 <= reach }.max() ?? 0)
    }
    pageCount = count
    var stated = overlay?.pageCount ?? 0
    if let header = layout.header, header.hasMagic, header.isPageCountValid { stated = max(stated, header.pageCount) }
    statedPageCount = max(count, stated)
    window = [UInt8](repeating: 0, count: max(1 << 18, layout.pageSize))
  }

  init(showing images: Images, of other: PageReader) {
    main = other.main
    layout = other.layout
    removed = other.removed
    pageSize = other.pageSize
    usableSize = other.usableSize
    geometry = other.geometry
    overlay = other.overlay
    isOverlayContradicted = other.isOverlayContradicted
    overlaySource = other.overlaySource
    pageCount = other.pageCount
    statedPageCount = other.statedPageCount
    moved = other.moved
    self.images = images
    window = [UInt8](repeating: 0, count: other.window.count)
  }

  var wholePageCount: UInt32 {
    min(layout.pageCount, UInt32(clamping: max(0, main.count - layout.base) / Int64(pageSize)))
  }

  /// Corrects the header's auto-vacuum fields where pages contradict them.
  func settlePointerMaps() throws {
    let isThere = try PointerMaps(self).isThere
    guard let header = layout.header, header.isAutoVacuum != isThere else { return }
    layout.header?.largestRootPage = isThere ? 1 : 0
    if !isThere { layout.header?.incrementalVacuum = 0 }
  }

  func makeBuffer() -> [UInt8] { [UInt8](repeating: 0, count: pageSize) }

  /// Whether SQLite would ignore the image in use, or the file contradicts it.
  func isDoubtful(_ page: UInt32) -> Bool {
    overlay?.images[page].map { $0.isDoubtful || isOverlayContradicted } ?? false
  }

  /// Whether a journal was only partly undone, so that other pages may be newer.
  var isOfTwoTimes: Bool { overlay.map { $0.source == .journal && $0.isCutOff } ?? false }

  /// The bytes of a page that exist; partial only at the end of a truncated file.
  func presentCount(_ page: UInt32) -> Int {
    if overlay?.images[page] != nil { return pageSize }
    if removed.contains(page) { return 0 }
    let rest = main.count - layout.base - Int64(page - 1) * Int64(pageSize)
    return Int(max(0, min(Int64(pageSize), rest)))
  }

  /// The bytes of a page past the end of the file.
  func hole(in page: UInt32) -> Range<Int>? {
    let present = presentCount(page)
    return present < pageSize ? present..<pageSize : nil
  }

  /// The bytes made uncertain by a shift in the file.
  func uncertainBytes(of page: UInt32) -> Range<Int>? {
    guard overlay?.images[page] == nil, let uncertain = (main as? RealignedFile)?.uncertain else { return nil }
    let start = layout.base + Int64(page - 1) * Int64(pageSize)
    let end = start + Int64(pageSize)
    return uncertain.first { $0.lowerBound < end && $0.upperBound > start }.map {
      Int(max(start, $0.lowerBound) - start)..<Int(min(end, $0.upperBound) - start)
    }
  }

  /// Whether a page may be another one, as pages were removed or inserted nearby.
  func mayBeAnother(_ page: UInt32) -> Bool {
    (main as? RealignedFile)?.reason == .pages && uncertainBytes(of: page) != nil
  }

  /// Reads a page's effective content, zero-filled past the end of the file; returns false if none exists.
  func read(_ number: UInt32, into buffer: inout [UInt8]) throws -> Bool {
    try readPlace(moved.isEmpty ? number : moved[number] ?? number, into: &buffer)
  }

  /// Reads the content at a page's own place.
  func readPlace(_ number: UInt32, into buffer: inout [UInt8]) throws -> Bool {
    guard number > 0, number <= pageCount else { return false }
    if let overlay, let overlaySource, images != .main,
      let image = (images == .uncommitted ? overlay.uncommitted[number] : nil) ?? overlay.images[number]
    {
      let got = try overlaySource.read(at: image.offset, length: pageSize, into: &buffer)
      if got == pageSize { return true }
      if got > 0 {
        Self.clear(&buffer, from: got)
        return true
      }
    }
    return try readMain(number, into: &buffer)
  }

  func readMain(_ number: UInt32, into buffer: inout [UInt8]) throws -> Bool {
    guard number > 0, number <= layout.pageCount, !removed.contains(number) else { return false }
    let offset = layout.base + Int64(number - 1) * Int64(pageSize)
    let inWindow = offset - windowStart
    if inWindow >= 0, inWindow + Int64(pageSize) <= Int64(windowCount) {
      lastPage = number
      Self.copy(window, from: Int(inWindow), count: pageSize, into: &buffer)
      return true
    }
    let isNext = number > lastPage && number &- lastPage <= 8
    lastPage = number
    if isNext {
      windowCount = try main.read(at: offset, length: window.count, into: &window)
      windowStart = offset
      if windowCount >= pageSize {
        Self.copy(window, from: 0, count: pageSize, into: &buffer)
        return true
      }
    }
    let got = try main.read(at: offset, length: pageSize, into: &buffer)
    guard got > 0 else { return false }
    if got < pageSize { Self.clear(&buffer, from: got) }
    return true
  }

  private static func copy(_ source: [UInt8], from start: Int, count: Int, into buffer: inout [UInt8]) {
    let bytes = source.span.extracting(start..<(start + count))
    var target = buffer.mutableSpan
    let room = min(bytes.count, target.count)
    for index in 0..<room { target[index] = bytes[index] }
  }

  private static func clear(_ buffer: inout [UInt8], from start: Int) {
    for index in start..<buffer.count { buffer[index] = 0 }
  }
}

extension PageReader {
  /// Finds the file's layout, and applies log or journal.
  ///
  /// - Throws: ``SalvageError``: `nothing-to-salvage` if no page is found.
  static func open(_ evidence: Evidence, _ use: EvidenceUse = EvidenceUse()) throws -> PageReader {
    let reader = try reader(evidence, use)
    try reader.settlePointerMaps()
    return reader
  }

  private static func reader(_ evidence: Evidence, _ use: EvidenceUse) throws -> PageReader {
    var (layout, isFileReadable) = try layout(evidence, use)
    guard var overlay = try overlay(evidence, layout, use, isFileReadable: isFileReadable) else {
      guard isFileReadable || evidence.main.count > 0 else { throw SalvageError.nothing(in: evidence) }
      return PageReader(evidence: evidence, layout: layout, overlay: nil)
    }
    guard let source = overlay.source == .log ? evidence.log : evidence.journal else {
      return PageReader(evidence: evidence, layout: layout, overlay: nil)
    }
    if let image = overlay.images[1],
      let header = DatabaseHeader(try source.bytes(at: image.offset, length: DatabaseHeader.length)),
      header.hasMagic, header.pageSize == layout.pageSize
    {
      layout.header = header
      layout.encoding = header.encoding ?? layout.encoding
      layout.usableSize = header.usableSize ?? layout.usableSize
    } else if !isFileReadable {
      try learn(&layout, from: overlay, in: source)
    }
    if !isFileReadable {
      overlay.remarks.append(
        "no page of the database file can be read: all that was recovered is from its "
          + (overlay.source == .log ? "write-ahead log" : "rollback journal"))
    }
    return PageReader(evidence: evidence, layout: layout, overlay: overlay)
  }

  /// The layout by the file, else by its log or journal.
  private static func layout(
    _ evidence: Evidence, _ use: EvidenceUse
  ) throws -> (layout: FileLayout, isFileReadable: Bool) {
    var search = FileLayoutSearch(main: evidence.main)
    search.offset = use.offset
    search.encodingElsewhere = use.encoding
    var logHeader: WriteAheadLog.Header?
    if let log = evidence.log {
      logHeader = WriteAheadLog.Header(try log.bytes(at: 0, length: WriteAheadLog.Header.length))
      if let logHeader, logHeader.isChecksumRight, let size = logHeader.pageSize { search.sizesElsewhere.append(size) }
    }
    if let layout = try search.find() { return (layout, true) }
    if let offset = use.offset {
      throw SalvageError(
        .nothingFound, path: evidence.files.main, detail: "no database begins at byte \(offset) of the file",
        hint: "The report of a salvage without that byte lists where databases begin.")
    }
    let journalSize = try evidence.journal.map { journal in try JournalSurvey.pageSize(journal) }
    guard let size = logHeader?.pageSize ?? journalSize ?? nil else { throw SalvageError.nothing(in: evidence) }
    let layout = FileLayout(
      pageSize: size, usableSize: size, base: 0, header: nil, encoding: .utf8,
      pageCount: UInt32(clamping: (evidence.main.count + Int64(size) - 1) / Int64(size)))
    return (layout, false)
  }

  private static func overlay(
    _ evidence: Evidence, _ layout: FileLayout, _ use: EvidenceUse, isFileReadable: Bool
  ) throws -> PageOverlay? {
    if use.undoesJournal, let journal = evidence.journal,
      let found = try JournalSurvey.read(journal, evidence.main, layout, isFileReadable: isFileReadable)
    {
      return found
    }
    guard use.log != .none, let log = evidence.log, var found = try LogSurvey.read(log, pageSize: layout.pageSize),
      found.pageSize == layout.pageSize
    else { return nil }
    if use.log == .whereFileLacks {
      try leaveWhatFileLacks(in: &found, log, evidence.main, layout)
      return found.images.isEmpty ? nil : found
    }
    return found
  }

  /// Infers encoding and reserved bytes from images, as a last resort.
  private static func learn(
    _ layout: inout FileLayout, from overlay: PageOverlay, in source: any ByteSource
  ) throws {
    var vote = FileLayoutSearch.Vote(size: overlay.pageSize, base: 0)
    for (_, image) in overlay.images.sorted(by: { $0.key < $1.key }).prefix(imagesToLearnFrom) {
      let bytes = try source.bytes(at: image.offset, length: overlay.pageSize)
      _ = TreePageLook.add(bytes.span, isFirst: false, to: &vote)
    }
    guard vote.pages > 0 else { return }
    layout.encoding = vote.schemaEncoding ?? vote.encoding
    layout.usableSize = layout.pageSize - vote.mostReserved
  }

  private static let imagesToLearnFrom = 256

  /// Keeps only images of pages that the file lacks, and marks them.
  private static func leaveWhatFileLacks(
    in overlay: inout PageOverlay, _ log: any ByteSource, _ main: any ByteSource, _ layout: FileLayout
  ) throws {
    let size = layout.pageSize
    overlay.isContradicted = true
    overlay.pageCount = nil
    overlay.uncommitted = [:]
    overlay.uncommittedCount = 0
    for (page, image) in overlay.images {
      overlay.images[page]?.isDoubtful = true
      let own = try main.bytes(at: layout.base + Int64(page - 1) * Int64(size), length: size)
      guard own.count == size, !PageSurvey.isZero(own.span) else { continue }
      let older = try log.bytes(at: image.offset, length: size)
      let start = page == 1 ? DatabaseHeader.length : 0
      // It may be an overflow page, unless the log has a b-tree page there.
      if isTreePage(own.span, start, layout) || !isTreePage(older.span, start, layout) { overlay.images[page] = nil }
    }
  }

  private static func isTreePage(_ bytes: Span<UInt8>, _ start: Int, _ layout: FileLayout) -> Bool {
    guard start < bytes.count, let kind = PageKind(rawValue: bytes[start]) else { return false }
    return PageSurvey.isPossible(bytes, kind, start, layout.usableSize)
  }
}

extension SalvageError {
  static func nothing(in evidence: Evidence) -> SalvageError {
    let isEmpty = evidence.main.count == 0 && evidence.log == nil && evidence.journal == nil
    return SalvageError(
      .nothingFound, path: evidence.files.main,
      detail: isEmpty ? "the file is empty, and nothing was in it" : "no page of a SQLite database is in it")
  }
}

struct EvidenceUse: Hashable {
  enum Log: Hashable {
    case newest

    /// An older log: only pages that the file lacks are used, and marked.
    case whereFileLacks

    case none
  }

  var log = Log.newest

  var undoesJournal = true

  var offset: Int64?

  /// The encoding to assume without a header.
  var encoding: TextEncoding?
}
