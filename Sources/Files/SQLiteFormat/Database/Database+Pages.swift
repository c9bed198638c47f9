public import StoreFiles

extension Database {
  /// A page as a reader would see it, or nil where no byte of it exists.
  ///
  /// Pages behind ``pageCount`` are given too where the file holds them.
  public func page(_ number: UInt32) throws(FormatError) -> Page? {
    guard number > 0, number <= highestPage else { return nil }
    if let page = cache.page(number) { return page }
    guard let page = try readPage(number) else { return nil }
    cache.insert(page)
    return page
  }

  /// A page's b-tree header and cells; nil where the page does not exist or is of another kind.
  public func bTreePage(_ number: UInt32) throws(FormatError) -> BTreePage? {
    guard let page = try page(number) else { return nil }
    return BTreePage(page.bytes, number: number, geometry: geometry)
  }

  /// What the pointer map says about a page; nil where there is no pointer map, or none for this page.
  public func pointerMapEntry(for page: UInt32) throws(FormatError) -> PointerMapEntry? {
    guard header?.isAutoVacuum == true, let map = layout.pointerMapPage(for: page), map != page,
      let content = try self.page(map)
    else { return nil }
    return PointerMapEntry(for: page, in: content.bytes.span, mapPage: map)
  }

  private func readPage(_ number: UInt32) throws(FormatError) -> Page? {
    let log = isLogApplied ? writeAheadLog : nil
    let journal = isJournalApplied ? rollbackJournal : nil
    if log?.frames[number] != nil || journal?.pageOffsets[number] != nil {
      return try DatabaseView.readPage(number, size: pageSize, main: main, log: log, journal: journal)
    }
    let offset = Int64(number - 1) * Int64(pageSize)
    let isNext = window.lastPage > 0 && number > window.lastPage && number - window.lastPage <= 8
    window.lastPage = number
    if let bytes = window.page(at: offset, size: pageSize) {
      return Page(number: number, bytes: bytes, presentCount: pageSize, origin: .main(offset: offset))
    }
    if isNext {
      try main.fill(&window.bytes, at: offset, length: ReadAhead.length)
      window.offset = offset
      if let bytes = window.page(at: offset, size: pageSize) {
        return Page(number: number, bytes: bytes, presentCount: pageSize, origin: .main(offset: offset))
      }
    }
    return try DatabaseView.readPage(number, size: pageSize, main: main, log: nil, journal: nil)
  }

  /// The first bytes of a page, for looking at headers without reading whole pages.
  func pagePrefix(_ number: UInt32, length: Int, into buffer: inout [UInt8]) throws(FormatError) {
    buffer.removeAll(keepingCapacity: true)
    guard number > 0, number <= highestPage else { return }
    if isLogApplied, let log = writeAheadLog, let frame = log.frames[number],
      let offset = log.pageOffset(ofFrame: Int(frame))
    {
      try log.source.fill(&buffer, at: offset, length: length)
    } else if isJournalApplied, let journal = rollbackJournal, let offset = journal.pageOffsets[number] {
      try journal.source.fill(&buffer, at: offset, length: length)
    } else {
      try main.fill(&buffer, at: Int64(number - 1) * Int64(pageSize), length: length)
    }
  }
}
