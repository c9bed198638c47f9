/// Takes the rows from the pages of each table and writes them, phase by phase.
struct RowRecovery {
  private let context: RowContext
  private var deleted: DeletedRows { DeletedRows(context: context) }
  private var uncommitted: UncommittedRows { UncommittedRows(context: context) }

  /// - Parameters:
  ///   - crawl: the pages and whose they are.
  ///   - tables: where the rows go; it has the tables of live ones.
  init(_ crawl: Crawl, into tables: RowTables) { context = RowContext(crawl, tables) }

  /// Runs all phases but the last, that of deleted rows.
  ///
  /// - Parameters:
  ///   - findsDeleted: whether that one comes.
  ///   - progress: called with the number of pages done since the last call, and between phases with 0, so that the caller
  ///     can end it.
  func run(
    findsDeleted: Bool, progress: (Int) throws(SalvageError) -> Void
  ) throws(SalvageError) -> RowOutcome {
    if findsDeleted { context.tables.deletedDigests = try deleted.digests() }
    let (wounds, goBehindEnd) = try live(progress: progress)
    try progress(0)
    try IndexedRows(context: context).run()
    try progress(0)
    let remarks = try uncommitted.settleBehindEnd(goBehindEnd: goBehindEnd)
    let unplaced = try UnplacedRows(context: context).write()
    return RowOutcome(
      crawl: context.crawl, tables: context.tables, wounds: wounds, unplacedRows: unplaced.rows,
      unplacedEntries: unplaced.entries, remarks: remarks)
  }

  /// Runs the last phase: writes deleted rows and those that were never committed.
  func addDeleted() throws(SalvageError) {
    try deleted.write()
    try uncommitted.keepApart()
  }

  /// Runs only the phases that decide whose the overflow pages are.
  func claims(progress: (Int) throws(SalvageError) -> Void) throws(SalvageError) -> RowOutcome {
    let (wounds, _) = try live(progress: progress)
    return RowOutcome(
      crawl: context.crawl, tables: context.tables, wounds: wounds, unplacedRows: 0, unplacedEntries: 0, remarks: [])
  }

  /// The first two phases: live rows, those with long values last.
  private func live(
    progress: (Int) throws(SalvageError) -> Void
  ) throws(SalvageError) -> (wounds: PageWounds, goBehindEnd: Bool) {
    context.crawl.contradictions = try ContradictionSearch.run(context, progress: progress)
    var reading = PageReading(context)
    try reading.run(progress: progress)
    var settlement = ChainSettlement(context, reading.longRows)
    try settlement.run()
    try context.tables.settleTexts(isSound: context.isSound && reading.wounds.pages.isEmpty)
    return (reading.wounds, settlement.longRows.goBehindEnd)
  }
}

/// What came of recovering rows.
struct RowOutcome {
  /// The pages and whose they are, the overflow pages of rows among them.
  let crawl: Crawl

  /// What was written, and the account of each table.
  let tables: RowTables

  /// What was wrong with pages that rows were read from.
  let wounds: PageWounds

  /// Rows that fit no table.
  let unplacedRows: Int64

  /// Entries of indexes that no root leads to, or rows of tables without rowids that nothing tells of.
  let unplacedEntries: Int64

  /// What is to be said of the files, in words for the report; each means that something may be missing.
  let remarks: [String]

  var reader: PageReader { crawl.reader }

  /// The account of each table.
  var tallies: [TableTally] { tables.tallies }

  /// The tables of live rows.
  var live: [OutputTable?] { tables.live }

  /// The database that the rows are in.
  var database: OutputDatabase { tables.database }
}
