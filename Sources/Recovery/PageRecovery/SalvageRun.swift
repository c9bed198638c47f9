internal import PersistentStore
internal import RecoveryKit
internal import SQLiteFormat
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
