internal import SQLiteFormat
internal import StoreFiles

/// Reads a rollback journal: a hot one is undone, and one whose header is destroyed is undone where the evidence says that
/// its transaction never ended.
///
/// SQLite zeroes the header of a journal that it keeps when a transaction ends, so a destroyed header alone tells nothing.
/// But a transaction ends by changing the counter on page 1, whose old image is in the journal by then: where the journal
/// lacks page 1, or has it with the very counter that the file has, the transaction did not end.
struct JournalSurvey {
  private let source: any ByteSource
  private let pageSize: Int

  /// The page size that a journal states or, where its header is destroyed, its records show; nil where nothing does.
  static func pageSize(_ source: any ByteSource) throws(SalvageError) -> Int? {
    do throws(FormatError) {
      if let size = try RollbackJournal(source).pageSize { return size }
    } catch {
      throw SalvageError(error)
    }
    for size in FileLayoutSearch.pageSizes {
      let survey = JournalSurvey(source: source, pageSize: size)
      for sector in sectors where try survey.records(from: Int64(sector), sector: Int64(sector)) != nil { return size }
    }
    return nil
  }

  /// The sizes of sectors that journals are written in, the likeliest first.
  private static let sectors = [512, 4096, 1024, 2048, 8192, 16384, 32768, 65536]

  /// The images to be put back; nil where there is nothing to undo.
  ///
  /// - Parameter isFileReadable: whether any page of the database file can be read; where none can, even a journal whose
  ///   transaction may have ended is the best that there is, and marked.
  static func read(
    _ source: any ByteSource, pageSize: Int, mainHeader: DatabaseHeader?, isFileReadable: Bool
  ) throws(SalvageError) -> PageOverlay? {
    do throws(FormatError) {
      let journal = try RollbackJournal(source, databasePageSize: pageSize)
      if journal.state == .hot, journal.pageSize == pageSize {
        var overlay = PageOverlay(source: .journal, pageSize: pageSize)
        for (number, page) in journal.pages.enumerated() {
          guard let offset = journal.pageOffset(of: page) else { continue }
          overlay.images[page] = PageOverlay.Image(offset: offset, number: number + 1, isDoubtful: false)
        }
        overlay.pageCount = journal.header?.originalPageCount
        overlay.remarks.append("a hot rollback journal was undone")
        return overlay
      }
    } catch {
      throw SalvageError(error)
    }
    return try JournalSurvey(source: source, pageSize: pageSize)
      .headerless(mainHeader: mainHeader, isFileReadable: isFileReadable)
  }

  /// Whether a journal that was read is not of the file's present state, as the counter of transactions on its first page
  /// shows: the file has that very counter until the transaction ends, and the next one from then on.
  static func isContradicted(_ reader: PageReader, _ evidence: Evidence) throws(SalvageError) -> Bool {
    guard let journal = evidence.journal, let overlay = reader.overlay, overlay.source == .journal,
      let main = DatabaseHeader(try evidence.main.piece(at: reader.layout.base, length: DatabaseHeader.length))
    else { return false }
    var old: DatabaseHeader?
    if let image = overlay.images[1] {
      old = DatabaseHeader(try journal.piece(at: image.offset, length: DatabaseHeader.length))
      if old == nil { return false }
    }
    return ForeignJournal.isContradicted(by: main, old: old, pageCount: overlay.pageCount)
  }

  private func headerless(
    mainHeader: DatabaseHeader?, isFileReadable: Bool
  ) throws(SalvageError) -> PageOverlay? {
    for sector in Self.sectors {
      guard var overlay = try records(from: Int64(sector), sector: Int64(sector)) else { continue }
      if let first = overlay.images[1] {
        let image = try source.piece(at: first.offset, length: DatabaseHeader.length)
        guard let old = DatabaseHeader(image),
          !isFileReadable || mainHeader.map({ $0.changeCounter == old.changeCounter }) == true
        else { return nil }
        overlay.pageCount = old.isPageCountValid ? old.pageCount : nil
      }
      overlay.doubtfulCount = overlay.images.count
      overlay.remarks.append(
        isFileReadable
          ? "the header of a rollback journal is destroyed; its transaction had not ended, so it was undone"
          : "the header of a rollback journal is destroyed; its pages are from before a transaction that may have ended"
      )
      return overlay
    }
    return nil
  }

  /// The records from an offset on, as long as their checksums share one nonce; then those of later segments.
  private func records(from start: Int64, sector: Int64) throws(SalvageError) -> PageOverlay? {
    var overlay = PageOverlay(source: .journal, pageSize: pageSize)
    let length = pageSize + 8
    var buffer = [UInt8](repeating: 0, count: length)
    var offset = start
    var nonce: UInt32?
    var number = 0
    while try source.piece(at: offset, length: length, into: &buffer) == length {
      let record = buffer.span
      let page = record.uint32(at: 0) ?? 0
      let found = (record.uint32(at: 4 + pageSize) ?? 0) &- Self.sum(record, pageSize: pageSize)
      let isFit = page > 0 && page < 1 << 30 && (nonce == nil || found == nonce)
      if isFit {
        if number == 0, nonce == nil {
          // A first record proves nothing alone: the next must agree with it.
          let next = try source.piece(at: offset + Int64(length), length: length)
          if next.count == length {
            let other = (next.span.uint32(at: 4 + pageSize) ?? 0) &- Self.sum(next.span, pageSize: pageSize)
            let isSegment = try isHeader(at: aligned(offset + Int64(length), sector))
            guard other == found || isSegment else { return nil }
          }
        }
        nonce = found
        number += 1
        // The first image of a page is the one from before the transaction.
        if overlay.images[page] == nil {
          overlay.images[page] = PageOverlay.Image(offset: offset + 4, number: number, isDoubtful: true)
        }
        offset += Int64(length)
        continue
      }
      offset = aligned(offset, sector)
      guard try isHeader(at: offset) else { break }
      nonce = nil
      let header = try source.piece(at: offset, length: 28)
      nonce = header.span.uint32(at: 12)
      offset += sector
    }
    return overlay.images.isEmpty ? nil : overlay
  }

  private func aligned(_ offset: Int64, _ sector: Int64) -> Int64 { (offset + sector - 1) / sector * sector }

  private func isHeader(at offset: Int64) throws(SalvageError) -> Bool {
    try source.piece(at: offset, length: 8).elementsEqual(RollbackJournal.magic)
  }

  private static func sum(_ record: Span<UInt8>, pageSize: Int) -> UInt32 {
    var sum: UInt32 = 0
    var index = pageSize - 200
    while index > 0 {
      sum &+= UInt32(record[4 + index])
      index -= 200
    }
    return sum
  }
}
