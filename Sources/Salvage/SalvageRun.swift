internal import ManagedObjectModel
internal import PersistentStore
internal import Platform
internal import SQLiteFormat
internal import SystemPackage

/// A salvage from the files to the rows as found.
struct SalvageRun {
  private let evidence: Evidence
  private let options: Salvager.Options
  private let search: TreeSearch

  init(evidence: Evidence, model: SalvageModel?, options: Salvager.Options) {
    self.evidence = evidence
    self.options = options
    search = TreeSearch(evidence: evidence, model: model, options: options)
  }

  /// Writes the rows as found.
  ///
  /// - Parameters:
  ///   - makesVirtualTables: whether to restore virtual tables over their shadow tables.
  ///   - makeStore: creates the new store, which takes rows during recovery, so that they are written only once;
  ///     `output` then gets only the rows that it rejects.
  func raw(
    to output: FilePath, makesVirtualTables: Bool = false, makeStore: ((StoreFacts) throws -> NewStore)? = nil
  ) throws -> RawSalvage {
    var found = try search.run()
    if let unfit = found.unfit { throw unfit }
    let reader = found.reader
    var crawl = found.takeCrawl()
    try search.place(&crawl)

    let database = try OutputDatabase(output, pageSize: max(4096, reader.pageSize), encoding: reader.layout.encoding)
    try database.execute("BEGIN")
    let tables = try RowTables(crawl, in: database)
    let newStore = try makeStore.map { make in try make(found.facts) }
    // Rows of a foreign model are converted by column name, not copied.
    try tables.makeTables(in: found.isForeign ? nil : newStore)
    let total = Int64(crawl.trees.reduce(0) { $0 + $1.leaves.count })
    var done: Int64 = 0
    let recovery = RowRecovery(consume crawl, into: tables)
    let outcome = try recovery.run(findsDeleted: options.findsDeleted) { pages in
      // Reports within the phase, as the caller may cancel.
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
    try tables.notes.writeRest()
    try database.execute("COMMIT")
    try database.declareTables()
    try newStore?.writeIndexes()
    var virtual = VirtualTables(in: makesVirtualTables ? found.definitions.entries : [], ask: database.answer)
    try virtual.make()
    // A new store's maker reports on declarations itself.
    let declarations = newStore == nil ? tables.remarks + virtual.remarks : []
    var report = try report(found, outcome, kit, donorRemarks, tables.losses + declarations)
    // A rebuild recounts all tables first.
    if newStore == nil { report.foldShadowTables(of: found.definitions.declarations) }
    return RawSalvage(
      report: report, metadata: found.identity.metadata, layout: found.expected?.layout, basis: found.basis,
      foreignModel: found.foreignModel, numbering: found.numbering, names: try found.names(),
      otherNames: tables.otherNames, entries: found.definitions.declarations,
      emptyIndexes: Self.emptyIndexes(outcome.crawl), sequences: try tables.sequences(), header: reader.layout.header,
      encoding: reader.layout.encoding)
  }

  private static func emptyIndexes(_ crawl: borrowing Crawl) -> Set<String> {
    let empty = crawl.trees.filter { tree in
      tree.kind == .index && tree.root > 0 && tree.isComplete && tree.leaves == [tree.root]
        && crawl.map.cellCount(tree.root) == 0
    }
    return Set(empty.map { $0.name.lowercased() })
  }

  /// Takes lost rows from the donor, if any; returns remarks.
  private func takeFromDonor(_ found: FoundTrees, _ outcome: RowOutcome, _ kit: KitEvidence?) throws -> [String] {
    guard let donor = options.donor else { return [] }
    var rows = try DonorRows(
      donor, uuid: found.identity.metadata?.uuid ?? kit?.kit.storeUUID, kit: kit, in: evidence.fileSystem)
    try rows.run(outcome, found.definitions.list)
    return rows.remarks
  }

  private func report(
    _ found: FoundTrees, _ outcome: RowOutcome, _ kit: KitEvidence?, _ donorRemarks: [String], _ tableRemarks: [String]
  ) throws -> SalvageReport {
    let reader = found.reader
    var report = try SalvageReport(outcome, found, kit, evidence: evidence)
    if let donor = options.donor {
      report.backup = SalvageReport.BackupUse(
        date: donor.date, id: donor.id, rows: report.entities.reduce(0) { $0 + $1.fromBackup })
    }
    var remarks = found.remarks
    if let remark = try LogEnd.remark(evidence, reader) { remarks.append(remark) }
    remarks += outcome.remarks + tableRemarks
    report.remarks += remarks
    report.remarks += reader.layout.otherDatabases.map { "another database begins at byte \($0) of the file" }
    if !remarks.isEmpty || reader.overlay?.isCutOff == true { report.isComplete = false }
    let absence = LogEnd.absence(evidence, reader, isCoreData: found.definitions.list.isCoreData)
    if let absence { report.remarks.append(absence) }
    report.remarks += found.kitRemarks + donorRemarks + found.definitions.remarks
    return report
  }

  /// Surveys the pages; reads rows only if pages seem swapped or two rows share one.
  func survey() throws -> StoreSurvey {
    var found = try search.run()
    let reader = found.reader
    var crawl = found.takeCrawl()
    try search.place(&crawl)
    var guesses = found.schema.guesses
    for (index, tree) in crawl.trees.enumerated()
    where !tree.leaves.isEmpty || tree.root > 0 && crawl.map.owner(tree.root) == index {
      guesses.remove(tree.key)
    }
    let isDamaged =
      crawl.damage > 0 || crawl.map.hasCrossedLinks || crawl.map.contested.count > 0 || !reader.moved.isEmpty
    var apart: Set<CellPlace> = []
    if isDamaged {
      // An unnamed database, deleted on close.
      let database = try OutputDatabase("", pageSize: max(4096, reader.pageSize), encoding: reader.layout.encoding)
      try database.execute("BEGIN")
      let tables = try RowTables(crawl, in: database, isSurvey: true)
      try tables.makeTables()
      let outcome = try RowRecovery(consume crawl, into: tables).claims { _ in try search.tell(.rows, 0, 1) }
      apart = tables.apartChains ?? []
      crawl = outcome.crawl
    }
    return StoreSurvey(
      crawl: crawl, layout: found.expected?.layout, entries: found.definitions.entries, guesses: guesses,
      metadata: found.identity.metadata, modelPage: found.identity.modelPage, modelBytes: found.identity.modelBytes,
      isDamaged: isDamaged, apart: apart)
  }
}

extension FoundTrees {
  var isForeign: Bool { foreignModel != nil || numbering != nil }

  var facts: StoreFacts {
    StoreFacts(
      layout: expected?.layout, entries: isForeign ? [] : definitions.declarations, header: reader.layout.header,
      encoding: reader.layout.encoding, pageSize: reader.pageSize)
  }
}

/// Detects a missing end of the write-ahead log.
enum LogEnd {
  /// A remark on a lost or unread part of the log, consistent with an inspection.
  static func remark(_ evidence: Evidence, _ reader: PageReader) throws -> String? {
    let holder = try evidence.files.holderOfDeletedLog(in: evidence.fileSystem)
    let kept = try evidence.files.logIndex(length: WriteAheadLogIndex.length, in: evidence.fileSystem)
    if let holder {
      return "the write-ahead log was deleted while \(holder) had the store open: what it has written since is in the "
        + "deleted file alone"
    }
    if !evidence.endsInHole, let header = reader.layout.header, header.hasMagic, header.isPageCountValid,
      reader.overlay == nil, reader.layout.pageCount < header.pageCount
    {
      let lacking = header.pageCount - reader.layout.pageCount
      return "the file is cut off: \(counted(lacking, "page is", "pages are")) missing from its end"
    }
    let index = kept.flatMap { WriteAheadLogIndex($0.bytes) }
    guard let source = evidence.log else {
      guard let gone = index?.missingFrames(of: nil), gone > 0 else { return nil }
      return "the write-ahead log is gone: \(counted(gone, "frame")) of it were never copied into the file"
    }
    let log = try WriteAheadLog(source)
    if let gone = index?.missingFrames(of: log), gone > 0 {
      return "the write-ahead log is cut off: \(gone) of its frames are gone"
    }
    if log.isReadToItsEnd || kept?.isInUse == true && log.endsWithUnfinishedTransaction(by: index) { return nil }
    // Other remarks have the details; this one states the possible loss.
    return "the write-ahead log was not read to its end: what was written last may be missing"
  }

  /// A remark on a Core Data store without any log file.
  ///
  /// Core Data keeps the log file even after a full checkpoint, so the store may have been copied without it.
  static func absence(_ evidence: Evidence, _ reader: PageReader, isCoreData: Bool) -> String? {
    guard isCoreData, evidence.log == nil, reader.overlay == nil, reader.layout.header?.usesWriteAheadLog == true,
      !evidence.hasLogFile
    else { return nil }
    return "there is no write-ahead log beside the store: where it was copied without, the latest changes are missing, "
      + "and rows can be older than they were"
  }
}

/// Facts about the source store that determine a new one.
struct StoreFacts {
  var layout: StoreLayout?

  var entries: [SchemaEntry]

  var header: DatabaseHeader?

  var encoding: TextEncoding

  var pageSize: Int
}

struct RawSalvage {
  var report: SalvageReport

  var metadata: StoreMetadata?

  var layout: StoreLayout?

  /// The evidence for the model version.
  var basis: SalvageReport.Rebuild.Basis

  /// The store's own model, if its rows go into another.
  var foreignModel: ManagedObjectModel?

  /// The store's entity numbers; nil where they match its model's.
  var numbering: EntityNames?

  /// The store's names for the layout's tables and columns.
  var names: StoreNames

  /// Substitutes for unusable table names.
  var otherNames: [String: String]

  /// The new store's schema: the given one, plus readable entries of the store's own.
  var entries: [SchemaEntry]

  /// Lowercase names of indexes without entries.
  var emptyIndexes: Set<String>

  /// The highest assigned keys by table, as in `sqlite_sequence`.
  var sequences: [String: Int64]

  var header: DatabaseHeader?

  var encoding: TextEncoding
}
