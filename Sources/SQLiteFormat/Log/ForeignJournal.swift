public import Platform

/// What shows that the rollback journal beside a database file is not of the transaction that the file was in the middle of.
///
/// A journal has no name of its database in it. But until its transaction ends the file has the counter of transactions that
/// the journal has on the old first page, and from then on the next one; and with the old pages put back the trees of the
/// database are whole.
public enum ForeignJournal: Sendable, Hashable {
  /// The file has another number of transactions or of pages behind it than the journal.
  case counters

  /// Pages of the file and old pages in the journal lead to each other, and have other keys than that says.
  case trees

  /// What shows that a database's journal is another's, or of an earlier transaction; nil where nothing does.
  ///
  /// - Parameter database: the file with its journal.
  public init?(of database: Database) throws(FormatError) {
    guard database.isJournalApplied, let journal = database.rollbackJournal else { return nil }
    guard let main = DatabaseHeader(try database.main.read(at: 0, length: DatabaseHeader.length)) else { return nil }
    var old: DatabaseHeader?
    if let offset = journal.pageOffset(of: 1) {
      old = DatabaseHeader(try journal.source.read(at: offset, length: DatabaseHeader.length))
      if old == nil { return nil }
    }
    if Self.isContradicted(by: main, old: old, pageCount: journal.header?.originalPageCount) {
      self = .counters
    } else if !journal.isCutShort, try CrossingLinks(database, database.schema()).areContradicted {
      // With a part of the old pages alone put back, trees are of two times.
      self = .trees
    } else {
      return nil
    }
  }

  /// Whether the first page of a file contradicts a journal.
  ///
  /// - Parameters:
  ///   - old: the image of the first page in the journal; nil where it has none.
  ///   - pageCount: the number of pages that the journal says that the file had.
  package static func isContradicted(by main: DatabaseHeader, old: DatabaseHeader?, pageCount: UInt32?) -> Bool {
    guard main.hasMagic, main.hasUsualFractions, main.isPageCountValid else { return false }
    guard let old else {
      // Without an image of the first page the number of pages on it is that of before.
      guard let pageCount, pageCount > 0 else { return false }
      return main.pageCount != pageCount
    }
    guard old.hasMagic, old.isPageCountValid else { return false }
    return main.changeCounter != old.changeCounter && main.changeCounter != old.changeCounter &+ 1
  }

  /// What it shows, in a sentence.
  public var words: String {
    switch self {
    case .counters:
      "The rollback journal beside the store belongs to another database or to an earlier transaction: the store does not have the number of transactions or pages that it had."
    case .trees:
      "The rollback journal beside the store belongs to another database or to an earlier transaction: the pages in it and those of the store do not fit each other."
    }
  }
}

extension Database {
  /// Opens a database without a log that is certain to be another's, and without a journal that is another's or of an earlier
  /// transaction.
  ///
  /// - Throws: what opening it throws.
  public static func withOwnParts(
    main: any ByteSource, writeAheadLog: (any ByteSource)?, rollbackJournal: (any ByteSource)?
  ) throws(FormatError) -> Database {
    let whole = try Database(main: main, writeAheadLog: writeAheadLog, rollbackJournal: rollbackJournal)
    let isLogOwn = try ForeignLog(of: whole)?.isCertain != true
    let isJournalOwn = try ForeignJournal(of: whole) == nil
    if isLogOwn && isJournalOwn { return whole }
    return try Database(
      main: main, writeAheadLog: isLogOwn ? writeAheadLog : nil,
      rollbackJournal: isJournalOwn ? rollbackJournal : nil)
  }
}
