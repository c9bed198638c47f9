internal import SQLiteFormat
internal import StoreFiles

extension PageReader {
  /// Finds the layout of a store's file, and what log or journal add to it.
  ///
  /// - Throws: ``SalvageError``: `nothing-to-salvage` where no page is found.
  static func open(_ evidence: Evidence, _ use: EvidenceUse = EvidenceUse()) throws(SalvageError) -> PageReader {
    let reader = try reader(evidence, use)
    try reader.settlePointerMaps()
    return reader
  }

  private static func reader(_ evidence: Evidence, _ use: EvidenceUse) throws(SalvageError) -> PageReader {
    var (layout, isFileReadable) = try layout(evidence, at: use.offset)
    guard var overlay = try overlay(evidence, layout, use, isFileReadable: isFileReadable) else {
      guard isFileReadable || evidence.main.count > 0 else { throw .nothing(in: evidence) }
      return PageReader(evidence: evidence, layout: layout, overlay: nil)
    }
    guard let source = overlay.source == .log ? evidence.log : evidence.journal else {
      return PageReader(evidence: evidence, layout: layout, overlay: nil)
    }
    if let image = overlay.images[1],
      let header = DatabaseHeader(try source.piece(at: image.offset, length: DatabaseHeader.length)),
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

  /// The layout by the file, or where no page of it can be read, by its log or journal.
  private static func layout(
    _ evidence: Evidence, at offset: Int64?
  ) throws(SalvageError) -> (layout: FileLayout, isFileReadable: Bool) {
    var search = FileLayoutSearch(main: evidence.main)
    search.offset = offset
    var logHeader: WriteAheadLog.Header?
    if let log = evidence.log {
      logHeader = WriteAheadLog.Header(try log.piece(at: 0, length: WriteAheadLog.Header.length))
      if let logHeader, logHeader.isChecksumRight, let size = logHeader.pageSize { search.sizesElsewhere.append(size) }
    }
    if let layout = try search.find() { return (layout, true) }
    if let offset {
      throw SalvageError(
        .nothingFound, path: evidence.files.main, detail: "no database begins at byte \(offset) of the file",
        hint: "The report of a salvage without that byte lists where databases begin.")
    }
    let journalSize = try evidence.journal.map { journal throws(SalvageError) in try JournalSurvey.pageSize(journal) }
    guard let size = logHeader?.pageSize ?? journalSize ?? nil else { throw .nothing(in: evidence) }
    let layout = FileLayout(
      pageSize: size, usableSize: size, base: 0, header: nil, encoding: .utf8,
      pageCount: UInt32(clamping: (evidence.main.count + Int64(size) - 1) / Int64(size)))
    return (layout, false)
  }

  private static func overlay(
    _ evidence: Evidence, _ layout: FileLayout, _ use: EvidenceUse, isFileReadable: Bool
  ) throws(SalvageError) -> PageOverlay? {
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

  /// Takes the text encoding and the reserved bytes from the images of a log or journal, where nothing else tells.
  private static func learn(
    _ layout: inout FileLayout, from overlay: PageOverlay, in source: any ByteSource
  ) throws(SalvageError) {
    var vote = FileLayoutSearch.Vote(size: overlay.pageSize, base: 0)
    for (_, image) in overlay.images.sorted(by: { $0.key < $1.key }).prefix(imagesToLearnFrom) {
      let bytes = try source.piece(at: image.offset, length: overlay.pageSize)
      _ = TreePageLook.add(bytes.span, isFirst: false, to: &vote)
    }
    guard vote.pages > 0 else { return }
    layout.encoding = vote.schemaEncoding ?? vote.encoding
    layout.usableSize = layout.pageSize - vote.mostReserved
  }

  /// How many images are looked at for encoding and reserved bytes.
  private static let imagesToLearnFrom = 256

  /// Leaves of an older log's images only those of pages that the file lacks, and marks them.
  private static func leaveWhatFileLacks(
    in overlay: inout PageOverlay, _ log: any ByteSource, _ main: any ByteSource, _ layout: FileLayout
  ) throws(SalvageError) {
    let size = layout.pageSize
    overlay.isContradicted = true
    overlay.pageCount = nil
    overlay.uncommitted = [:]
    overlay.uncommittedCount = 0
    for (page, image) in overlay.images {
      overlay.images[page]?.isDoubtful = true
      let own = try main.piece(at: layout.base + Int64(page - 1) * Int64(size), length: size)
      guard own.count == size, !PageSurvey.isZero(own.span) else { continue }
      let older = try log.piece(at: image.offset, length: size)
      let start = page == 1 ? DatabaseHeader.length : 0
      // What is no page of a tree may be part of a long value, unless the log says that a tree's page was there.
      if isTreePage(own.span, start, layout) || !isTreePage(older.span, start, layout) { overlay.images[page] = nil }
    }
  }

  private static func isTreePage(_ bytes: Span<UInt8>, _ start: Int, _ layout: FileLayout) -> Bool {
    guard start < bytes.count, let kind = PageKind(rawValue: bytes[start]) else { return false }
    return PageSurvey.isPossible(bytes, kind, start, layout.usableSize)
  }
}

extension SalvageError {
  /// The error of evidence in which there is nothing of a database.
  static func nothing(in evidence: Evidence) -> SalvageError {
    let isEmpty = evidence.main.count == 0 && evidence.log == nil && evidence.journal == nil
    return SalvageError(
      .nothingFound, path: evidence.files.main,
      detail: isEmpty ? "the file is empty, and nothing was in it" : "no page of a SQLite database is in it")
  }
}
