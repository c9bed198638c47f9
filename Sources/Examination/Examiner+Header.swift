import SQLiteFormat
import StoreFiles

/// The bytes of a store's files, as far as a reader looks at them.
struct StoreBytes {
  var main: any ByteSource
  var log: (any ByteSource)?
  var journal: (any ByteSource)?

  /// Whether the super-journal of that name is there.
  var superJournalExists: ([UInt8]) -> Bool

  /// The database that they are; `pageSize` where it is known better than from them.
  func database(pageSize: Int? = nil) throws(FormatError) -> Database {
    try Database(
      main: main, writeAheadLog: log, rollbackJournal: journal, pageSize: pageSize,
      superJournalExists: superJournalExists)
  }
}

extension Examiner {
  /// Opens the database, as far as its header, or what is left of it, allows; nil where there is nothing to open.
  func openDatabase(_ bytes: StoreBytes, _ examination: inout Examination) throws -> Database? {
    let head = try bytes.main.bytes(at: 0, length: FileKind.sampleLength)
    let kind = FileKind(firstBytes: head)
    examination.health.fileKind = kind
    let header = DatabaseHeader(head)
    if kind == .database, header?.pageSize != nil { return try bytes.database() }
    if let database = try databaseWithFirstPageElsewhere(bytes) {
      examination.health.notes.append(
        HealthNote(
          "header-superseded", .warning,
          "the file's own first page is damaged, but a whole one stands in its write-ahead log or journal"))
      return database
    }
    let remains: HeaderlessDatabase?
    switch kind {
    case .database, .zeros, .encrypted, .other: remains = try HeaderlessDatabase(bytes.main, header: header)
    default: remains = header?.hasUsualFractions == true ? try HeaderlessDatabase(bytes.main, header: header) : nil
    }
    if let header { examination.health.add(header.findings) }
    if kind == .database, let header {
      examination.condemn(.wrongPageSize(header.storedPageSize))
    } else if kind == .database {
      examination.condemn(.cutInHeader(bytes: bytes.main.count))
    } else if let remains {
      examination.condemn(remains.isFirstPageReadable ? .headerDamaged(remains) : .firstPageLost(remains, kind))
    } else {
      examination.condemn(.notSQLite(kind, hasLog: bytes.log.map { $0.count > 0 } ?? false))
    }
    guard let remains else { return nil }
    return try bytes.database(pageSize: remains.pageSize)
  }

  /// The database where its write-ahead log, or a hot journal, has page 1: SQLite then never needs the file's own.
  private func databaseWithFirstPageElsewhere(_ bytes: StoreBytes) throws(FormatError) -> Database? {
    guard bytes.main.count > 0, (bytes.log?.count ?? 0) > 0 || (bytes.journal?.count ?? 0) > 0 else { return nil }
    do throws(FormatError) {
      let database = try bytes.database()
      guard database.isLogApplied || database.isJournalApplied, let header = database.header, header.hasMagic,
        header.pageSize == database.pageSize
      else { return nil }
      return database
    } catch  where error.kind == .notADatabase {
      return nil
    }
  }

  /// The page size that the pages show, where it is a possible one and not that of the header.
  func contradictingPageSize(_ database: Database, _ bytes: StoreBytes) throws(FileError) -> Int? {
    guard let header = database.header, header.hasMagic, header.pageSize == database.pageSize, !database.isLogApplied,
      !database.isJournalApplied, let found = try HeaderlessDatabase(bytes.main, header: nil),
      found.pageSize != database.pageSize, found.isFirstPageReadable, found.treePages > 0
    else { return nil }
    let stated = try HeaderlessDatabase(bytes.main, header: header)
    return found.treePages > stated?.treePages ?? 0 ? found.pageSize : nil
  }
}
