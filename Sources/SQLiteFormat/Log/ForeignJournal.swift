public import Platform

/// Evidence that a rollback journal is not of the file's interrupted transaction.
///
/// A journal does not name its database. But during its transaction the file has the change counter of the journal's
/// page 1, afterwards the next one; and the old pages make the trees whole.
public enum ForeignJournal: Sendable, Hashable {
  /// Change counters or page counts differ.
  case counters

  /// Links between file and journal pages contradict keys.
  case trees

  /// Finds evidence of another database or an earlier transaction.
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
      // Partly restored pages mix two states.
      self = .trees
    } else {
      return nil
    }
  }

  /// Whether the file's page 1 contradicts a journal.
  ///
  /// - Parameters:
  ///   - old: the journal's page 1, if any.
  ///   - pageCount: the journal's page count.
  package static func isContradicted(by main: DatabaseHeader, old: DatabaseHeader?, pageCount: UInt32?) -> Bool {
    guard main.hasMagic, main.hasUsualFractions, main.isPageCountValid else { return false }
    guard let old else {
      // Without page 1 in the journal the page count is unchanged.
      guard let pageCount, pageCount > 0 else { return false }
      return main.pageCount != pageCount
    }
    guard old.hasMagic, old.isPageCountValid else { return false }
    return main.changeCounter != old.changeCounter && main.changeCounter != old.changeCounter &+ 1
  }

  /// The evidence in a sentence.
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
  /// Opens a database without a foreign log or journal.
  ///
  /// - Throws: errors of opening.
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
