internal import SQLiteFormat

/// The tables that rows are written into, the notes on where they came from, and the account of each table.
final class RowTables {
  /// The tables and indexes of the store; the tables here have the same numbers.
  let trees: [Tree]

  /// The pages that the rows are from.
  let reader: PageReader

  /// The database that the tables are in.
  let database: OutputDatabase

  /// Where each row came from.
  let notes: EvidenceNotes

  /// The account of each table.
  var tallies: [TableTally]

  /// The rows that the store held.
  private(set) var live: [OutputTable?]

  /// Other versions of live rows, and rows that do not fit among them.
  private(set) var others: [OutputTable?]

  /// Deleted rows.
  private(set) var deleted: [OutputTable?]

  /// The live rows that have a note of their own on why they are doubtful, by table; nil where it is not needed.
  private(set) var doubtedRows: [Int: Set<Int64>]?

  /// Where the cells are whose long values were not put together, or have pages of another row; nil where it is not needed.
  private(set) var apartChains: Set<CellPlace>?

  /// The digests of records that look deleted; live rows that are the same strike them out.
  var deletedDigests: DeletedDigests?

  /// What is to be remembered for those who come after the rows.
  struct Memory: OptionSet {
    let rawValue: Int

    /// Which live rows have a note of their own: a recovery kit may find more that is wrong with them.
    static let doubtedRows = Memory(rawValue: 1)

    /// Where the cells are whose long values were kept apart.
    static let apartChains = Memory(rawValue: 2)
  }

  /// Makes the table of notes; the others are made when they are needed.
  init(_ crawl: Crawl, in database: OutputDatabase, remembering memory: Memory = []) throws(SalvageError) {
    trees = crawl.trees
    reader = crawl.reader
    self.database = database
    notes = try EvidenceNotes(database)
    tallies = trees.map { TableTally(name: $0.name) }
    live = [OutputTable?](repeating: nil, count: trees.count)
    others = live
    deleted = live
    doubtedRows = memory.contains(.doubtedRows) ? [:] : nil
    apartChains = memory.contains(.apartChains) ? [] : nil
  }

  /// Makes the tables that live rows go into.
  ///
  /// - Parameter store: the new store that takes the rows it can; nil where all go into the database.
  func makeTables(in store: (any NewTables)? = nil) throws(SalvageError) {
    for (index, tree) in trees.enumerated() {
      guard !tree.isInternal, !tree.isDropped, tree.kind != .index, let definition = tree.definition else { continue }
      live[index] = try OutputTable(definition, role: .live, in: database, direct: store?.table(for: definition))
    }
  }

  /// Which file or log the bytes of a page are from.
  func source(of page: UInt32) -> String {
    guard let overlay = reader.overlay, overlay.images[page] != nil else { return "main" }
    return overlay.source.rawValue
  }

  // MARK: Live rows

  /// Writes a row whose bytes are all there into its table, or beside it where the table has another version of it; false
  /// where it did not become a live one.
  ///
  /// Where the row has a reason to be doubtful, the phase that found it counts and notes that.
  ///
  /// - Parameter remark: what is to be noted of it where nothing else is; nil for nothing.
  @inline(__always)
  func write(_ row: FoundRow, _ record: Span<UInt8>, remark: String? = nil) throws(SalvageError) -> Bool {
    guard let table = live[row.tree] else { return false }
    if try table.insert(record, from: 0, length: record.count, rowid: row.cell.rowid) {
      deletedDigests?.strike(record, from: 0, length: record.count)
      let isTextValid = RecordText.isValid(record, at: 0, before: record.count, encoding: reader.layout.encoding)
      try noteLive(row, isTextValid: isTextValid, remark: remark)
      return true
    }
    if try !table.holds(record, from: 0, length: record.count, rowid: row.cell.rowid) {
      try keepApart(
        row, record, source: source(of: row.page), reason: "another version of the row is the live one")
    }
    return false
  }

  private func noteLive(_ row: FoundRow, isTextValid: Bool, remark: String?) throws(SalvageError) {
    tallies[row.tree].recovered += 1
    let cell = row.cell
    if let remark, isTextValid, cell.index >= 0, !cell.isUnusual {
      try notes.noteRow(
        trees[row.tree].name,
        EvidenceNotes.RowNote(
          row: cell.rowid, key: cell.rowid,
          origin: EvidenceNotes.Origin(page: row.page, cell: cell.index, source: source(of: row.page)),
          certainty: .probable, reason: remark))
      return
    }
    guard row.doubtReason == nil, cell.index < 0 || !isTextValid || cell.isUnusual else { return }
    try noteDoubt(cell.index < 0 ? .foundByContent : isTextValid ? .unusualValue : .invalidText, of: row)
  }

  // MARK: Doubts

  /// Counts and notes that a live row is doubtful.
  func noteDoubt(_ reason: DoubtReason, of row: FoundRow) throws(SalvageError) {
    let cell = row.cell.index < 0 ? nil : row.cell.index
    try noteDoubt(
      reason, row: row.cell.rowid, of: row.tree,
      EvidenceNotes.Origin(page: row.page, cell: cell, source: source(of: row.page)))
  }

  /// Counts and notes that a live row is doubtful.
  ///
  /// - Parameter words: what to say of this row; what the reason says if nil.
  func noteDoubt(
    _ reason: DoubtReason, row: Int64, of tree: Int, _ origin: EvidenceNotes.Origin, words: String? = nil
  ) throws(SalvageError) {
    tallies[tree].doubts[reason, default: 0] += 1
    doubtedRows?[tree, default: []].insert(row)
    try notes.noteRow(
      trees[tree].name,
      EvidenceNotes.RowNote(
        row: row, key: row, origin: origin, certainty: .doubtful, doubt: reason,
        reason: words ?? reason.words(ofTable: trees[tree])))
  }

  // MARK: Rows that are not live

  /// Writes a row into the table of those that are not live.
  func keepApart(
    _ row: FoundRow, _ record: Span<UInt8>, source: String, reason: String
  ) throws(SalvageError) {
    guard let definition = trees[row.tree].definition else { return }
    if row.cell.overflow != 0 { apartChains?.insert(CellPlace(page: row.page, payload: row.cell.payload)) }
    if others[row.tree] == nil {
      others[row.tree] = try OutputTable(definition, role: .other, in: database)
    }
    guard let table = others[row.tree],
      try table.insert(record, from: 0, length: record.count, rowid: row.cell.rowid)
    else { return }
    tallies[row.tree].keptApart += 1
    let cell = row.cell.index < 0 ? nil : row.cell.index
    try notes.noteRow(
      table.name,
      EvidenceNotes.RowNote(
        row: table.count, key: trees[row.tree].hasRowids ? row.cell.rowid : nil,
        origin: EvidenceNotes.Origin(page: row.page, cell: cell, source: source), certainty: .doubtful, reason: reason))
  }

  /// Writes a row into the table of deleted ones.
  ///
  /// - Parameter rowid: the rowid that it had; nil where that is lost.
  func writeDeleted(
    _ record: Span<UInt8>, rowid: Int64?, of tree: Int, _ origin: EvidenceNotes.Origin, reason: String
  ) throws(SalvageError) {
    guard let definition = trees[tree].definition else { return }
    if deleted[tree] == nil { deleted[tree] = try OutputTable(definition, role: .deleted, in: database) }
    guard let table = deleted[tree], try table.insert(record, from: 0, length: record.count, rowid: 0) else { return }
    tallies[tree].deleted += 1
    try notes.noteRow(
      table.name,
      EvidenceNotes.RowNote(
        row: table.count, key: rowid, origin: origin, certainty: .probable, reason: reason))
  }
}

extension DoubtReason {
  /// The reason in words, for a row or page of a table.
  func words(ofTable tree: Tree) -> String {
    switch self {
    case .foundByContent: "what led to it is destroyed; it was found by its content"
    case .columnOrder: tree.doubt?.words ?? "the order of the table's columns is lost"
    case .logFrame: "from a frame of the write-ahead log that SQLite would not have read"
    case .journalPage: "from a rollback journal whose header is destroyed"
    case .contradictedLog: "from a log or journal that may be of another time or another store"
    case .unfinishedTransaction:
      "a transaction that wrote to the table did not end, and its journal is gone; the row may have values of it"
    case .invalidText: "its text is not valid in the store's encoding"
    case .unusualValue: "a value of it is of another kind than its column"
    case .freeSpace: "only the free space of a page still has it"
    case .otherThanKit: "its bytes are not as the recovery kit noted them"
    case .fromBackup: "taken from a backup"
    case .notNoted: "the reason was not noted"
    }
  }
}
