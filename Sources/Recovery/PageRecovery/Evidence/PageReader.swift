internal import SQLiteFormat
internal import StoreFiles

/// Gives the pages of a damaged database by number, newest committed image first.
///
/// Not for use from several threads at once.
final class PageReader {
  let main: any ByteSource
  private(set) var layout: FileLayout
  let pageSize: Int
  let usableSize: Int
  let geometry: PayloadGeometry

  /// The images of the log or of the journal.
  let overlay: PageOverlay?
  private let overlaySource: (any ByteSource)?

  /// The highest page number of which any byte exists.
  let pageCount: UInt32

  /// The highest page number that the store had: more than there are where the end of the file is missing.
  let statedPageCount: UInt32

  /// Whether the database file contradicts its log or journal, so that what is from there is marked.
  var isOverlayContradicted = false

  /// Pages whose content stands at another page's place.
  var moved: [UInt32: UInt32] = [:]

  /// Which images of a page a reader gives.
  enum Images {
    case newest

    /// That of a transaction that never ended, where there is one; for looking at it only.
    case uncommitted

    /// That of the database file itself, without log or journal; for looking at it only.
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
    pageSize = layout.pageSize
    usableSize = layout.usableSize
    geometry = layout.geometry
    self.overlay = overlay
    isOverlayContradicted = overlay?.isContradicted ?? false
    images = .newest
    overlaySource = overlay.map { $0.source == .log ? evidence.log : evidence.journal } ?? nil
    var count = layout.pageCount
    if let overlay, overlaySource != nil {
      // A hostile log can name any page; only as many pages can exist as there are images.
      let reach = UInt32(clamping: Int64(layout.pageCount) + Int64(overlay.images.count) + 65536)
      count = max(count, overlay.images.keys.filter { $0 <= reach }.max() ?? 0)
    }
    pageCount = count
    var stated = overlay?.pageCount ?? 0
    if let header = layout.header, header.hasMagic, header.isPageCountValid { stated = max(stated, header.pageCount) }
    statedPageCount = max(count, stated)
    window = [UInt8](repeating: 0, count: max(1 << 18, layout.pageSize))
  }

  /// The same pages by other images of them.
  init(showing images: Images, of other: PageReader) {
    main = other.main
    layout = other.layout
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

  /// The pages of which the database file has every byte; one that it ends within is none.
  var wholePageCount: UInt32 {
    min(layout.pageCount, UInt32(clamping: max(0, main.count - layout.base) / Int64(pageSize)))
  }

  /// Puts right what the header says of pointer maps, where the pages contradict it.
  func settlePointerMaps() throws(SalvageError) {
    let isThere = try PointerMaps(self).isThere
    guard let header = layout.header, header.isAutoVacuum != isThere else { return }
    layout.header?.largestRootPage = isThere ? 1 : 0
    if !isThere { layout.header?.incrementalVacuum = 0 }
  }

  /// A buffer for a page.
  func makeBuffer() -> [UInt8] { [UInt8](repeating: 0, count: pageSize) }

  /// Whether the image that counts is one that SQLite would not have read, or one that the file contradicts.
  func isDoubtful(_ page: UInt32) -> Bool {
    overlay?.images[page].map { $0.isDoubtful || isOverlayContradicted } ?? false
  }

  /// Whether a rollback journal was undone in part, so that other pages may be of the transaction that it is of.
  var isOfTwoTimes: Bool { overlay.map { $0.source == .journal && $0.isCutOff } ?? false }

  /// How many bytes of a page are there; fewer than a page only where the file is cut off.
  func presentCount(_ page: UInt32) -> Int {
    if overlay?.images[page] != nil { return pageSize }
    let rest = main.count - layout.base - Int64(page - 1) * Int64(pageSize)
    return Int(max(0, min(Int64(pageSize), rest)))
  }

  /// The bytes of a page that are not there, because the file ends before them; nil where there are none.
  func hole(in page: UInt32) -> Range<Int>? {
    let present = presentCount(page)
    return present < pageSize ? present..<pageSize : nil
  }

  /// The bytes of a page of which nothing tells whether they are right, because the file shifted there; nil where there are
  /// none.
  func uncertainBytes(of page: UInt32) -> Range<Int>? {
    guard overlay?.images[page] == nil, let uncertain = (main as? RealignedFile)?.uncertain else { return nil }
    let start = layout.base + Int64(page - 1) * Int64(pageSize)
    let end = start + Int64(pageSize)
    return uncertain.first { $0.lowerBound < end && $0.upperBound > start }.map {
      Int(max(start, $0.lowerBound) - start)..<Int(min(end, $0.upperBound) - start)
    }
  }

  /// Reads what counts as a page's content; false where there is none.
  ///
  /// What the file does not hold of its last page is zeros.
  func read(_ number: UInt32, into buffer: inout [UInt8]) throws(SalvageError) -> Bool {
    try readPlace(moved.isEmpty ? number : moved[number] ?? number, into: &buffer)
  }

  /// Reads the content at a page's own place.
  func readPlace(_ number: UInt32, into buffer: inout [UInt8]) throws(SalvageError) -> Bool {
    guard number > 0, number <= pageCount else { return false }
    if let overlay, let overlaySource, images != .main,
      let image = (images == .uncommitted ? overlay.uncommitted[number] : nil) ?? overlay.images[number]
    {
      let got = try overlaySource.piece(at: image.offset, length: pageSize, into: &buffer)
      if got == pageSize { return true }
      if got > 0 {
        Self.clear(&buffer, from: got)
        return true
      }
    }
    return try readMain(number, into: &buffer)
  }

  /// Reads a page of the database file itself, without log or journal.
  func readMain(_ number: UInt32, into buffer: inout [UInt8]) throws(SalvageError) -> Bool {
    guard number > 0, number <= layout.pageCount else { return false }
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
      windowCount = try main.piece(at: offset, length: window.count, into: &window)
      windowStart = offset
      if windowCount >= pageSize {
        Self.copy(window, from: 0, count: pageSize, into: &buffer)
        return true
      }
    }
    let got = try main.piece(at: offset, length: pageSize, into: &buffer)
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
