internal import Platform
internal import SQLiteFormat

/// Determines whether a log is older than its database file.
///
/// Compares values that only grow: page 1's counters, Core Data's highest keys and, without truncation, the page count.
struct LogAge {
  private let crawl: Crawl
  private let overlay: PageOverlay
  private let log: any ByteSource

  init?(_ crawl: Crawl, _ evidence: Evidence) {
    guard let overlay = crawl.reader.overlay, overlay.source == .log, let log = evidence.log,
      crawl.reader.layout.pageCount > 0
    else { return nil }
    self.crawl = crawl
    self.overlay = overlay
    self.log = log
  }

  private var reader: PageReader { crawl.reader }

  func isOlder(_ entries: [SchemaEntry]) throws -> Bool {
    let found = DatabaseHeader(try reader.main.bytes(at: reader.layout.base, length: DatabaseHeader.length))
    let main = found.flatMap { $0.hasMagic && $0.hasUsualFractions ? $0 : nil }
    if let main, let image = overlay.images[1],
      let own = DatabaseHeader(try log.bytes(at: image.offset, length: DatabaseHeader.length)), own.hasMagic
    {
      if EarlierImages.isEarlier(own, than: main) { return true }
    }
    if try endsBefore(main) { return true }
    for entry in entries where isSame(entry.name, "Z_PRIMARYKEY") && entry.rootPage > 1 {
      if try hasLowerKeys(entry.rootPage) { return true }
    }
    return false
  }

  /// Whether the file extends past the log's end, or did before truncation.
  ///
  /// The file's own log ends earlier only after shrinking the file: it has nearly all pages, or the file has pointer
  /// maps.
  private func endsBefore(_ main: DatabaseHeader?) throws -> Bool {
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

  private func leadsBehind(_ end: UInt32, before stated: UInt32?) throws -> Bool {
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
      // One child out of range may be damage; all must be in range.
      if children.allSatisfy({ $0 > 0 && $0 <= last }), children.contains(where: { $0 > end }) { return true }
    }
    return false
  }

  /// Whether some of Core Data's highest keys are lower in the log, and none is higher.
  private func hasLowerKeys(_ page: UInt32) throws -> Bool {
    guard overlay.images[page] != nil, page <= reader.layout.pageCount else { return false }
    if let end = overlay.pageCount, overlay.images.keys.count(where: { $0 <= end }) >= Int(end) - 1 {
      // A log with all pages replaces the database, as after a rebuild.
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
