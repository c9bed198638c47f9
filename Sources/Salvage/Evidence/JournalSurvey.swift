internal import Platform
internal import SQLiteFormat

/// Reads a rollback journal: a hot one is undone as far as its records go, and one whose header is destroyed is undone where
/// its transaction may not have ended.
enum JournalSurvey {
  /// The page size that a journal states or, where its header is destroyed, its records show; nil where nothing does.
  static func pageSize(_ source: any ByteSource) throws(SalvageError) -> Int? {
    do throws(FormatError) {
      if let size = try RollbackJournal(source).pageSize { return size }
      for size in FileLayoutSearch.pageSizes where try HeaderlessJournal(source, pageSize: size) != nil { return size }
      return nil
    } catch {
      throw SalvageError(error)
    }
  }

  /// The images to be put back; nil where there is nothing to undo.
  ///
  /// - Parameter isFileReadable: whether any page of the database file can be read; where none can, even a journal whose
  ///   transaction may have ended is the best that there is, and marked.
  static func read(
    _ source: any ByteSource, _ main: any ByteSource, _ layout: FileLayout, isFileReadable: Bool
  ) throws(SalvageError) -> PageOverlay? {
    do throws(FormatError) {
      let journal = try RollbackJournal(
        source, databasePageSize: layout.pageSize, database: layout.header, takesUnsynced: true)
      if journal.state == .hot, journal.pageSize == layout.pageSize { return overlay(journal) }
      guard let remains = try HeaderlessJournal(source, pageSize: layout.pageSize) else { return nil }
      if isFileReadable, try !remains.mayBeUnfinished(main, at: layout.base, header: layout.header) { return nil }
      return overlay(remains, layout, isFileReadable: isFileReadable)
    } catch {
      throw SalvageError(error)
    }
  }

  private static func overlay(_ journal: RollbackJournal) -> PageOverlay {
    var overlay = PageOverlay(source: .journal, pageSize: journal.pageSize ?? 0)
    for (number, page) in journal.pages.enumerated() {
      guard let offset = journal.pageOffset(of: page) else { continue }
      overlay.images[page] = PageOverlay.Image(offset: offset, number: number + 1, isDoubtful: false)
    }
    overlay.pageCount = journal.header?.originalPageCount
    overlay.isCutOff = journal.isCutShort
    overlay.remarks.append(
      journal.isCutShort
        ? "records of the rollback journal are gone or damaged: \(counted(overlay.images.count, "page")) could be put back, the "
          + "last one from byte \(grouped(overlay.images.values.map(\.offset).max() ?? 0)) of \(grouped(journal.source.count)), "
          + "and other pages may have values of a transaction that did not end" : "a hot rollback journal was undone")
    return overlay
  }

  private static func overlay(
    _ remains: HeaderlessJournal, _ layout: FileLayout, isFileReadable: Bool
  ) -> PageOverlay {
    var overlay = PageOverlay(source: .journal, pageSize: layout.pageSize)
    for (number, place) in remains.pageOffsets.sorted(by: { $0.value < $1.value }).enumerated() {
      overlay.images[place.key] = PageOverlay.Image(offset: place.value, number: number + 1, isDoubtful: true)
    }
    if let first = remains.first, first.isPageCountValid { overlay.pageCount = first.pageCount }
    overlay.doubtfulCount = overlay.images.count
    overlay.remarks.append(
      isFileReadable
        ? "the header of a rollback journal is destroyed; its transaction seems not to have ended, so it was undone"
        : "the header of a rollback journal is destroyed; its pages are from before a transaction that may have ended"
    )
    return overlay
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
}

/// Where the newest committed image of a page is, if not in the database file.
struct PageOverlay {
  /// The image of one page.
  struct Image {
    /// The offset of the page's bytes in the log or journal.
    var offset: Int64

    /// The number of the frame or record, from 1.
    var number: Int

    /// Whether SQLite would not have read it: it is there, and the newest, and its place in a chain is broken.
    var isDoubtful: Bool
  }

  enum Source: String {
    case log = "wal"
    case journal = "journal"
  }

  var source: Source

  /// The newest image of each page.
  var images: [UInt32: Image] = [:]

  /// The number of pages that the database has with them; nil where that is not told.
  var pageCount: UInt32?

  /// The page size that the log or journal states or shows.
  var pageSize: Int

  /// The newest image of each page in a transaction that never ended; only in logs.
  var uncommitted: [UInt32: Image] = [:]

  /// Images that SQLite would not have read.
  var doubtfulCount = 0

  /// Images of transactions that never ended.
  var uncommittedCount = 0

  /// Images of other pages' older versions, committed ones.
  var supersededCount = 0

  /// Whether the log or journal had more: a frame begins behind the last whole one, or records are gone or damaged.
  var isCutOff = false

  /// Whether the database file contradicts it: it may be of another time or another store, and all of it is marked.
  var isContradicted = false

  /// What is to be said of it, in words for the report.
  var remarks: [String] = []
}
