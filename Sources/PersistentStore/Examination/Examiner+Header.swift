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
    if let database = try databaseWithFirstPageElsewhere(bytes) {
      // With a file of zeros, only its log or journal remains.
      if kind == .zeros, try bytes.isMainBlank() { examination.markDamaged(.blank(.zeros, hasPagesElsewhere: true)) }
      examination.health.notes.append(
        HealthNote(
          "header-superseded", .warning,
          "the file's own first page is damaged, but a whole one stands in its write-ahead log or journal"))
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

  private func openHeaderless(
    _ bytes: StoreBytes, _ kind: FileKind, _ header: DatabaseHeader?, _ examination: inout Examination
  ) throws -> Database? {
    // Another format may embed a database; only a file full of pages is one.
    let remains =
      kind.hasSignature
      ? try HeaderlessDatabase(bytes.main, header: nil).flatMap { $0.isMostlyPages ? $0 : nil }
      : try HeaderlessDatabase.anywhere(in: bytes.main, header: header)
    if remains == nil, try markForeign(bytes, kind, &examination) { return nil }
    if let header { examination.health.add(header.findings) }
    if kind == .database, let header {
      examination.markDamaged(.wrongPageSize(header.storedPageSize))
    } else if kind == .database {
      examination.markDamaged(.cutInHeader(bytes: bytes.main.count))
    } else if let remains {
      examination.markDamaged(remains.isFirstPageReadable ? .headerDamaged(remains) : .firstPageLost(remains, kind))
    } else if kind == .empty || kind == .zeros {
      examination.markDamaged(.blank(kind, hasPagesElsewhere: false))
    } else {
      examination.markDamaged(.notSQLite(kind))
    }
    guard let remains else { return nil }
    return try bytes.database(pageSize: remains.pageSize)
  }

  /// Sets the verdict for an encrypted or foreign file and returns whether it did; its header is meaningless.
  private func markForeign(
    _ bytes: StoreBytes, _ kind: FileKind, _ examination: inout Examination
  ) throws -> Bool {
    if kind.isForeign, try !bytes.hasPagesElsewhere() {
      examination.health.notes.append(
        HealthNote("not-sqlite", .damage, "the file is no SQLite database: it is \(kind.words)"))
      examination.markDamaged(.foreign(kind))
      return true
    }
    guard kind == .encrypted, try RandomContent.fills(bytes.main, from: 0), try !bytes.hasPagesElsewhere(readable: true)
    else { return false }
    examination.give(.unavailable, .encryptedOrRandom)
    return true
  }

  /// Returns whether all but the header is encrypted, as by SQLCipher for systems that read headers.
  private func isEncryptedBehindHeader(_ bytes: StoreBytes, _ head: [UInt8]) throws -> Bool {
    let behind = Array(head.dropFirst(DatabaseHeader.length))
    guard FileKind.looksRandom(behind), try RandomContent.fills(bytes.main, from: Int64(DatabaseHeader.length)),
      try HeaderlessDatabase.anywhere(in: bytes.main, header: nil) == nil
    else { return false }
    return try !bytes.hasPagesElsewhere(readable: true)
  }

  /// Returns the database if its log or hot journal has page 1: SQLite then never needs the file's own.
  private func databaseWithFirstPageElsewhere(_ bytes: StoreBytes) throws(FileError) -> Database? {
    guard bytes.main.count > 0, (bytes.log?.count ?? 0) > 0 || (bytes.journal?.count ?? 0) > 0 else { return nil }
    do throws(FileError) {
      let database = try bytes.database()
      guard database.isLogApplied || database.isJournalApplied, let header = database.header, header.hasMagic,
        header.pageSize == database.pageSize
      else { return nil }
      return database
    } catch  where error.kind == .notADatabase {
      return nil
    }
  }

  /// Returns the pages' valid size if the header differs.
  func contradictingPageSize(_ database: Database, _ bytes: StoreBytes) throws(FileError) -> Int? {
    guard let header = database.header, header.hasMagic, header.pageSize == database.pageSize, !database.isLogApplied,
      !database.isJournalApplied, let found = try HeaderlessDatabase(bytes.main, header: nil),
      found.pageSize != database.pageSize, found.isFirstPageReadable, found.treePages > 0
    else { return nil }
    let stated = try HeaderlessDatabase(bytes.main, header: header)
    return found.treePages > stated?.treePages ?? 0 ? found.pageSize : nil
  }
}

extension Examiner {
  func readContent(
    _ database: Database, into examination: inout Examination, model: AppModel?
  ) throws(FileError) -> Schema {
    let schema = try database.schema()
    examination.health.add(schema.findings)
    if schema.findings.hasDamage {
      examination.markDamaged(
        .damage("schema-damaged", "The list of tables on the store's first pages is damaged."))
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

  private func checkRoots(
    of schema: Schema, in database: Database, examination: inout Examination
  ) throws(FileError) {
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
      examination.markDamaged(
        .damage("metadata-missing", "The table with the store's metadata is missing.", sqlite: nil))
      return
    }
    var rows = try database.rows(root: table.rootPage, payloadLimit: Self.blobLimit)
    guard let row = try rows.next(), let values = table.tableDefinition?.values(of: row) else {
      examination.health.add(rows.findings)
      examination.markDamaged(.damage("metadata-missing", "The store's metadata cannot be found.", sqlite: nil))
      return
    }
    let columns = table.tableDefinition
    if columns?.column(named: "Z_UUID") == nil {
      examination.markDamaged(
        .damage(
          "metadata-damaged",
          "The store's metadata has no column for the store's identifier, which nothing else shows.",
          sqlite: nil))
    }
    let uuid = columns?.column(named: "Z_UUID").flatMap { values[safe: $0]?.string } ?? ""
    let list = columns?.column(named: "Z_PLIST").flatMap { values[safe: $0]?.bytes } ?? []
    do {
      examination.metadata = try StoreMetadata(uuid: uuid, propertyList: list)
    } catch {
      examination.markDamaged(
        .damage("metadata-damaged", "The store's metadata cannot be read: \(error.detail).", sqlite: nil))
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
      examination.health.notes.append(
        HealthNote(
          "model-cache-unreadable", .warning, "the model that the store carries cannot be read (\(error.detail))"))
      return nil
    }
  }

  /// Returns a layout; nil leaves the tables listed as they are.
  static func layout(of model: ManagedObjectModel) -> StoreLayout? { try? StoreLayout(model) }
}

extension Array {
  fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

/// Detection of bytes without a pattern, as encryption produces.
enum RandomContent {
  /// Enough for byte statistics.
  private static let pieceLength = 4096

  private static let pieceLimit: Int64 = 64

  /// Returns whether evenly spread pieces all look random.
  ///
  /// One patterned piece, such as zeros, or fewer than 1024 bytes give false.
  static func fills(_ file: some ByteSource, from start: Int64) throws(FileError) -> Bool {
    let last = max(start, file.count - Int64(pieceLength))
    let count = min(pieceLimit, (file.count - start + Int64(pieceLength) - 1) / Int64(pieceLength))
    guard count > 0 else { return false }
    for index in 0..<count {
      let offset = count == 1 ? start : start + (last - start) / (count - 1) * index
      guard FileKind.looksRandom(try file.bytes(at: offset, length: pieceLength)) else { return false }
    }
    return true
  }
}
