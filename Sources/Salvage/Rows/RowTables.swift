internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
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

  private(set) var deleted: [OutputTable?]

  /// The live rows that have a note of their own on why they are doubtful, by table; nil where it is not needed.
  private(set) var doubtedRows: [Int: Set<Int64>]?

  /// Where the cells are whose long values were not put together, or have pages of another row; nil where it is not needed.
  private(set) var apartChains: Set<CellPlace>?

  /// What is to be said of tables that could not be made as they are declared.
  private(set) var remarks: [String] = []

  /// What is to be said of columns that no table has room for.
  private(set) var losses: [String] = []

  /// The names that tables of live rows got where their own could not be used.
  private(set) var otherNames: [String: String] = [:]

  /// The digests of records that look deleted; live rows that are the same strike them out.
  var deletedDigests: DeletedDigests?

  /// The tables of Core Data's own books with a value that can be checked: the metadata and the cached model.
  private let books: Set<Int>

  /// What is left of rows whose long values are lost or doubtful, as records of their own.
  private var parts: [(row: FoundRow, record: [UInt8])] = []

  private var partLength = 0

  /// How many bytes of them are kept until all other versions of rows are written.
  private static let partLimit = 32 << 20

  /// Live rows with text that is not valid, by table, of which it is not decided yet whether they are doubtful.
  private var invalidTexts: [Int: [FoundRow]] = [:]

  private var invalidTextCount = 0

  /// How many such rows are kept of all tables.
  private static let invalidTextLimit = 1 << 17

  /// How many rows of a table have such text at least, and the share of all of them, where its app writes it.
  private static let writtenTexts = (count: 8, share: 10 as Int64)

  /// What is to be remembered for those who come after the rows.
  struct Memory: OptionSet {
    let rawValue: Int

    /// Which live rows have a note of their own: a recovery kit may find more that is wrong with them.
    static let doubtedRows = Memory(rawValue: 1)

    /// Where the cells are whose long values were set aside.
    static let apartChains = Memory(rawValue: 2)
  }

  /// Makes the table of notes; the others are made when they are needed.
  init(_ crawl: Crawl, in database: OutputDatabase, remembering memory: Memory = []) throws(SalvageError) {
    trees = crawl.trees
    books = Set(
      crawl.trees.indices.filter { ["Z_METADATA", "Z_MODELCACHE"].contains(crawl.trees[$0].name.uppercased()) })
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
      if tree.isSequence, var definition = tree.definition {
        definition.name = Self.sequenceName
        var refusal: String?
        live[index] = try OutputTable.make(
          definition, role: .live, number: index + 1, in: database, isOwn: true, refusal: &refusal)
        continue
      }
      guard !tree.isInternal, !tree.isDropped, tree.kind != .index, let definition = tree.definition else { continue }
      live[index] = try make(index, definition, .live, direct: store?.table(for: definition))
    }
  }

  /// What the table of the highest keys that were given is called among the rows as found: SQLite keeps its own name for itself.
  private static let sequenceName = "lazaret_sequence"

  /// The highest keys that were given, by the names of their tables.
  func sequences() throws(SalvageError) -> [String: Int64] {
    var sequences: [String: Int64] = [:]
    guard trees.contains(where: \.isSequence) else { return sequences }
    let rows = try database.prepare(
      "SELECT name, max(seq) FROM \(Self.sequenceName) WHERE typeof(name) = 'text' AND typeof(seq) = 'integer' GROUP BY name"
    )
    while try rows.step() { if let name = rows.text(0) { sequences[name] = rows.integer(1) } }
    return sequences
  }

  /// Makes a table with as much of its declaration as SQLite accepts, and notes what it refused.
  private func make(
    _ tree: Int, _ definition: TableDefinition, _ role: OutputRole, direct: (any NewTable)? = nil
  ) throws(SalvageError) -> OutputTable {
    var refusal: String?
    let table = try OutputTable.make(
      definition, role: role, number: tree + 1, in: database, direct: direct, refusal: &refusal)
    let name = printable(definition.name)
    if let refusal {
      let place = table.name == role.name(definition.name) ? "" : ", and is called \(table.name)"
      remarks.append(
        "the table \(name) was not made as it is declared (\(refusal)); its rows are in one with plain columns\(place)")
      if role == .live, table.name != definition.name { otherNames[definition.name] = table.name }
    }
    if table.columnsLeftOut > 0, role == .live {
      losses.append(
        "the last \(table.columnsLeftOut) columns of \(name) were left out: SQLite has room for no more in a table")
    }
    return table
  }

  /// The name by which the notes have a table.
  func name(of tree: Int) -> String { live[tree]?.name ?? trees[tree].name }

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
      if books.contains(row.tree) { try checkBook(row, record) }
      return true
    }
    if try !table.holds(record, from: 0, length: record.count, rowid: row.cell.rowid) {
      try keepApart(
        row, record, source: source(of: row.page), reason: "another version of the row is the live one")
    }
    return false
  }

  /// Notes that a value of Core Data's own books is damaged where it cannot be read as what it is.
  private func checkBook(_ row: FoundRow, _ record: Span<UInt8>) throws(SalvageError) {
    guard row.doubtReason == nil,
      let values = Record(payload: Array(copying: record)[...], encoding: reader.layout.encoding)?.values,
      case .blob(let bytes)? = values.last
    else { return }
    let isIntact =
      values.count == 1
      ? ManagedObjectModel.isArchive(modelCache: bytes) : (try? StoreMetadata(uuid: "", propertyList: bytes)) != nil
    guard !isIntact else { return }
    try noteDoubt(
      .longValue, row: row.cell.rowid, of: row.tree,
      EvidenceNotes.Origin(page: row.page, cell: row.cell.index, source: source(of: row.page)),
      words: "its value cannot be read as what Core Data keeps there")
  }

  private func noteLive(_ row: FoundRow, isTextValid: Bool, remark: String?) throws(SalvageError) {
    tallies[row.tree].recovered += 1
    let cell = row.cell
    if let remark, isTextValid, cell.index >= 0, !cell.isUnusual {
      try notes.noteRow(
        name(of: row.tree),
        EvidenceNotes.RowNote(
          row: cell.rowid, key: cell.rowid,
          origin: EvidenceNotes.Origin(page: row.page, cell: cell.index, source: source(of: row.page)),
          certainty: .probable, reason: remark))
      return
    }
    guard row.doubtReason == nil, cell.index < 0 || !isTextValid || cell.isUnusual else { return }
    guard cell.index < 0 || isTextValid || cell.isUnusual else {
      invalidTexts[row.tree, default: []].append(row)
      invalidTextCount += 1
      if invalidTextCount >= Self.invalidTextLimit { try settleTexts(isSound: false) }
      return
    }
    try noteDoubt(cell.index < 0 ? .foundByContent : isTextValid ? .unusualValue : .invalidText, of: row)
  }

  /// Decides about live rows with text that is not valid in the store's encoding: they are doubtful, unless nothing of the
  /// store is damaged and so many rows of the table have such text that its app must have written it.
  func settleTexts(isSound: Bool) throws(SalvageError) {
    for (tree, rows) in invalidTexts.sorted(by: { $0.key < $1.key }) {
      let isWritten =
        rows.count >= Self.writtenTexts.count && Int64(rows.count) * Self.writtenTexts.share >= tallies[tree].recovered
      guard !isSound || !isWritten else { continue }
      for row in rows { try noteDoubt(.invalidText, of: row) }
    }
    invalidTexts = [:]
    invalidTextCount = 0
  }

  // MARK: Parts of rows

  /// Keeps what is left of a row, which becomes the live one where no other version of it is found.
  func keepPart(of row: FoundRow, _ record: [UInt8]) throws(SalvageError) {
    guard parts.count < PendingRows.limit, partLength + record.count <= Self.partLimit else {
      try writePart(of: row, record)
      return
    }
    parts.append((row, record))
    partLength += record.count
  }

  /// Writes what is left of rows that are not there in another version: references to them live, and their other values.
  func writeParts() throws(SalvageError) {
    for (row, record) in parts { try writePart(of: row, record) }
    parts = []
    partLength = 0
  }

  private func writePart(of row: FoundRow, _ record: [UInt8]) throws(SalvageError) {
    guard let table = live[row.tree], try !table.hasRow(row.cell.rowid) else { return }
    var row = row
    row.doubtReason = .longValue
    guard try write(row, record.span) else { return }
    try noteDoubt(.longValue, of: row)
    tallies[row.tree].keptParts += 1
    if tallies[row.tree].destroyed > 0 {
      tallies[row.tree].destroyed -= 1
    } else if tallies[row.tree].onLostPages > 0 {
      tallies[row.tree].onLostPages -= 1
    }
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
      name(of: tree),
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
      others[row.tree] = try make(row.tree, definition, .other)
    }
    guard let table = others[row.tree] else { return }
    try table.insertApart(record, rowid: trees[row.tree].hasRowids ? row.cell.rowid : nil)
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
    if deleted[tree] == nil { deleted[tree] = try make(tree, definition, .deleted) }
    guard let table = deleted[tree] else { return }
    try table.insertApart(record, rowid: rowid)
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
    case .contradicted:
      "an index, the highest key that was given or another page of the table contradicts it or others of its page"
    case .besideDamage: "the bytes behind it on its page were written over, and perhaps its own end"
    case .misplacedPage: "its page stands in the place of another one, and may be of another time or store"
    case .invalidText: "its text is not valid in the store's encoding"
    case .unusualValue: "a value of it is of another kind than its column"
    case .longValue: "a part of a long value of it is lost or doubtful, and was left out"
    case .freeSpace: "only the free space of a page still has it"
    case .otherThanKit: "its bytes are not as the recovery kit noted them"
    case .fromBackup: "taken from a backup"
    case .notNoted: "the reason was not noted"
    }
  }
}

struct CellPlace: Hashable {
  var page: UInt32

  /// The offset of its payload on it.
  var payload: Int
}

/// A row of a table, as it stands on a page, before it is written.
struct FoundRow {
  /// The number of its tree.
  var tree: Int

  /// The page that its cell is on.
  var page: UInt32

  var cell: LeafCell

  /// Why it is doubtful; nil where it is not.
  var doubtReason: DoubtReason?
}

/// The account of one table: what was recovered, and what is known to be lost.
struct TableTally {
  var name: String

  /// Rows in the live table.
  var recovered: Int64 = 0

  /// Live rows that are doubtful, by the reason; each is counted once.
  var doubts: [DoubtReason: Int64] = [:]

  /// Live rows that were rebuilt from an index.
  var fromIndex: Int64 = 0

  /// Live rows that were taken from a backup.
  var fromBackup: Int64 = 0

  /// Rows whose cells are known to be destroyed, or of which a part is lost.
  var destroyed: Int64 = 0

  /// Rows that were on pages that are lost, estimated by the other pages.
  var onLostPages: Int64 = 0

  /// Rows in the tables that are set aside.
  var keptApart: Int64 = 0

  /// Those of them of which the part that is to be believed is a live row: they are no rows besides it.
  var keptParts: Int64 = 0

  /// The rowids of rows that were found whole and are not live ones, because their entity number is none of the table's.
  var ofUnknownEntity: Set<Int64> = []

  var deleted: Int64 = 0

  /// Whether the number of lost rows is counted by an index that is whole and was held against the rows.
  var isCounted = false

  /// Whether the indexes that are whole do not agree on that count.
  var isDisputed = false

  /// Whether an index that is whole lists rows that are not there, and contradicts those that are so that they are doubtful.
  var isContradicted = false

  /// The rowids that no row had and that indexes list which nothing speaks against, in ascending order.
  var listed: [Int64] = []

  /// Takes account of rows that came from a backup.
  ///
  /// - Parameter inPages: those of them whose page is there and was damaged; the others were on lost pages.
  mutating func noteFromBackup(_ count: Int64, inPages: Int64) {
    recovered += count
    fromBackup += count
    destroyed = max(0, destroyed - inPages)
    onLostPages = max(0, onLostPages - (count - inPages))
  }

  var lost: Int64 { destroyed + onLostPages }
}
