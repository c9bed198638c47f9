import ManagedObjectModel
import Platform
import SQLiteFormat

extension Examiner {
  /// Opens the database as far as header or remains allow.
  func openDatabase(_ bytes: StoreBytes, _ examination: inout Examination) throws -> Database? {
    let head = try bytes.main.bytes(at: 0, length: FileKind.sampleLength)
    let kind = FileKind(firstBytes: head)
    examination.health.fileKind = kind
    let header = DatabaseHeader(head)
    if kind == .database, header?.pageSize != nil {
      guard try isEncryptedBehindHeader(bytes, head) else { return try bytes.database() }
      examination.give(.unavailable, .encryptedOrRandom)
      return nil
    }
    if bytes.main.count > 0, let database = try bytes.databaseWithFirstPageElsewhere() {
      // With a file of zeros, only its log or journal remains.
      if kind == .zeros, try bytes.isMainBlank() { examination.markDamaged(.blank(.zeros, hasPagesElsewhere: true)) }
      examination.health.note(
        "header-superseded", .warning,
        "the file's own first page is damaged, but a whole one stands in its write-ahead log or journal")
      return database
    }
    if kind == .writeAheadLog, bytes.log == nil {
      // A log named without its store.
      examination.markDamaged(.notSQLite(kind))
      return try StoreBytes(main: MemoryBytes([]), log: bytes.main, superJournalExists: bytes.superJournalExists)
        .databaseOfLogAlone()
    }
    if kind == .empty || kind == .zeros, try bytes.hasPagesElsewhere(), try bytes.isMainBlank() {
      examination.markDamaged(.blank(kind, hasPagesElsewhere: true))
      return try bytes.databaseOfLogAlone()
    }
    return try openHeaderless(bytes, kind, header, &examination)
  }

  /// Returns whether all but the header is encrypted, as by SQLCipher for systems that read headers.
  private func isEncryptedBehindHeader(_ bytes: StoreBytes, _ head: [UInt8]) throws -> Bool {
    let behind = Array(head.dropFirst(DatabaseHeader.length))
    guard FileKind.looksRandom(behind), try RandomContent.fills(bytes.main, from: Int64(DatabaseHeader.length)),
      try HeaderlessDatabase.anywhere(in: bytes.main, header: nil) == nil
    else { return false }
    return try !bytes.hasPagesElsewhere(readable: true)
  }

  func readContent(
    _ database: Database, into examination: inout Examination, model: AppModel?
  ) throws(FileError) -> Schema {
    let schema = try database.schema()
    examination.health.add(schema.findings)
    if schema.findings.hasDamage {
      examination.markDamaged(.damage("schema-damaged", "The list of tables on the store's first pages is damaged."))
    }
    try checkRoots(of: schema, in: database, examination: &examination)
    try askSQLite(about: schema, of: database, &examination)
    let isCoreData = schema.table(named: "Z_PRIMARYKEY") != nil || schema.table(named: "Z_METADATA") != nil
    if isCoreData {
      examination.kind = .coreData
      try readCoreData(database, schema, into: &examination, model: model)
    } else {
      examination.kind = schema.entries.isEmpty && examination.verdict == .damaged ? .unknown : .sqlite
      judgePlain(schema, into: &examination, model: model)
    }
    examination.entities = Self.entities(of: schema, examination)
    examination.unchecked = Unchecked.all(in: schema)
    return schema
  }

  private func checkRoots(of schema: Schema, in database: Database, examination: inout Examination) throws(FileError) {
    let findings = try database.rootFindings(of: schema)
    guard !findings.isEmpty else { return }
    examination.health.add(findings)
    examination.markDamaged(
      .damage(
        "roots-damaged",
        findings.total == 1
          ? "One table or index of the store does not begin where its schema says."
          : "\(grouped(findings.total)) of the store's tables and indexes do not begin where its schema says."))
  }

  // MARK: Core Data

  private func readCoreData(
    _ database: Database, _ schema: Schema, into examination: inout Examination, model: AppModel?
  ) throws(FileError) {
    let cached = try cachedModel(database, schema, &examination)
    examination.storeModel = cached
    guard let table = schema.table(named: "Z_METADATA"), table.rootPage > 0 else {
      examination.markMetadataDamaged("The table with the store's metadata is missing.", isMissing: true)
      return
    }
    var rows = try database.rows(root: table.rootPage, payloadLimit: Self.blobLimit)
    guard let row = try rows.next(), let values = table.tableDefinition?.values(of: row) else {
      examination.health.add(rows.findings)
      examination.markMetadataDamaged("The store's metadata cannot be found.", isMissing: true)
      return
    }
    let columns = table.tableDefinition
    if columns?.column(named: "Z_UUID") == nil {
      examination.markMetadataDamaged(
        "The store's metadata has no column for the store's identifier, which nothing else shows.")
    }
    let uuid = columns?.column(named: "Z_UUID").flatMap { values[safe: $0]?.string } ?? ""
    let list = columns?.column(named: "Z_PLIST").flatMap { values[safe: $0]?.bytes } ?? []
    do {
      examination.metadata = try StoreMetadata(uuid: uuid, propertyList: list)
    } catch {
      examination.markMetadataDamaged("The store's metadata cannot be read: \(error.detail).")
      return
    }
    try judgeCoreData(database, schema, into: &examination, model: model)
  }

  /// Real metadata and model caches are far smaller.
  static let blobLimit = 64 << 20

  private func cachedModel(
    _ database: Database, _ schema: Schema, _ examination: inout Examination
  ) throws(FileError) -> ManagedObjectModel? {
    guard let table = schema.table(named: "Z_MODELCACHE"), table.rootPage > 0 else { return nil }
    var rows = try database.rows(root: table.rootPage, payloadLimit: Self.blobLimit)
    guard let row = try rows.next(), let values = table.tableDefinition?.values(of: row),
      let bytes = table.tableDefinition?.column(named: "Z_CONTENT").flatMap({ values[safe: $0]?.bytes })
    else { return nil }
    do {
      return try ManagedObjectModel(modelCache: bytes)
    } catch {
      examination.health.note(
        "model-cache-unreadable", .warning, "the model that the store carries cannot be read (\(error.detail))")
      return nil
    }
  }

  /// Returns a layout; nil leaves the tables listed as they are.
  static func layout(of model: ManagedObjectModel) -> StoreLayout? { try? StoreLayout(model) }

  /// Returns the uncounted entities of Core Data stores or tables of others.
  static func entities(of schema: Schema, _ examination: Examination) -> [EntityCount] {
    countings(of: schema, examination).map { .init(name: $0.name, table: $0.table) }
  }

  struct Counting {
    let name: String
    let table: String

    var root: EntityLayout?
  }

  static func countings(of schema: Schema, _ examination: Examination) -> [Counting] {
    var countings: [Counting] = []
    if examination.kind == .coreData, let model = examination.storeModel, let layout = layout(of: model) {
      countings = layout.entities.map { entity in
        Counting(name: entity.name, table: entity.tableName, root: layout.entity(named: entity.rootName))
      }
    } else {
      // Shadow tables count once, under their virtual table.
      var shadows: [String: String?] = [:]
      for entry in schema.tables {
        guard let module = entry.tableDefinition?.module else { continue }
        for name in ShadowTables.names(of: entry.name, module: module) { shadows[name] = .some(nil) }
        if let rows = ShadowTables.rows(of: entry.name, module: module) { shadows[rows] = entry.name }
      }
      for table in schema.tables where !table.name.hasPrefix("sqlite_") && table.rootPage > 0 {
        if let virtual = shadows[table.name.lowercased()] {
          if let virtual { countings.append(Counting(name: virtual, table: table.name)) }
          continue
        }
        let isBookkeeping = ["Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"].contains(table.name)
        if examination.kind == .coreData, isBookkeeping { continue }
        countings.append(Counting(name: table.name, table: table.name))
      }
    }
    return countings.ordered { $0.name < $1.name }
  }
}

extension Array {
  fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}
