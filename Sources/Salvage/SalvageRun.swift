internal import ManagedObjectModel
internal import PersistentStore
internal import RecoveryKit
internal import SQLiteFormat
internal import StoreFiles
internal import SystemPackage

/// One salvage, from the evidence to the rows.
struct SalvageRun {
  private let evidence: Evidence
  private let model: SalvageModel?
  private let options: Salvager.Options

  init(evidence: Evidence, model: SalvageModel?, options: Salvager.Options) {
    self.evidence = evidence
    self.model = model
    self.options = options
  }

  /// Writes the rows as they are found.
  ///
  /// - Parameters:
  ///   - output: the new database of rows as found.
  ///   - store: where a new store is to be made that takes all rows it can, so that only the others come into `output`.
  mutating func raw(
    to output: FilePath, store: (path: FilePath, fileSystem: FileSystem)? = nil
  ) throws(SalvageError) -> RawSalvage {
    let (kits, kitRemarks) = try options.kit.kits(in: evidence.fileSystem)
    var find = try found(kits)
    if let unfit = find.unfit { throw unfit }
    let reader = find.reader
    // There is one map of the pages, and it is handed on.
    var crawl = find.crawl
    find.crawl = Crawl(reader: reader, map: PageMap(pageCount: 0), trees: [])
    try place(&crawl)

    let database = try OutputDatabase(output, pageSize: max(4096, reader.pageSize), encoding: reader.layout.encoding)
    try database.execute("BEGIN")
    let total = Int64(crawl.trees.reduce(0) { $0 + $1.leaves.count })
    let tables = try RowTables(crawl, in: database, remembering: crawl.kit == nil ? [] : .doubtedRows)
    // Rows of another model's tables go into this one's by the names of their columns, and not as they are.
    let isForeign = find.foreignModel != nil || find.numbering != nil
    let newStore = try store.map { place throws(SalvageError) in
      try NewStore(
        place.path,
        NewStore.Facts(
          layout: find.expected?.layout, entries: isForeign ? [] : find.entries, header: reader.layout.header,
          encoding: reader.layout.encoding, pageSize: reader.pageSize), in: place.fileSystem)
    }
    try tables.makeTables(in: isForeign ? nil : newStore)
    var done: Int64 = 0
    let outcome = try RowRecovery.run(consume crawl, into: tables, findsDeleted: options.findsDeleted) {
      pages throws(SalvageError) in
      // Each phase may take a while, and whoever waits may want it to end.
      done += Int64(pages)
      try tell(.rows, done, total)
    }
    try find.kit?.verify(outcome, evidence)
    try tell(.rows, done, total)
    if let donor = options.donor {
      var rows = try DonorRows(
        donor, uuid: find.identity.metadata?.uuid ?? find.kit?.kit.storeUUID, kit: find.kit, in: evidence.fileSystem)
      try rows.run(outcome, find.list)
      find.kitRemarks += rows.remarks
    }
    try tables.notes.finish()
    try database.execute("COMMIT")
    try newStore?.finish()
    var report = try SalvageReport(
      outcome, isSchemaWhole: find.isSchemaWhole, list: find.list, evidence: evidence, isLogForeign: find.isLogForeign,
      kit: find.kit)
    if let donor = options.donor {
      report.backup = SalvageReport.BackupUse(
        date: donor.date, id: donor.id, rows: report.entities.reduce(0) { $0 + $1.fromBackup })
    }
    let remarks = try find.remarks + LogIndex.remarks(evidence, reader) + outcome.remarks
    report.remarks += remarks
    report.remarks += reader.layout.otherDatabases.map { "another database begins at byte \($0) of the file" }
    if !remarks.isEmpty || reader.overlay?.isCutOff == true { report.isComplete = false }
    report.remarks += LogIndex.absence(evidence, reader, isCoreData: find.list.isCoreData)
    report.remarks += kitRemarks + find.kitRemarks + find.schemaRemarks
    return RawSalvage(
      report: report, metadata: find.identity.metadata, layout: find.expected?.layout, basis: find.basis,
      foreignModel: find.foreignModel, numbering: find.numbering,
      names: try find.names(), entries: find.entries, header: reader.layout.header,
      encoding: reader.layout.encoding, pageSize: reader.pageSize, store: newStore)
  }

  /// What is to be found, with the log or without it.
  private func found(_ kits: [RecoveryKit]) throws(SalvageError) -> Find {
    var find = try walk(ignoringLog: options.ignoresLog, kits)
    if options.ignoresLog, evidence.log != nil {
      find.isLogForeign = true
      find.remarks.append("the write-ahead log belongs to another database, and was left out")
    }
    if find.crawl.damage > 0, find.reader.overlay?.source == .log {
      // Another database's log makes nonsense of a sound file: then the file alone is better.
      let alone = try walk(ignoringLog: true, kits)
      // A blank file has no damage, since it has no table.
      if alone.crawl.hasListedRows, alone.crawl.damage * 4 < find.crawl.damage {
        find = alone
        find.isLogForeign = true
        find.remarks.append("the write-ahead log seems to belong to another database, and was left out")
      }
    }
    return find
  }

  /// Finds a place for the pages that no tree leads to.
  private func place(_ crawl: inout Crawl) throws(SalvageError) {
    guard crawl.map.pageCount > 0, crawl.trees.count > 1 || Self.hasLeaves(crawl.map) else {
      throw Self.nothing(evidence)
    }
    try tell(.placement, 0, 1)
    crawl.buryCutOffPages()
    try crawl.markFreePages()
    try crawl.buryPagesBehindEnd()
    try crawl.placeOrphans()
  }

  /// What the store's pages are.
  ///
  /// Rows are only read where pages seem to have changed places, or two rows lead to one.
  func survey() throws(SalvageError) -> StoreSurvey {
    let (kits, _) = try options.kit.kits(in: evidence.fileSystem)
    var find = try found(kits)
    var crawl = find.crawl
    let reader = find.reader
    // There is one map of the pages, and it is handed on.
    find.crawl = Crawl(reader: reader, map: PageMap(pageCount: 0), trees: [])
    try place(&crawl)
    let isDamaged =
      crawl.damage > 0 || crawl.map.hasCrossedLinks || crawl.map.contested.count > 0 || !reader.moved.isEmpty
    var apart: Set<CellPlace> = []
    if isDamaged {
      // A file without a name, which is gone when it is closed.
      let database = try OutputDatabase("", pageSize: max(4096, reader.pageSize), encoding: reader.layout.encoding)
      try database.execute("BEGIN")
      let tables = try RowTables(crawl, in: database, remembering: .apartChains)
      try tables.makeTables()
      let outcome = try RowRecovery.claims(consume crawl, into: tables) { _ throws(SalvageError) in
        try tell(.rows, 0, 1)
      }
      apart = tables.apartChains ?? []
      crawl = outcome.crawl
    }
    return StoreSurvey(
      crawl: crawl, layout: find.expected?.layout, entries: find.entries, metadata: find.identity.metadata,
      isDamaged: isDamaged, apart: apart)
  }

  /// What was found on the way from the bytes to the trees.
  private struct Find {
    var numbering: EntityNumbering?
    var storeNames: StoreNames
    var schemaRemarks: [String]
    var reader: PageReader
    var crawl: Crawl
    var list: TreeList
    var isSchemaWhole: Bool
    var identity: StoreIdentity
    var expected: ExpectedSchema?
    var basis: SalvageReport.Rebuild.Basis
    var entries: [SchemaEntry]
    var foreignModel: ManagedObjectModel?
    var remarks: [String] = []
    var isLogForeign = false
    var kit: KitEvidence?
    var kitRemarks: [String] = []

    /// The error to report where the model has nothing of what the store holds.
    var unfit: SalvageError?

    /// What the store calls the tables and columns of the layout that its rows go into.
    func names() throws(SalvageError) -> StoreNames {
      guard let foreignModel, let layout = expected?.layout, let theirs = try ExpectedSchema(foreignModel).layout else {
        return storeNames
      }
      return StoreNames(layout, in: theirs, storeNames)
    }
  }

  /// Looks at every page, finds out which tables there are, and walks their trees from their roots.
  private func walk(ignoringLog: Bool, _ kits: [RecoveryKit]) throws(SalvageError) -> Find {
    let reader = try openPages(ignoringLog: ignoringLog)
    try tell(.survey, 0, Int64(reader.pageCount))
    let map = try PageSurvey.run(reader) { page throws(SalvageError) in
      try tell(.survey, Int64(page), Int64(reader.pageCount))
    }
    var schema = try SchemaSearch.find(reader, map)
    var identity = try StoreIdentity.find(reader, map, schema.entries)
    var kitRemarks: [String] = []
    let kit = try KitEvidence.choose(from: kits, options.scope, reader, identity, schema, &kitRemarks)
    if let kit {
      identity.notedHashes = kit.versionHashes
      if !schema.isWhole { schema.entries = kit.supplemented(schema.entries, pageCount: map.pageCount) }
    }
    let expected = try expectedSchema(identity, schema, reader, map)
    let foreign = foreignModel(identity)
    // A store that is of another model has that one's tables, wherever its rows go.
    var shapes = try foreign.map { model throws(SalvageError) in try ExpectedSchema(model) } ?? expected
    var orders: ColumnOrders?
    var entries = schema.entries
    var schemaRemarks: [String] = []
    let rows = try TableRows.gather(entries, reader, map)
    if let layout = shapes?.layout {
      if let numbering = try EntityNumbering.find(reader, map, schema.entries, layout) { shapes?.renumber(numbering) }
      if var expected = shapes {
        var repair = SchemaRepair(entries, isWhole: schema.isWhole, expected: expected, rows: rows)
        if !schema.isWhole {
          orders = try ColumnOrders.settle(
            &expected, found: repair.entries, settled: repair.settled, earlier: earlierLayouts(than: layout.model),
            reader, map, evidence)
          shapes = expected
        }
        repair.complete(by: expected.entries)
        entries = repair.entries
        schemaRemarks = repair.remarks
      }
    }
    var list = TreeList(found: entries, isWhole: schema.isWhole, expected: shapes, rows: rows)
    list.doubt(orders?.doubts ?? [:])
    if options.findsDeleted { list.addDropped(try DroppedTables.find(reader, map)) }
    var crawl = Crawl(reader: reader, map: map, trees: list.trees)
    try crawl.walkRoots()
    if crawl.damage > 0 {
      // Where something is damaged a page may stand in another's place; then each is looked at closely.
      crawl = Crawl(reader: reader, map: map, trees: list.trees)
      crawl.isThorough = true
      try crawl.walkRoots()
    }
    crawl.kit = kit?.kit
    let numbering = shapes?.numbering
    if let numbering {
      schemaRemarks.append(
        "the store numbers its entities in another way than its model would"
          + (numbering.isListed ? "" : "; its list of them is damaged, and its tables were gone by"))
    }
    return Find(
      numbering: numbering, storeNames: shapes?.names ?? StoreNames(), schemaRemarks: schemaRemarks,
      reader: reader, crawl: crawl, list: list, isSchemaWhole: schema.isWhole, identity: identity, expected: expected,
      basis: basis(identity), entries: entries, foreignModel: foreign, kit: kit, kitRemarks: kitRemarks,
      unfit: try ModelFit(model, evidence).problem(identity, schema))
  }

  private func tell(_ phase: SalvagePhase, _ done: Int64, _ total: Int64) throws(SalvageError) {
    guard options.progress(phase, done, total) else { throw .cancelled() }
  }

  private static func hasLeaves(_ map: PageMap) -> Bool {
    (1...map.pageCount).contains { map.look($0) == .tableLeaf || map.look($0) == .indexLeaf }
  }

  private static func nothing(_ evidence: Evidence) -> SalvageError {
    SalvageError(.nothingFound, path: evidence.files.main, detail: "no page of a SQLite database is in it")
  }

  // MARK: Pages

  /// Finds the layout, and what log or journal add to the file.
  func openPages(ignoringLog: Bool) throws(SalvageError) -> PageReader {
    var search = FileLayoutSearch(main: evidence.main)
    var logHeader: WriteAheadLog.Header?
    if let log = evidence.log {
      logHeader = WriteAheadLog.Header(try log.piece(at: 0, length: WriteAheadLog.Header.length))
      if let logHeader, logHeader.isChecksumRight, let size = logHeader.pageSize { search.sizesElsewhere.append(size) }
    }
    var layout = try search.find()
    if layout == nil, let size = logHeader?.pageSize {
      layout = FileLayout(
        pageSize: size, usableSize: size, base: 0, header: nil, encoding: .utf8,
        pageCount: UInt32(clamping: (evidence.main.count + Int64(size) - 1) / Int64(size)))
    }
    guard var layout else { throw Self.nothing(evidence) }
    var overlay: PageOverlay?
    if let journal = evidence.journal {
      overlay = try JournalSurvey.read(journal, pageSize: layout.pageSize, mainHeader: layout.header)
    }
    if overlay == nil, !ignoringLog, let log = evidence.log,
      let found = try LogSurvey.read(log, pageSize: layout.pageSize),
      found.pageSize == layout.pageSize
    {
      overlay = found
    }
    if let overlay, let image = overlay.images[1],
      let source = overlay.source == .log ? evidence.log : evidence.journal,
      let header = DatabaseHeader(try source.piece(at: image.offset, length: DatabaseHeader.length)),
      header.hasMagic, header.pageSize == layout.pageSize
    {
      layout.header = header
      layout.encoding = header.encoding ?? layout.encoding
      layout.usableSize = header.usableSize ?? layout.usableSize
    }
    return PageReader(evidence: evidence, layout: layout, overlay: overlay)
  }

  // MARK: The schema that is to be expected

  private func expectedSchema(
    _ identity: StoreIdentity, _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> ExpectedSchema? {
    switch model {
    case .sqlite(let script): return try ExpectedSchema(script)
    case .coreData(let bundle):
      if let model = knownModel(identity, bundle) { return try ExpectedSchema(model) }
      return try bestFitting(bundle, schema, reader, map)
    case nil:
      guard let model = identity.model(in: nil) else { return nil }
      return try ExpectedSchema(model)
    }
  }

  /// The model that the store says it is of; nil where only one of the bundle's will do and it is none of them.
  private func knownModel(_ identity: StoreIdentity, _ bundle: ModelBundle) -> ManagedObjectModel? {
    guard let model = identity.model(in: bundle) else { return nil }
    return !options.fitsModel || bundle.version(matching: model.versionHashes()) != nil ? model : nil
  }

  /// The model that the store carries where its rows go into another one.
  private func foreignModel(_ identity: StoreIdentity) -> ManagedObjectModel? {
    guard case .coreData(let bundle) = model, knownModel(identity, bundle) == nil else { return nil }
    return identity.model(in: bundle)
  }

  /// The layouts of the versions before one, oldest first; none where nothing tells which came before.
  private func earlierLayouts(than model: ManagedObjectModel) throws(SalvageError) -> [StoreLayout] {
    guard case .coreData(let bundle) = self.model else { return [] }
    let hashes = model.versionHashes()
    guard let own = bundle.version(matching: hashes, identifiers: model.versionIdentifiers, cached: model) else {
      return []
    }
    let earlier = bundle.order.names(from: nil, to: own.name).compactMap { bundle.version(named: $0) }
    var layouts: [StoreLayout] = []
    for version in earlier.suffix(Self.historyLimit) {
      if let layout = try ExpectedSchema(version.model).layout { layouts.append(layout) }
    }
    return layouts
  }

  /// How many earlier versions of a model are looked at.
  private static let historyLimit = 32

  /// How it is known which version the store is of.
  private func basis(_ identity: StoreIdentity) -> SalvageReport.Rebuild.Basis {
    switch model {
    case .sqlite: return .schema
    case .coreData(let bundle):
      guard knownModel(identity, bundle) != nil else { return .bestFit }
      if identity.metadata == nil, identity.cachedModel == nil { return .recoveryKit }
      return identity.metadata.map { bundle.version(matching: $0.versionHashes) != nil } == true
        ? .versionHashes : .modelCache
    case nil: return identity.model(in: nil) == nil ? .asFound : .modelCache
    }
  }

  /// The version whose tables most of a sample of pages fit best; of equally good ones the current one, else the newest.
  private func bestFitting(
    _ bundle: ModelBundle, _ schema: SchemaSearch, _ reader: PageReader, _ map: PageMap
  ) throws(SalvageError) -> ExpectedSchema? {
    var best: (score: Double, schema: ExpectedSchema)?
    var buffer = reader.makeBuffer()
    let leaves = Self.sample(of: map)
    // Where the rows have to go into a version that the app can open, none that is newer than its own will do.
    let possible = options.fitsModel ? bundle.versions(upTo: bundle.current) : bundle.versions
    for version in possible.filter({ !$0.isCurrent }) + possible.filter(\.isCurrent) {
      let expected = try ExpectedSchema(version.model)
      if possible.count == 1 { return expected }
      let list = TreeList(found: schema.entries, isWhole: schema.isWhole, expected: expected)
      let crawl = Crawl(reader: reader, map: map, trees: list.trees)
      // What is left of the store's own list of tables says more than the looks of their rows.
      var score = 1000 * Double(expected.agreement(with: schema.entries))
      for leaf in leaves {
        score += try crawl.choice(for: leaf, &buffer, where: { _ in true })?.score ?? 0
      }
      if score >= best?.score ?? -.infinity { best = (score, expected) }
    }
    return best?.schema
  }

  /// Some of the leaves of tables, from all over the store.
  private static func sample(of map: PageMap) -> [UInt32] {
    let count = (1...max(1, map.pageCount)).count { map.look($0) == .tableLeaf }
    let step = max(1, count / 64)
    var sample: [UInt32] = []
    var number = 0
    for page in 1...max(1, map.pageCount) where map.look(page) == .tableLeaf {
      if number % step == 0 { sample.append(page) }
      number += 1
    }
    return sample
  }
}
