package import ManagedObjectModel
package import PersistentStore
internal import Platform
package import SQLiteFormat
package import SystemPackage

/// One salvage, from the evidence to the rows as they are found.
package struct SalvageRun {
  private let evidence: Evidence
  private let options: Salvager.Options
  private let search: TreeSearch

  /// - Parameter model: what the caller knows of the store.
  package init(evidence: Evidence, model: SalvageModel?, options: Salvager.Options) {
    self.evidence = evidence
    self.options = options
    search = TreeSearch(evidence: evidence, model: model, options: options)
  }

  /// Makes a new store that takes all rows it can, of what was found out about the old one.
  package typealias StoreMaker = (StoreFacts) throws(SalvageError) -> any NewTables

  /// Writes the rows as they are found.
  ///
  /// - Parameters:
  ///   - output: the new database of rows as found.
  ///   - makesVirtualTables: whether virtual tables are made again over the tables behind them.
  ///   - makeStore: makes the new store, so that only the rows that it does not take come into `output`.
  package func raw(
    to output: FilePath, makesVirtualTables: Bool = false, makeStore: StoreMaker? = nil
  ) throws(SalvageError) -> RawSalvage {
    var found = try search.run()
    if let unfit = found.unfit { throw unfit }
    let reader = found.reader
    var crawl = found.takeCrawl()
    try search.place(&crawl)

    let database = try OutputDatabase(output, pageSize: max(4096, reader.pageSize), encoding: reader.layout.encoding)
    try database.execute("BEGIN")
    let tables = try RowTables(crawl, in: database, remembering: crawl.kit == nil ? [] : .doubtedRows)
    let newStore = try makeStore.map { make throws(SalvageError) in try make(found.facts) }
    // Rows of another model's tables go into this one's by the names of their columns, and not as they are.
    try tables.makeTables(in: found.isForeign ? nil : newStore)
    let total = Int64(crawl.trees.reduce(0) { $0 + $1.leaves.count })
    var done: Int64 = 0
    let recovery = RowRecovery(consume crawl, into: tables)
    let outcome = try recovery.run(findsDeleted: options.findsDeleted) { pages throws(SalvageError) in
      // Each phase may take a while, and the caller may want it to end.
      done += Int64(pages)
      try search.tell(.rows, done, total)
    }
    if let unfit = try search.unfit(outcome) { throw unfit }
    try search.tell(.rows, done, total)
    if options.findsDeleted {
      try recovery.addDeleted()
      try search.tell(.rows, done, total)
    }
    var kit = found.kit
    try kit?.verify(outcome, evidence)
    try search.tell(.rows, done, total)
    let donorRemarks = try takeFromDonor(found, outcome, kit)
    try tables.writeParts()
    try tables.notes.finish()
    try database.execute("COMMIT")
    try database.declareTables()
    try newStore?.finish()
    var virtual = VirtualTables(in: makesVirtualTables ? found.definitions.entries : [])
    try virtual.make { sql throws(SalvageError) in try database.answer(sql) }
    // What a new store has of the declarations, its maker tells.
    let declarations = newStore == nil ? tables.remarks + virtual.remarks : []
    var report = try report(found, outcome, kit, donorRemarks, tables.losses + declarations)
    // The rebuild counts the rows of all tables anew before.
    if newStore == nil { report.foldShadowTables(of: found.definitions.declarations) }
    return RawSalvage(
      report: report,
      metadata: found.identity.metadata,
      layout: found.expected?.layout, basis: found.basis, foreignModel: found.foreignModel,
      numbering: found.numbering, names: try found.names(), otherNames: tables.otherNames,
      entries: found.definitions.declarations, emptyIndexes: Self.emptyIndexes(outcome.crawl),
      sequences: try tables.sequences(),
      header: reader.layout.header, encoding: reader.layout.encoding, pageSize: reader.pageSize)
  }

  private static func emptyIndexes(_ crawl: borrowing Crawl) -> Set<String> {
    let empty = crawl.trees.filter { tree in
      tree.kind == .index && tree.root > 0 && tree.isComplete && tree.leaves == [tree.root]
        && crawl.map.cellCount(tree.root) == 0
    }
    return Set(empty.map { $0.name.lowercased() })
  }

  /// Takes lost rows from a healthy store, where there is one; returns what is to be said of it.
  private func takeFromDonor(
    _ found: FoundTrees, _ outcome: RowOutcome, _ kit: KitEvidence?
  ) throws(SalvageError) -> [String] {
    guard let donor = options.donor else { return [] }
    var rows = try DonorRows(
      donor, uuid: found.identity.metadata?.uuid ?? kit?.kit.storeUUID, kit: kit, in: evidence.fileSystem)
    try rows.run(outcome, found.definitions.list)
    return rows.remarks
  }

  private func report(
    _ found: FoundTrees, _ outcome: RowOutcome, _ kit: KitEvidence?, _ donorRemarks: [String], _ tableRemarks: [String]
  ) throws(SalvageError) -> SalvageReport {
    let reader = found.reader
    var report = try SalvageReport(
      outcome,
      isSchemaWhole: found.schema.isWhole && !outcome.crawl.lacksTables
        || found.schema.isEmpty && outcome.crawl.hasFreePagesOnly,
      list: found.definitions.list, evidence: evidence, isLogForeign: found.isLogForeign,
      isJournalForeign: found.isJournalForeign, kit: kit)
    if let donor = options.donor {
      report.backup = SalvageReport.BackupUse(
        date: donor.date, id: donor.id, rows: report.entities.reduce(0) { $0 + $1.fromBackup })
    }
    let remarks = try found.remarks + LogEnd.remarks(evidence, reader) + outcome.remarks + tableRemarks
    report.remarks += remarks
    report.remarks += reader.layout.otherDatabases.map { "another database begins at byte \($0) of the file" }
    if !remarks.isEmpty || reader.overlay?.isCutOff == true { report.isComplete = false }
    report.remarks += LogEnd.absence(evidence, reader, isCoreData: found.definitions.list.isCoreData)
    report.remarks += found.kitRemarks + donorRemarks + found.definitions.remarks
    return report
  }

  /// What the store's pages are.
  ///
  /// Rows are only read where pages seem to have changed places, or two rows lead to one.
  func survey() throws(SalvageError) -> StoreSurvey {
    var found = try search.run()
    let reader = found.reader
    var crawl = found.takeCrawl()
    try search.place(&crawl)
    let isDamaged =
      crawl.damage > 0 || crawl.map.hasCrossedLinks || crawl.map.contested.count > 0 || !reader.moved.isEmpty
    var apart: Set<CellPlace> = []
    if isDamaged {
      // A file without a name, which is gone when it is closed.
      let database = try OutputDatabase("", pageSize: max(4096, reader.pageSize), encoding: reader.layout.encoding)
      try database.execute("BEGIN")
      let tables = try RowTables(crawl, in: database, remembering: .apartChains)
      try tables.makeTables()
      let outcome = try RowRecovery(consume crawl, into: tables).claims { _ throws(SalvageError) in
        try search.tell(.rows, 0, 1)
      }
      apart = tables.apartChains ?? []
      crawl = outcome.crawl
    }
    return StoreSurvey(
      crawl: crawl, layout: found.expected?.layout, entries: found.definitions.entries,
      metadata: found.identity.metadata, modelPage: found.identity.modelPage, modelBytes: found.identity.modelBytes,
      isDamaged: isDamaged, apart: apart)
  }
}

extension FoundTrees {
  /// Whether rows go into another model's tables than they are from.
  var isForeign: Bool { foreignModel != nil || numbering != nil }

  /// What a new store is made by.
  var facts: StoreFacts {
    StoreFacts(
      layout: expected?.layout, entries: isForeign ? [] : definitions.declarations, header: reader.layout.header,
      encoding: reader.layout.encoding, pageSize: reader.pageSize)
  }
}

/// What the files tell of the end of the write-ahead log.
enum LogEnd {
  /// What is to be said where a part of the log is gone or was not read, as a look at the store says it too.
  static func remarks(_ evidence: Evidence, _ reader: PageReader) throws(SalvageError) -> [String] {
    let holder: String?
    let kept: (bytes: [UInt8], isInUse: Bool)?
    do throws(FileError) {
      holder = try evidence.files.holderOfDeletedLog(in: evidence.fileSystem)
      kept = try evidence.files.logIndex(length: WriteAheadLogIndex.length, in: evidence.fileSystem)
    } catch {
      throw SalvageError(error)
    }
    if let holder {
      return [
        "the write-ahead log was deleted while \(holder) had the store open: what it has written since is in the deleted file "
          + "alone"
      ]
    }
    if let header = reader.layout.header, header.hasMagic, header.isPageCountValid, reader.overlay == nil,
      reader.layout.pageCount < header.pageCount
    {
      let lacking = header.pageCount - reader.layout.pageCount
      return ["the file is cut off: \(counted(lacking, "page")) \(lacking == 1 ? "is" : "are") missing from its end"]
    }
    let index = kept.flatMap { WriteAheadLogIndex($0.bytes) }
    guard let source = evidence.log else {
      guard let gone = index?.missingFrames(of: nil), gone > 0 else { return [] }
      return ["the write-ahead log is gone: \(counted(gone, "frame")) of it were never copied into the file"]
    }
    let log: WriteAheadLog
    do throws(FormatError) { log = try WriteAheadLog(source) } catch { throw SalvageError(error) }
    if let gone = index?.missingFrames(of: log), gone > 0 {
      return ["the write-ahead log is cut off: \(gone) of its frames are gone"]
    }
    if log.isReadToItsEnd || kept?.isInUse == true && log.endsWithUnfinishedTransaction(by: index) { return [] }
    // Whatever was said of it in detail, this says that something may be missing.
    return ["the write-ahead log was not read to its end: what was written last may be missing"]
  }

  /// What is to be said of a store of Core Data's that has no log at all: Core Data leaves the file where it is, even when
  /// everything was copied out of it, so that the store may have been copied without.
  static func absence(_ evidence: Evidence, _ reader: PageReader, isCoreData: Bool) -> [String] {
    guard isCoreData, evidence.log == nil, reader.overlay == nil, reader.layout.header?.usesWriteAheadLog == true,
      !evidence.hasLogFile
    else { return [] }
    return [
      "there is no write-ahead log beside the store: where it was copied without, the latest changes are missing, and "
        + "rows can be older than they were"
    ]
  }
}

/// A new store that takes rows while they are found, so that they are written only once.
package protocol NewTables: AnyObject {
  /// The table that rows of a definition go into; nil where they all go into the database of rows as found.
  func table(for definition: TableDefinition) -> (any NewTable)?

  /// Ends the taking of rows.
  func finish() throws(SalvageError)
}

/// A table of a new store into which records go as the bytes that they are.
package protocol NewTable: AnyObject {
  /// Takes a row; false where it is for SQLite to insert.
  func insert(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool

  /// Whether there is a row of that rowid.
  func hasRow(_ rowid: Int64) throws(SalvageError) -> Bool

  /// Whether there is exactly that row.
  func holds(_ bytes: Span<UInt8>, from start: Int, length: Int, rowid: Int64) throws(SalvageError) -> Bool

  /// How many rows have a rowid in a range, as far as there was memory to keep them.
  func count(above: Int64, upTo: Int64) -> Int64

  /// How many rows have an entity number.
  func count(ofEntity number: Int64) -> Int64

  /// The keys of its rows; nil where not all of them could be kept.
  var takenKeys: KeyRanges? { get }
}

/// What a new store is made by: what is known of the store that the rows are from.
package struct StoreFacts {
  /// The layout of its version; nil where no model is known.
  package var layout: StoreLayout?

  /// The entries of its own schema.
  package var entries: [SchemaEntry]

  /// The header of the file, where it could be read.
  package var header: DatabaseHeader?

  /// The encoding of text.
  package var encoding: TextEncoding

  /// The size of a page in bytes.
  package var pageSize: Int
}

/// The rows as they were found, with what was found out about the store on the way.
package struct RawSalvage {
  /// The account of the rows.
  package var report: SalvageReport

  /// The store's metadata, where it could be read.
  package var metadata: StoreMetadata?

  /// The layout of the version that the store is of; nil where no model is known.
  package var layout: StoreLayout?

  /// How that version is known.
  package var basis: SalvageReport.Rebuild.Basis

  /// The model that the store carries where its rows go into a version of another one; nil otherwise.
  package var foreignModel: ManagedObjectModel?

  /// How the store numbers its entities; nil where it does so as the layout of its model.
  package var numbering: EntityNumbering?

  /// What the store calls the tables and columns of the layout.
  package var names: StoreNames

  /// The names of the tables that rows are in where they could not be made under their own.
  package var otherNames: [String: String]

  /// The tables, indexes, views and triggers that the new store is to have: those of the schema that was given, and those that
  /// the store's own lists besides, as far as it could be read.
  package var entries: [SchemaEntry]

  /// The names, in lower case, of indexes that have no entries.
  package var emptyIndexes: Set<String>

  /// The highest keys that were given, by the names of their tables, as `sqlite_sequence` has them.
  package var sequences: [String: Int64]

  /// The header of the file, where it could be read.
  package var header: DatabaseHeader?

  /// The encoding of text.
  package var encoding: TextEncoding

  /// The size of a page in bytes.
  package var pageSize: Int
}

extension TextEncoding {
  /// The name that SQLite has for it.
  package var pragmaName: String {
    switch self {
    case .utf8: "UTF-8"
    case .utf16LittleEndian: "UTF-16le"
    case .utf16BigEndian: "UTF-16be"
    }
  }
}
