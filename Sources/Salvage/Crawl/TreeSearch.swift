internal import ManagedObjectModel
internal import PersistentStore
import Platform
internal import SQLiteFormat

/// Builds trees from the evidence, and assigns orphan pages.
struct TreeSearch {
  let evidence: Evidence
  let model: SalvageModel?
  let options: Salvager.Options

  func run() throws -> FoundTrees {
    let (kits, kitRemarks) = try options.kit.kits(in: evidence.fileSystem)
    var found = try run(kits)
    if found.unfit != nil, options.offset == nil, let other = try fittingOther(than: found, kits) { found = other }
    found.kitRemarks = kitRemarks + found.kitRemarks
    return found
  }

  /// The file's first other database that fits the model.
  private func fittingOther(than found: FoundTrees, _ kits: [RecoveryKit]) throws -> FoundTrees? {
    for offset in found.reader.layout.otherDatabases.prefix(Self.mostDatabases) {
      // The log belongs to the first database, the one that SQLite opens.
      var other = try walk(EvidenceUse(log: .none, offset: offset), kits)
      guard other.unfit == nil, !other.schema.entries.isEmpty else { continue }
      if evidence.log != nil { other.leaveOutLog("the write-ahead log belongs to another database, and was left out") }
      return other
    }
    return nil
  }

  private static let mostDatabases = 16

  private func run(_ kits: [RecoveryKit]) throws -> FoundTrees {
    var use = EvidenceUse(offset: options.offset)
    let foreign = try options.ignoresLog ? nil : foreignLog()
    let isForeign = foreign.map { $0.isCertain && $0 != .trees } ?? false
    if options.ignoresLog || isForeign { use.log = .none }
    var found = try walk(use, kits)
    if found.reader.overlay?.source == .journal, try isForeignJournal(&found, kits) {
      use.undoesJournal = false
      found = try walk(use, kits)
      found.leaveOutJournal()
    }
    if options.ignoresLog || isForeign {
      if evidence.log != nil {
        found.leaveOutLog(
          foreign == .state
            ? "the write-ahead log is of another state of the store, as where an earlier copy of it was put back, and was left "
              + "out: what is in it comes out where it is salvaged by itself"
            : "the write-ahead log belongs to another database, and was left out")
      }
      return found
    }
    guard found.reader.overlay?.source == .log else { return found }
    // SQLite ignores parts of a damaged log; here all of it counts.
    let isOlder = try LogAge(found.crawl, evidence)?.isOlder(found.schema.entries) ?? false
    if !isOlder, try !isForeignLog(&found, use, kits) { return found }
    use.log = .none
    var alone = try walk(use, kits)
    alone.isJournalForeign = found.isJournalForeign
    alone.remarks += found.remarks
    if isOlder { return try fillingFromOlderLog(alone, use, kits) }
    alone.leaveOutLog("the write-ahead log seems to belong to another database, and was left out")
    return alone
  }

  /// Fills pages that the file lacks from an older log.
  private func fillingFromOlderLog(
    _ alone: consuming FoundTrees, _ use: EvidenceUse, _ kits: [RecoveryKit]
  ) throws -> FoundTrees {
    var use = use
    use.log = .whereFileLacks
    var alone = alone
    if alone.isIncomplete {
      var filled = try walk(use, kits)
      if filled.reader.overlay?.source == .log, filled.unfit == nil || alone.unfit != nil,
        try !SharedPages(filled.crawl, filled.schema.entries).hasOtherTrees
      {
        filled.isJournalForeign = alone.isJournalForeign
        filled.remarks += alone.remarks
        filled.remarks.append(
          "the write-ahead log is older than the database: only pages that the file lacks were taken from it, and their "
            + "records are doubtful")
        return filled
      }
    }
    alone.leaveOutLog("the write-ahead log is older than the database, or belongs to another one, and was left out")
    return alone
  }

  /// Whether the file contradicts the log; marks unrelated rows doubtful.
  private func isForeignLog(
    _ found: inout FoundTrees, _ use: EvidenceUse, _ kits: [RecoveryKit]
  ) throws -> Bool {
    let shared = try SharedPages(found.crawl, found.schema.entries)
    if shared.hasOtherTrees { return true }
    if found.unfit != nil || shared.hasOtherPages {
      // Another database's log ruins a sound file or replaces it; the file alone is then better.
      let alone = try walk(EvidenceUse(log: .none, undoesJournal: use.undoesJournal), kits)
      let isBetter =
        found.unfit != nil
        ? alone.unfit == nil && Self.hasLeaves(alone.crawl.map)
        : alone.crawl.hasListedRows && alone.crawl.damage * 4 < found.crawl.damage
      if isBetter { return true }
    }
    if shared.hasOtherRows {
      found.markOverlay(
        "the rows of the write-ahead log have nothing in common with those of the file: it may belong to another store, "
          + "and its records are doubtful")
    }
    return false
  }

  /// Whether the journal is another transaction's; marks it doubtful if it may be.
  private func isForeignJournal(_ found: inout FoundTrees, _ kits: [RecoveryKit]) throws -> Bool {
    if try JournalSurvey.isContradicted(found.reader, evidence) { return true }
    // With only part of the old pages restored, trees and rows are of two times.
    if found.reader.overlay?.isCutOff == true { return false }
    let shared = try SharedPages(found.crawl, found.schema.entries)
    if shared.hasOtherTrees { return true }
    guard shared.hasOtherPages || shared.hasOtherRows else { return false }
    // A file in mid-transaction is rarely sound, and its own journal repairs it.
    let alone = try walk(EvidenceUse(log: .none, undoesJournal: false), kits)
    if alone.crawl.hasListedRows, !alone.isIncomplete { return true }
    found.markOverlay(
      "the rollback journal has nothing in common with the file: it may belong to another store, and its records are "
        + "doubtful")
    return false
  }

  /// Evidence that the log is foreign, if any.
  private func foreignLog() throws -> ForeignLog? {
    guard let log = evidence.log, evidence.main.count > 0 else { return nil }
    do throws(FileError) {
      let database = try Database(main: evidence.main, writeAheadLog: log, rollbackJournal: evidence.journal)
      if let foreign = try ForeignLog(of: database) { return foreign }
      return try ForeignLog.isOfOtherState(database) ? .state : nil
    } catch {
      if error.fileError != nil { throw SalvageError(error) }
      return nil
    }
  }

  /// The error for found rows that fit no table of the model.
  func unfit(_ outcome: RowOutcome) throws -> SalvageError? {
    try ModelFit(model, evidence).problem(outcome)
  }

  func place(_ crawl: inout Crawl) throws {
    guard crawl.map.pageCount > 0, crawl.trees.count > 1 || Self.hasLeaves(crawl.map) else {
      throw SalvageError.nothing(in: evidence)
    }
    try tell(.placement, 0, 1)
    crawl.buryCutOffPages()
    crawl.buryCopies()
    try crawl.markFreePages()
    try crawl.dropPagesPastEnd()
    try crawl.placeOrphans()
  }

  func tell(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) throws {
    guard options.progress(phase, done, total) else { throw SalvageError.cancelled() }
  }

  private static func hasLeaves(_ map: PageMap) -> Bool {
    map.pageCount > 0 && (1...map.pageCount).contains { map.look($0) == .tableLeaf || map.look($0) == .indexLeaf }
  }

  /// Surveys all pages, finds the tables, and walks their trees.
  private func walk(_ use: EvidenceUse, _ kits: [RecoveryKit]) throws -> FoundTrees {
    var use = use
    var reader = try PageReader.open(evidence, use)
    if reader.layout.isGuessed, let encoding = try givenEncoding() {
      use.encoding = encoding
      reader = try PageReader.open(evidence, use)
    }
    try tell(.survey, 0, Int64(reader.pageCount))
    let map = try PageSurvey.run(reader) { page in
      try tell(.survey, Int64(page), Int64(reader.pageCount))
    }
    var schema = try SchemaSearch.find(reader, map)
    var identity = try StoreIdentity.find(reader, map, schema.entries)
    var kitRemarks = identity.take(options.standIn)
    let kit = try KitEvidence.choose(
      from: kits, isOfThisState: options.isKitOfThisState, options.scope, reader, identity, schema, &kitRemarks)
    if let kit {
      identity.notedHashes = kit.versionHashes
      if !schema.isWhole { schema.entries = kit.supplemented(schema.entries, pageCount: map.pageCount) }
    }
    let choice = ModelChoice(model, identity, options)
    var expected = try choice.expectedSchema(schema, reader, map)
    if expected == nil, model == nil, !schema.isWhole, identity.metadata == nil, let donor = options.donor {
      expected = try DonorRows.schema(of: donor, in: evidence.fileSystem)
    }
    let foreign = choice.foreignModel
    // A store of another model has that model's tables, even if rows are converted.
    let shapes = try foreign.map { model in try ExpectedSchema(model) } ?? expected
    let isCoreData = identity.metadata != nil || identity.cachedModel != nil
    var definitions = try DefinitionSearch(
      schema: schema, reader: reader, map: map, evidence: evidence, isCoreData: isCoreData
    ).run(shapes, choice)
    if options.findsDeleted { definitions.list.addDropped(try DroppedTables.find(reader, map)) }
    return FoundTrees(
      reader: reader, crawl: try crawl(reader, map, definitions, kit), definitions: definitions, schema: schema,
      identity: identity, expected: expected, basis: choice.basis, foreignModel: foreign, kit: kit,
      kitRemarks: kitRemarks, unfit: try ModelFit(model, evidence).problem(identity, schema))
  }

  /// Returns the encoding of the given schema or of the backup; nil if UTF-8, which a schema file need not mean.
  private func givenEncoding() throws -> TextEncoding? {
    var schema: ExpectedSchema?
    if case .sqlite(let script)? = model { schema = try ExpectedSchema(script) }
    if model == nil, let donor = options.donor { schema = try DonorRows.schema(of: donor, in: evidence.fileSystem) }
    return schema.flatMap { $0.encoding == .utf8 ? nil : $0.encoding }
  }

  private func crawl(
    _ reader: PageReader, _ map: PageMap, _ definitions: DefinitionSearch.Definitions, _ kit: KitEvidence?
  ) throws -> Crawl {
    var list = definitions.list
    var crawl = Crawl(reader: reader, map: map, trees: list.trees)
    try crawl.walkRoots()
    let (places, disputed) = try crawl.exchangedRoots()
    if !places.isEmpty {
      for (table, other) in places { list.trees[table].root = definitions.list.trees[other].root }
      crawl = Crawl(reader: reader, map: map, trees: list.trees)
      try crawl.walkRoots()
    }
    let trees = list.trees(constrainedBy: try EntityList.find(reader, map, definitions.entries))
    crawl.firstWalk = try FirstWalk(crawl)
    let strangers = try MisplacedPageSearch.run(crawl, shapedAs: trees)
    if crawl.damage > 0 || !strangers.isEmpty {
      // Damage suggests misplaced pages; examine each closely.
      let firstWalk = crawl.firstWalk
      crawl = Crawl(reader: reader, map: map, trees: trees)
      crawl.firstWalk = firstWalk
      crawl.isThorough = true
      crawl.strangers = strangers
      try crawl.walkRoots()
    }
    crawl.strangers.copied = strangers.copied
    crawl.exchanged = places.keys.sorted()
    crawl.disputed = disputed
    // A table without rows takes none of another entity.
    for (index, tree) in trees.enumerated() where crawl.trees[index].leaves.allSatisfy({ map.fieldCount($0) == 0 }) {
      crawl.trees[index].shape = tree.shape
    }
    crawl.hasAllTables = list.hasAllTables || kit != nil
    crawl.hasWholeSchema = list.isWhole || kit != nil
    crawl.kit = kit?.kit
    return crawl
  }
}

struct FoundTrees {
  let reader: PageReader

  var crawl: Crawl

  let definitions: DefinitionSearch.Definitions

  let schema: SchemaSearch

  let identity: StoreIdentity

  let expected: ExpectedSchema?

  let basis: SalvageReport.Rebuild.Basis

  /// The store's own model, if rows go into another.
  let foreignModel: ManagedObjectModel?

  let kit: KitEvidence?

  /// Remarks on recovery kits and substitute metadata.
  var kitRemarks: [String]

  /// The error if the model matches no content of the store.
  let unfit: SalvageError?

  /// Remarks on the files; each means possible loss.
  var remarks: [String] = []

  var isLogForeign = false

  var isJournalForeign = false

  /// Whether a page is missing, the schema table damaged, or the file length wrong.
  var isIncomplete: Bool {
    guard schema.isWhole, crawl.damage == 0, let header = reader.layout.header, header.hasMagic else { return true }
    return header.isPageCountValid && header.pageCount != reader.layout.pageCount
  }

  mutating func markOverlay(_ remark: String) {
    reader.isOverlayContradicted = true
    remarks.append(remark)
  }

  mutating func leaveOutJournal() {
    isJournalForeign = true
    remarks.append("the rollback journal belongs to another database or to an earlier transaction, and was left out")
  }

  mutating func leaveOutLog(_ remark: String) {
    isLogForeign = true
    remarks.append(remark)
  }

  /// The store's entity numbers; nil where they match the model's.
  var numbering: EntityNames? { definitions.shapes?.numbering }

  /// The store's names for the target layout.
  func names() throws -> StoreNames {
    let own = definitions.shapes?.names ?? StoreNames()
    guard let foreignModel, let layout = expected?.layout, let theirs = try ExpectedSchema(foreignModel).layout else {
      return own
    }
    return StoreNames(layout, in: theirs, own)
  }

  /// Moves the trees out; a copy would double the page map.
  mutating func takeCrawl() -> Crawl {
    defer { crawl = Crawl(reader: reader, map: PageMap(pageCount: 0), trees: []) }
    return crawl
  }
}

/// Finds dropped tables among deleted schema rows.
enum DroppedTables {
  private static let limit = 256

  /// The tables, latest first, including older versions of current ones.
  static func find(_ reader: PageReader, _ map: PageMap) throws -> [SchemaEntry] {
    let scan = FreeSpaceScan(
      shape: .schema, geometry: reader.geometry, encoding: reader.layout.encoding, hasAlias: false)
    var entries: [SchemaEntry] = []
    var buffer = reader.makeBuffer()
    guard map.pageCount >= 1 else { return [] }
    for page in 1...map.pageCount
    where page == 1 || map.look(page) == .tableLeaf && map.fieldCount(page) == 5 {
      guard entries.count < limit, try reader.readPlace(page, into: &buffer) else { continue }
      let start = page == 1 && buffer[0] != 13 ? DatabaseHeader.length : 0
      guard buffer[start] == PageKind.tableLeaf.rawValue else { continue }
      for deleted in scan.deletedRecords(buffer.span, start: start) where deleted.overflow == 0 && entries.count < limit
      {
        guard let record = Record(payload: deleted.record[...], encoding: reader.layout.encoding),
          let entry = SchemaEntry(record, rowid: deleted.rowid ?? 0), entry.kind == .table, entry.tableDefinition != nil
        else { continue }
        entries.append(entry)
      }
    }
    return entries
  }
}
