internal import StoreFiles

extension SalvageReport {
  /// The report on the rows as they were found.
  init(
    _ outcome: RowOutcome, isSchemaWhole: Bool, list: TreeList, evidence: Evidence, isLogForeign: Bool,
    isJournalForeign: Bool, kit: KitEvidence?
  ) throws(SalvageError) {
    entities = try EntityAccounts(outcome: outcome, list: list, kit: kit).all()
      .ordered { ($0.name, $0.table) < ($1.name, $1.table) }
    isCoreData = list.isCoreData
    pages = PageStates(outcome)
    mayLackTables = !isSchemaWhole && !outcome.crawl.hasAllTables || outcome.crawl.lacksUnknownTable
    unplacedRows = outcome.unplacedRows
    unplacedEntries = outcome.unplacedEntries
    remarks = outcome.reader.overlay?.remarks ?? []
    let layout = outcome.reader.layout
    if layout.isGuessed {
      remarks.append("the file's header is destroyed; its layout was found by the looks of its pages")
    }
    if layout.base > 0 { remarks.append("the database begins at byte \(layout.base) of the file") }
    if !isSchemaWhole { remarks.append("the list of tables is damaged") }
    isComplete =
      !entities.contains { $0.hasLosses || $0.doubtful > 0 || $0.keptApart > 0 || $0.fromBackup > 0 }
      && unplacedRows == 0 && unplacedEntries == 0 && isSchemaWhole
    var search = CauseSearch(
      outcome, evidence: evidence, isLogForeign: isLogForeign, isJournalForeign: isJournalForeign)
    causes = try search.run(hasLosses: entities.contains(where: \.hasLosses))
    self.kit = kit?.use
  }
}
