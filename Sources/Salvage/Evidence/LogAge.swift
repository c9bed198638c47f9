internal import Platform
internal import SQLiteFormat

/// Whether a write-ahead log is of an earlier time than the database file that it lies beside.
///
/// What only ever grows tells: the counters on the first page, the highest keys that Core Data gave and, but for what makes a
/// file shorter, the number of its pages.
struct LogAge {
  private let crawl: Crawl
  private let overlay: PageOverlay
  private let log: any ByteSource

  /// The log of a walked store; nil where none is used.
  init?(_ crawl: Crawl, _ evidence: Evidence) {
    guard let overlay = crawl.reader.overlay, overlay.source == .log, let log = evidence.log,
      crawl.reader.layout.pageCount > 0
    else { return nil }
    self.crawl = crawl
    self.overlay = overlay
    self.log = log
  }

  private var reader: PageReader { crawl.reader }

  /// Whether anything in the log is from before what the file has.
  ///
  /// - Parameter entries: the list of tables.
  func isOlder(_ entries: [SchemaEntry]) throws(SalvageError) -> Bool {
    let found = DatabaseHeader(try reader.main.piece(at: reader.layout.base, length: DatabaseHeader.length))
    let main = found.flatMap { $0.hasMagic && $0.hasUsualFractions ? $0 : nil }
    if let main, let image = overlay.images[1],
      let own = DatabaseHeader(try log.piece(at: image.offset, length: DatabaseHeader.length)), own.hasMagic
    {
      if EarlierImages.isEarlier(own, than: main) { return true }
    }
    if try endsBefore(main) { return true }
    for entry in entries where isSame(entry.name, "Z_PRIMARYKEY") && entry.rootPage > 1 {
      if try hasLowerKeys(entry.rootPage) { return true }
    }
    return false
  }

  /// Whether the file goes on behind the end that the log gives it, or did before it was cut off.
  ///
  /// Of its own log only one says so that made the file shorter: it has nearly all pages, or the file has pointer maps.
  private func endsBefore(_ main: DatabaseHeader?) throws(SalvageError) -> Bool {
    guard let end = overlay.pageCount,
      !EarlierImages.mayHaveShortened(
        end: end, images: overlay.images.keys.count(where: { $0 <= end }),
        isAutoVacuum: reader.layout.header?.isAutoVacuum ?? true)
    else { return false }
    let stated = main.flatMap { $0.isPageCountValid ? $0.pageCount : nil }
    if let stated, stated <= end { return false }
    guard end < reader.layout.pageCount else { return try leadsBehind(end, before: stated) }
    if let stated { return stated <= reader.layout.pageCount }
    return (end + 1...reader.layout.pageCount).contains { page in
      guard overlay.images[page] == nil, crawl.map.fieldCount(page) > 0 else { return false }
      return crawl.map.look(page) == .tableLeaf || crawl.map.look(page) == .indexLeaf
    }
  }

  /// Whether a page in the file leads behind an end.
  ///
  /// - Parameter stated: how many pages the file had by its header; nil where that is lost.
  private func leadsBehind(_ end: UInt32, before stated: UInt32?) throws(SalvageError) -> Bool {
    let last = stated ?? end.addingReportingOverflow(end).partialValue
    var bytes = reader.makeBuffer()
    for page in 1...reader.layout.pageCount {
      guard try reader.readMain(page, into: &bytes) else { continue }
      let start = page == 1 ? DatabaseHeader.length : 0
      guard let kind = PageKind(rawValue: bytes[start]), !kind.isLeaf,
        PageSurvey.isPossible(bytes.span, kind, start, reader.usableSize), let count = bytes.span.uint16(at: start + 3)
      else { continue }
      let places = (0..<count).map { bytes.span.uint16(at: start + kind.headerLength + 2 * $0) ?? 0 } + [start + 8]
      let children = places.map { bytes.span.uint32(at: $0) ?? 0 }
      // One child that is out of range may be a damaged number; all of a sound page are in it.
      if children.allSatisfy({ $0 > 0 && $0 <= last }), children.contains(where: { $0 > end }) { return true }
    }
    return false
  }

  /// Whether the highest keys that the log has of Core Data's entities are lower than those of the file, and none is higher.
  private func hasLowerKeys(_ page: UInt32) throws(SalvageError) -> Bool {
    guard overlay.images[page] != nil, page <= reader.layout.pageCount else { return false }
    if let end = overlay.pageCount, overlay.images.keys.count(where: { $0 <= end }) >= Int(end) - 1 {
      // A log that has all pages of its database is the whole of it, as where the store was made anew.
      return false
    }
    var bytes = reader.makeBuffer()
    guard try reader.readPlace(page, into: &bytes),
      let newer = BTreePage(bytes, number: page, geometry: reader.geometry), try reader.readMain(page, into: &bytes),
      let older = BTreePage(bytes, number: page, geometry: reader.geometry)
    else { return false }
    return EarlierImages.hasLowerKeys(newer, than: older, reader.layout.encoding)
  }
}
