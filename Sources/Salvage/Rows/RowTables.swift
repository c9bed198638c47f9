internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat

/// The output tables with their notes and accounts.
final class RowTables {
  /// Numbered as the tables here.
  let trees: [Tree]

  let reader: PageReader

  let database: OutputDatabase

  let notes: EvidenceNotes

  var tallies: [TableTally]

  private(set) var live: [OutputTable?]

  /// Other row versions and misfits.
  private(set) var others: [OutputTable?]

  private(set) var deleted: [OutputTable?]

  /// The individually doubtful live rows by table, in which a recovery kit may find more damage; nil if not needed.
  private(set) var doubtedRows: [Int: Set<Int64>]?

  /// The cells with incomplete or contested long values; nil if not needed.
  private(set) var apartChains: Set<CellPlace>?

  /// Remarks on tables not made as declared.
  private(set) var remarks: [String] = []

  /// Remarks on columns beyond SQLite's limit.
  private(set) var losses: [String] = []

  /// The replacements of unusable table names.
  private(set) var otherNames: [String: String] = [:]

  /// Equal live rows strike these out.
  var deletedDigests: DeletedDigests?

  /// Whether each is Core Data's metadata or cached model.
  private let areBooks: [Bool]

  /// The remains of rows with lost or doubtful long values.
  private var parts: [(row: FoundRow, record: [UInt8])] = []

  private var partLength = 0

  /// The most bytes kept until other versions are written.
  private static let partLimit = 32 << 20

  /// Live rows with invalid text, not yet decided.
  private var invalidTexts: [Int: [FoundRow]] = [:]

  private var invalidTextCount = 0

  private static let invalidTextLimit = 1 << 17

  /// The minimum of invalid texts, and their share, to attribute them to the app.
  private static let writtenTexts = (count: 8, share: 10 as Int64)

  init(_ crawl: Crawl, in database: OutputDatabase, isSurvey: Bool = false) throws {
    trees = crawl.trees
    areBooks = crawl.trees.map { ["Z_METADATA", "Z_MODELCACHE"].contains($0.name.uppercased()) }
    reader = crawl.reader
    self.database = database
    notes = try EvidenceNotes(database)
    tallies = trees.map { TableTally(name: $0.name) }
    live = [OutputTable?](repeating: nil, count: trees.count)
    others = live
    deleted = live
    doubtedRows = isSurvey || crawl.kit == nil ? nil : [:]
    apartChains = isSurvey ? [] : nil
  }

  /// - Parameter store: a new store for suitable rows.
  func makeTables(in store: NewStore? = nil) throws {
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

  /// SQLite reserves its own name for the table of highest keys.
  private static let sequenceName = "lazaret_sequence"

  /// Returns the highest assigned keys by table.
  func sequences() throws -> [String: Int64] {
    var sequences: [String: Int64] = [:]
    guard trees.contains(where: \.isSequence) else { return sequences }
    let rows = try database.prepare(
      "SELECT name, max(seq) FROM \(Self.sequenceName) WHERE typeof(name) = 'text' AND typeof(seq) = 'integer' GROUP BY name"
    )
    while try rows.step() { if let name = rows.text(0) { sequences[name] = rows.integer(1) } }
    return sequences
  }

  /// Makes a table with as much of its declaration as SQLite accepts, noting the rest.
  private func make(
    _ tree: Int, _ definition: TableDefinition, _ role: OutputRole, direct: DirectTable? = nil
  ) throws -> OutputTable {
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

  func name(of tree: Int) -> String { live[tree]?.name ?? trees[tree].name }

  /// Returns the file or log of a page's bytes.
  func source(of page: UInt32) -> String {
    guard let overlay = reader.overlay, overlay.images[page] != nil else { return "main" }
    return overlay.source.rawValue
  }

  // MARK: Live rows

  /// Writes a complete row, or sets aside a duplicate; false if it did not become live.
  ///
  /// The phase that found the row notes its doubt.
  ///
  /// - Parameter remark: a note if there is no other.
  @inline(__always)
  func write(_ row: FoundRow, _ record: Span<UInt8>, remark: String? = nil) throws -> Bool {
    guard let table = live[row.tree] else { return false }
    if try table.insert(record, rowid: row.cell.rowid) {
      deletedDigests?.strike(record)
      let encoding = reader.layout.encoding
      let isTextValid =
        RecordText.isValid(record, at: 0, before: record.count, encoding: encoding)
        && !(reader.layout.isGuessed && encoding == .utf8 && TreePageLook.hasWideText(record))
      try noteLive(row, isTextValid: isTextValid, remark: remark)
      if areBooks[row.tree] { try checkBook(row, record) }
      return true
    }
    if try !table.holds(record, rowid: row.cell.rowid) {
      try keepApart(row, record, reason: "another version of the row is the live one")
    }
    return false
  }

  /// Notes unreadable values of Core Data's bookkeeping.
  private func checkBook(_ row: FoundRow, _ record: Span<UInt8>) throws {
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

  private func noteLive(_ row: FoundRow, isTextValid: Bool, remark: String?) throws {
    tallies[row.tree].recovered += 1
    let cell = row.cell
    if let remark, isTextValid, cell.index >= 0, !cell.isUnusual {
      try notes.noteRow(cell.rowid, of: name(of: row.tree), key: cell.rowid, origin(of: row), .probable, reason: remark)
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

  /// Doubts live rows with invalid text, unless the store is sound and enough rows have it to attribute it to the app.
  func settleTexts(isSound: Bool) throws {
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

  /// Keeps a row's remains, live without another version.
  func keepPart(of row: FoundRow, _ record: [UInt8]) throws {
    guard parts.count < PendingRows.limit, partLength + record.count <= Self.partLimit else {
      try writePart(of: row, record)
      return
    }
    parts.append((row, record))
    partLength += record.count
  }

  /// Writes the remains of rows without another version, for references to them and their other values.
  func writeParts() throws {
    for (row, record) in parts { try writePart(of: row, record) }
    parts = []
    partLength = 0
  }

  private func writePart(of row: FoundRow, _ record: [UInt8]) throws {
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

  /// Counts and notes a doubtful live row.
  func noteDoubt(_ reason: DoubtReason, of row: FoundRow, words: String? = nil) throws {
    try noteDoubt(reason, row: row.cell.rowid, of: row.tree, origin(of: row), words: words)
  }

  /// - Parameter source: replaces the source of the page's bytes.
  private func origin(of row: FoundRow, source: String? = nil) -> EvidenceNotes.Origin {
    EvidenceNotes.Origin(
      page: row.page, cell: row.cell.index < 0 ? nil : row.cell.index, source: source ?? self.source(of: row.page))
  }

  /// - Parameter words: replaces the reason's words.
  func noteDoubt(
    _ reason: DoubtReason, row: Int64, of tree: Int, _ origin: EvidenceNotes.Origin, words: String? = nil
  ) throws {
    tallies[tree].doubts[reason, default: 0] += 1
    doubtedRows?[tree, default: []].insert(row)
    try notes.noteRow(
      row, of: name(of: tree), key: row, origin, .doubtful, doubt: reason,
      reason: words ?? reason.words(ofTable: trees[tree]))
  }

  // MARK: Rows that are not live

  /// - Parameter source: replaces the source of the page's bytes.
  func keepApart(_ row: FoundRow, _ record: Span<UInt8>, source: String? = nil, reason: String) throws {
    guard let definition = trees[row.tree].definition else { return }
    if row.cell.overflow != 0 { apartChains?.insert(CellPlace(page: row.page, payload: row.cell.payload)) }
    if others[row.tree] == nil { others[row.tree] = try make(row.tree, definition, .other) }
    guard let table = others[row.tree] else { return }
    let key = trees[row.tree].hasRowids ? row.cell.rowid : nil
    try table.insertApart(record, rowid: key)
    tallies[row.tree].keptApart += 1
    try notes.noteRow(table.count, of: table.name, key: key, origin(of: row, source: source), .doubtful, reason: reason)
  }

  /// - Parameter rowid: the former rowid, if known.
  func writeDeleted(
    _ record: Span<UInt8>, rowid: Int64?, of tree: Int, _ origin: EvidenceNotes.Origin, reason: String
  ) throws {
    guard let definition = trees[tree].definition else { return }
    if deleted[tree] == nil { deleted[tree] = try make(tree, definition, .deleted) }
    guard let table = deleted[tree] else { return }
    try table.insertApart(record, rowid: rowid)
    tallies[tree].deleted += 1
    try notes.noteRow(table.count, of: table.name, key: rowid, origin, .probable, reason: reason)
  }
}

struct CellPlace: Hashable {
  var page: UInt32

  var payload: Int
}

/// A row on a page, before it is written.
struct FoundRow {
  var tree: Int

  var page: UInt32

  var cell: LeafCell

  var doubtReason: DoubtReason?
}

/// A table's account of recovered and lost rows.
struct TableTally {
  var name: String

  var recovered: Int64 = 0

  /// Doubtful live rows by reason, each once.
  var doubts: [DoubtReason: Int64] = [:]

  var fromIndex: Int64 = 0

  var fromBackup: Int64 = 0

  /// Rows with destroyed cells or lost parts.
  var destroyed: Int64 = 0

  /// Estimated rows on lost pages.
  var onLostPages: Int64 = 0

  var keptApart: Int64 = 0

  /// Those with a credible part among the live rows.
  var keptParts: Int64 = 0

  /// Intact rows left out for an invalid entity number.
  var ofUnknownEntity: Set<Int64> = []

  var deleted: Int64 = 0

  /// Whether an intact, verified index counts the lost rows.
  var isCounted = false

  /// Whether intact indexes disagree on the count.
  var isDisputed = false

  /// Whether an intact index lists missing rows and makes present ones doubtful.
  var isContradicted = false

  /// The missing rowids of uncontradicted indexes, ascending.
  var listed: [Int64] = []

  /// - Parameter inPages: rows of damaged rather than lost pages.
  mutating func noteFromBackup(_ count: Int64, inPages: Int64) {
    recovered += count
    fromBackup += count
    destroyed = max(0, destroyed - inPages)
    onLostPages = max(0, onLostPages - (count - inPages))
  }

  var lost: Int64 { destroyed + onLostPages }
}
