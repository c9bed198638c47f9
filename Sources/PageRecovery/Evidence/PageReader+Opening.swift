internal import SQLiteFormat
internal import StoreFiles

extension PageReader {
  /// Finds the layout of a store's file, and what log or journal add to it.
  ///
  /// - Parameter offset: where the database begins in the file; nil for the one that is to be taken.
  /// - Throws: ``SalvageError``: `nothing-to-salvage` where no page is found.
  static func open(
    _ evidence: Evidence, ignoringLog: Bool, at offset: Int64? = nil
  ) throws(SalvageError) -> PageReader {
    var layout = try layout(evidence, at: offset)
    let overlay = try overlay(evidence, layout, ignoringLog: ignoringLog)
    if let overlay, let image = overlay.images[1],
      let source = overlay.source == .log ? evidence.log : evidence.journal,
      let header = DatabaseHeader(try source.piece(at: image.offset, length: DatabaseHeader.length)),
      header.hasMagic, header.pageSize == layout.pageSize
    {
      layout.header = header
      layout.encoding = header.encoding ?? layout.encoding
      layout.usableSize = header.usableSize ?? layout.usableSize
    }
    return PageReader(evidence: evidence, layout: layout, overlay: overlay)
  }

  private static func layout(_ evidence: Evidence, at offset: Int64?) throws(SalvageError) -> FileLayout {
    var search = FileLayoutSearch(main: evidence.main)
    search.offset = offset
    var logHeader: WriteAheadLog.Header?
    if let log = evidence.log {
      logHeader = WriteAheadLog.Header(try log.piece(at: 0, length: WriteAheadLog.Header.length))
      if let logHeader, logHeader.isChecksumRight, let size = logHeader.pageSize { search.sizesElsewhere.append(size) }
    }
    if let layout = try search.find() { return layout }
    if let offset {
      throw SalvageError(
        .nothingFound, path: evidence.files.main, detail: "no database begins at byte \(offset) of the file",
        hint: "The report of a salvage without that byte lists where databases begin.")
    }
    guard let size = logHeader?.pageSize else { throw .nothing(in: evidence) }
    return FileLayout(
      pageSize: size, usableSize: size, base: 0, header: nil, encoding: .utf8,
      pageCount: UInt32(clamping: (evidence.main.count + Int64(size) - 1) / Int64(size)))
  }

  private static func overlay(
    _ evidence: Evidence, _ layout: FileLayout, ignoringLog: Bool
  ) throws(SalvageError) -> PageOverlay? {
    if let journal = evidence.journal,
      let found = try JournalSurvey.read(journal, pageSize: layout.pageSize, mainHeader: layout.header)
    {
      return found
    }
    guard !ignoringLog, let log = evidence.log, let found = try LogSurvey.read(log, pageSize: layout.pageSize),
      found.pageSize == layout.pageSize
    else { return nil }
    return found
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
