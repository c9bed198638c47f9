public import Platform
public import SQLiteFormat
public import SystemPackage

/// Facts about a healthy store for a later salvage: its tables with roots, pages, page checksums, rowids and row
/// counts.
///
/// It has schema names, but no values of the user's records.
public struct RecoveryKit: Sendable, Hashable {
  /// The format version written, and the latest one read.
  public static let currentFormat: UInt8 = 2

  /// The date of creation.
  public var date: Timestamp

  /// The identifier of a Core Data store; nil for plain stores.
  public var storeUUID: String?

  /// The store's generation, if known.
  public var generation: String?

  /// The version hashes of a Core Data store's entities, 32 bytes each.
  public var versionHashes: [String: [UInt8]]

  /// The file's layout and write position.
  public var file: FileFacts

  /// The rows of the schema table.
  public var entries: [Entry]

  /// The tables, including the schema table.
  public var tables: [Table]

  /// Facts about the whole file.
  public struct FileFacts: Sendable, Hashable {
    /// The page size in bytes.
    public var pageSize: Int

    /// The reserved bytes at the end of each page.
    public var reservedBytes: Int

    /// The number of pages.
    public var pageCount: UInt32

    /// The text encoding.
    public var encoding: TextEncoding

    /// Whether the store has pointer map pages.
    public var isAutoVacuum: Bool

    /// Whether the store was in WAL mode.
    public var usesWriteAheadLog: Bool

    /// The header's file change counter.
    public var changeCounter: UInt32

    /// The header's schema cookie.
    public var schemaCookie: UInt32

    /// The position in the write-ahead log, if in use.
    public var log: LogMark?
  }

  /// A position in a write-ahead log.
  public struct LogMark: Sendable, Hashable {
    /// The log's first salt.
    public var salt1: UInt32

    /// The log's second salt.
    public var salt2: UInt32

    /// The number of frames up to the last commit.
    public var frames: UInt32
  }

  /// A row of the schema table.
  public struct Entry: Sendable, Hashable {
    /// `table`, `index`, `view` or `trigger`.
    public var kind: String

    /// The name.
    public var name: String

    /// The table that it belongs to.
    public var tableName: String

    /// The root page, or 0.
    public var root: UInt32

    /// The CREATE statement; nil for automatic indexes.
    public var sql: String?
  }

  /// Facts about a table.
  public struct Table: Sendable, Hashable {
    /// The name.
    public var name: String

    /// The root page.
    public var root: UInt32

    /// Whether its rows have rowids.
    public var hasRowids: Bool

    /// The pages with rows in key order, including interior pages of WITHOUT ROWID tables.
    public var leaves: [UInt32]

    /// The checksums of these pages; empty for large stores.
    public var sums: [UInt32]

    /// The number of rows.
    public var rows: Int64

    /// Its rows by entity.
    public var groups: [Group]
  }

  /// The rows of one entity in a table.
  public struct Group: Sendable, Hashable {
    /// The entity number in the store; 0 for tables without entities.
    public var entity: Int64

    /// The number of rows.
    public var rows: Int64

    /// The rowids; nil without rowids or with too many ranges.
    public var keys: KeyRanges?
  }
}

extension RecoveryKit {
  /// The number of rows outside SQLite's internal tables, at most `Int64.max`.
  public var rows: Int64 {
    tables.reduce(0) { sum, table in
      let (total, isTooMany) = sum.addingReportingOverflow(table.name.hasPrefix("sqlite_") ? 0 : max(0, table.rows))
      return isTooMany ? .max : total
    }
  }

  /// Whether it has page checksums.
  public var hasSums: Bool { tables.contains { !$0.sums.isEmpty } }

  /// Finds a table by name, ignoring case like SQLite.
  public func table(named name: String) -> Table? {
    let wanted = name.lowercased()
    return tables.first { $0.name.lowercased() == wanted }
  }
}

extension RecoveryKit {
  /// The default size limit for page checksums: stores up to 64 MB.
  public static let defaultSumLimit: Int64 = 64_000_000

  /// Creates a kit of a store that this process doesn't have open.
  ///
  /// The store is only read, again if another process writes to it meanwhile.
  ///
  /// - Parameters:
  ///   - store: the main file.
  ///   - sumLimit: the largest store with page checksums, in bytes.
  /// - Throws: ``SalvageError``: `store-not-sound` for a damaged store, `store-changed` if writes don't cease, or a
  ///   file system error.
  public init(
    of store: FilePath, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit,
    surroundings: Surroundings = .machine
  ) throws {
    let fileSystem = surroundings.fileSystem
    let files = try StoreFileSet.locate(store, in: fileSystem)
    for _ in 0..<4 {
      let before = try files.members(in: fileSystem)
      let outcome = Self.attempt(files, sumsUpTo: sumLimit, surroundings)
      let after = try files.members(in: fileSystem)
      // Results from a changing store are unreliable.
      guard after == before else { continue }
      do {
        self = try outcome.get()
        return
      } catch {
        var named = SalvageError(kit: error)
        if named.path == nil { named.path = store }
        throw named
      }
    }
    throw SalvageError(
      .storeChanged, operation: "note a recovery kit", path: store, detail: "another process keeps writing to it")
  }

  private static func attempt(
    _ files: StoreFileSet, sumsUpTo limit: Int64, _ surroundings: Surroundings
  ) -> Result<RecoveryKit, SalvageError> {
    do {
      let fileSystem = surroundings.fileSystem
      let lock = LockBox(try SharedStoreLock(on: files, in: fileSystem))
      guard let main = lock.file else {
        throw SalvageError(FileError(.notFound, operation: "read the store", path: files.main))
      }
      let log = try part(.wal, of: files, in: fileSystem)
      // An active writer's journal isn't hot: the changes haven't reached the file.
      let journal = lock.isWriterActive ? nil : try part(.journal, of: files, in: fileSystem)
      let kit = try read(main: main, log: log, journal: journal, sumsUpTo: limit, at: surroundings.now())
      lock.release()
      return .success(kit)
    } catch {
      return .failure(SalvageError(kit: error))
    }
  }

  /// Creates a kit from an unchanging database file with log and journal applied.
  ///
  /// - Throws: `store-not-sound` for a damaged one, or a read error.
  package init(
    reading main: any ByteSource, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit, at date: Timestamp
  ) throws {
    self = try Self.read(main: main, log: nil, journal: nil, sumsUpTo: sumLimit, at: date)
  }

  static func read(
    main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?, sumsUpTo limit: Int64, at date: Timestamp
  ) throws -> RecoveryKit {
    let database = try Database(main: main, writeAheadLog: log, rollbackJournal: journal)
    var survey = KitSurvey(database, sumsUpTo: limit)
    return try survey.run(at: date)
  }

  private static func part(
    _ part: StoreFileSet.Part, of files: StoreFileSet, in fileSystem: FileSystem
  ) throws -> (any ByteSource)? {
    guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
    let file = try fileSystem.open(files.path(of: part))
    return file.count > 0 ? file : nil
  }
}

/// Builds a kit from the pages of an integrity check.
package struct KitGathering {
  private var survey: KitSurvey

  /// Reads everything except rows.
  ///
  /// - Parameters:
  ///   - main: an unchanging database file.
  ///   - sumLimit: the largest store with page checksums, in bytes.
  /// - Throws: `store-not-sound` for a damaged one, or a read error.
  package init(
    reading main: any ByteSource, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit, at date: Timestamp
  ) throws {
    let database = try Database(main: main)
    survey = KitSurvey(database, sumsUpTo: sumLimit)
    try survey.begin(at: date)
  }

  /// Adds a b-tree page; each tree's pages must come together.
  package mutating func visit(_ page: BTreePage, ofTree root: UInt32) throws {
    try survey.visit(page, ofTree: root)
  }

  /// Returns the kit after a check without findings.
  package mutating func takeKit() throws -> RecoveryKit { try survey.takeKit() }
}

private final class LockBox {
  private var lock: SharedStoreLock?
  let isWriterActive: Bool
  let file: LastingFile?

  init(_ lock: consuming SharedStoreLock) {
    isWriterActive = lock.isWriterActive
    file = lock.file
    self.lock = consume lock
  }

  func release() { lock = nil }
}

extension SalvageError {
  /// Wraps an error of reading files or pages for a recovery kit.
  package init(kit error: any Error) {
    switch error {
    case let error as SalvageError: self = error
    case let error as FileError: self.init(error.fileError == nil ? .storeNotSound : .file, because: error)
    case let error as any ReportableError: self.init(.storeNotSound, because: error)
    default: self = .notSound("an unforeseen failure")
    }
  }

  static func notSound(_ detail: String, _ path: FilePath? = nil) -> SalvageError {
    SalvageError(.storeNotSound, path: path, detail: detail)
  }

  static var unreadableKit: SalvageError {
    SalvageError(
      .kitUnreadable, operation: "read the recovery kit", detail: "it is no recovery kit, or a damaged one")
  }
}
