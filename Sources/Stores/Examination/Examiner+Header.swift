import SQLiteFormat
import StoreFiles

/// The bytes of a store's files, as far as a reader looks at them.
struct StoreBytes {
  var main: any ByteSource
  var log: (any ByteSource)?

  /// The log's index as it was before the log was read; nil where there is none that can be read.
  var logIndex: WriteAheadLogIndex?

  /// Whether another process has the log open, so that the index is as it left it.
  var isLogInUse = false
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
    if kind == .database, header?.pageSize != nil {
      guard try isEncryptedBehindHeader(bytes, head) else { return try bytes.database() }
      examination.give(.unavailable, .encryptedOrRandom)
      return nil
    }
    if let database = try databaseWithFirstPageElsewhere(bytes) {
      // Where nothing else is in the file either, its log or journal alone is left of the store.
      if kind == .zeros, try bytes.isMainBlank() { examination.condemn(.blank(.zeros, hasPagesElsewhere: true)) }
      examination.health.notes.append(
        HealthNote(
          "header-superseded", .warning,
          "the file's own first page is damaged, but a whole one stands in its write-ahead log or journal"))
      return database
    }
    if kind == .writeAheadLog, bytes.log == nil {
      // It is given by itself, and not as the log of the store that it is a part of.
      examination.condemn(.notSQLite(kind))
      return try StoreBytes(main: MemoryBytes([]), log: bytes.main, superJournalExists: bytes.superJournalExists)
        .databaseOfLogAlone()
    }
    if kind == .empty || kind == .zeros, try bytes.hasPagesElsewhere(), try bytes.isMainBlank() {
      examination.condemn(.blank(kind, hasPagesElsewhere: true))
      return try bytes.databaseOfLogAlone()
    }
    return try openHeaderless(bytes, kind, header, &examination)
  }

  /// Opens a database by what its pages are like; nil where there are none, which the verdict then says.
  private func openHeaderless(
    _ bytes: StoreBytes, _ kind: FileKind, _ header: DatabaseHeader?, _ examination: inout Examination
  ) throws -> Database? {
    // Another format may hold a database as a part of it; only a file full of pages is one.
    let remains =
      kind.hasSignature
      ? try HeaderlessDatabase(bytes.main, header: nil).flatMap { $0.isMostlyPages ? $0 : nil }
      : try HeaderlessDatabase.anywhere(in: bytes.main, header: header)
    if remains == nil, try condemnForeign(bytes, kind, &examination) { return nil }
    if let header { examination.health.add(header.findings) }
    if kind == .database, let header {
      examination.condemn(.wrongPageSize(header.storedPageSize))
    } else if kind == .database {
      examination.condemn(.cutInHeader(bytes: bytes.main.count))
    } else if let remains {
      examination.condemn(remains.isFirstPageReadable ? .headerDamaged(remains) : .firstPageLost(remains, kind))
    } else if kind == .empty || kind == .zeros {
      examination.condemn(.blank(kind, hasPagesElsewhere: false))
    } else {
      examination.condemn(.notSQLite(kind))
    }
    guard let remains else { return nil }
    return try bytes.database(pageSize: remains.pageSize)
  }

  /// Gives the verdict on a file without a page that is plainly of another kind, or that is encrypted; false for others.
  ///
  /// What a database's header would say is nothing to tell of such a file.
  private func condemnForeign(
    _ bytes: StoreBytes, _ kind: FileKind, _ examination: inout Examination
  ) throws -> Bool {
    if kind.isForeign, try !bytes.hasPagesElsewhere() {
      examination.health.notes.append(
        HealthNote("not-sqlite", .damage, "the file is no SQLite database: it is \(kind.words)"))
      examination.condemn(.foreign(kind))
      return true
    }
    guard kind == .encrypted, try RandomContent.fills(bytes.main, from: 0), try !bytes.hasPagesElsewhere(readable: true)
    else { return false }
    examination.give(.unavailable, .encryptedOrRandom)
    return true
  }

  /// Whether all but the header is encrypted, as SQLCipher leaves it for systems that look at headers.
  private func isEncryptedBehindHeader(_ bytes: StoreBytes, _ head: [UInt8]) throws -> Bool {
    let behind = Array(head.dropFirst(DatabaseHeader.length))
    guard FileKind.looksRandom(behind), try RandomContent.fills(bytes.main, from: Int64(DatabaseHeader.length)),
      try HeaderlessDatabase.anywhere(in: bytes.main, header: nil) == nil
    else { return false }
    return try !bytes.hasPagesElsewhere(readable: true)
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
