internal import Platform
internal import SQLiteFormat

/// Undoes a hot rollback journal, or one with a destroyed header if its transaction may be unfinished.
enum JournalSurvey {
  /// The page size by header or, if destroyed, by records.
  static func pageSize(_ source: any ByteSource) throws -> Int? {
    if let size = try RollbackJournal(source).pageSize { return size }
    for size in FileLayoutSearch.pageSizes where try HeaderlessJournal(source, pageSize: size) != nil { return size }
    return nil
  }

  /// The images to restore, if any.
  ///
  /// - Parameter isFileReadable: whether any page of the database file is readable; if not, even a possibly finished
  ///   transaction's journal is used, and marked.
  static func read(
    _ source: any ByteSource, _ main: any ByteSource, _ layout: FileLayout, isFileReadable: Bool
  ) throws -> PageOverlay? {
    let journal = try RollbackJournal(
      source, databasePageSize: layout.pageSize, database: layout.header, takesUnsynced: true)
    if journal.state == .hot, journal.pageSize == layout.pageSize { return overlay(journal) }
    guard let remains = try HeaderlessJournal(source, pageSize: layout.pageSize) else { return nil }
    if isFileReadable, try !remains.mayBeUnfinished(main, at: layout.base, header: layout.header) { return nil }
    return overlay(remains, layout, isFileReadable: isFileReadable)
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

  /// Whether the change counter on page 1 contradicts the journal.
  ///
  /// The file keeps the journal's counter until the transaction ends, and then has the next one.
  static func isContradicted(_ reader: PageReader, _ evidence: Evidence) throws -> Bool {
    guard let journal = evidence.journal, let overlay = reader.overlay, overlay.source == .journal,
      let main = DatabaseHeader(try evidence.main.bytes(at: reader.layout.base, length: DatabaseHeader.length))
    else { return false }
    var old: DatabaseHeader?
    if let image = overlay.images[1] {
      old = DatabaseHeader(try journal.bytes(at: image.offset, length: DatabaseHeader.length))
      if old == nil { return false }
    }
    return ForeignJournal.isContradicted(by: main, old: old, pageCount: overlay.pageCount)
  }
}

/// The newest committed page images outside the database file.
struct PageOverlay {
  struct Image {
    var offset: Int64

    var number: Int

    /// Whether SQLite would ignore this newest image because of a broken chain.
    var isDoubtful: Bool
  }

  enum Source: String {
    case log = "wal"
    case journal = "journal"
  }

  var source: Source

  var images: [UInt32: Image] = [:]

  var pageCount: UInt32?

  var pageSize: Int

  /// Images of an unfinished transaction; only in logs.
  var uncommitted: [UInt32: Image] = [:]

  var doubtfulCount = 0

  var uncommittedCount = 0

  /// Older committed images.
  var supersededCount = 0

  /// Whether the last frame is incomplete, or journal records are lost or damaged.
  var isCutOff = false

  /// Whether the database file contradicts it, so that its rows are marked.
  var isContradicted = false

  var remarks: [String] = []
}
