public import Platform
public import SQLiteFormat
public import SystemPackage

/// What a salvage would want to know of a store, noted while the store is healthy: where its tables begin, which pages are
/// theirs and what their bytes add up to, which rowids there are, and how many.
///
/// It holds no value of the user's records: names of the schema, rowids, sums and counts only.
public struct RecoveryKit: Sendable, Hashable {
  /// The number of the form of kits that this version writes, and the latest that it reads.
  public static let currentFormat: UInt8 = 2

  /// When it was made.
  public var date: Timestamp

  /// The identifier of a Core Data store; nil for plain stores.
  public var storeUUID: String?

  /// The generation of the store that it was made of; nil where none was known.
  public var generation: String?

  /// The version hashes of a Core Data store's entities, 32 bytes each; empty for plain stores.
  public var versionHashes: [String: [UInt8]]

  /// How the store's pages are laid out, and how far it had been written.
  public var file: FileFacts

  /// What the store's list of tables says.
  public var entries: [Entry]

  /// The tables, that list itself among them.
  public var tables: [Table]

  /// What a kit knows of the file as a whole.
  public struct FileFacts: Sendable, Hashable {
    /// The page size in bytes.
    public var pageSize: Int

    /// The bytes at the end of each page that SQLite does not use.
    public var reservedBytes: Int

    /// The number of pages.
    public var pageCount: UInt32

    /// The encoding of text.
    public var encoding: TextEncoding

    /// Whether the store has pointer-map pages.
    public var isAutoVacuum: Bool

    /// Whether the store was in write-ahead log mode.
    public var usesWriteAheadLog: Bool

    /// The counter of changes in the header.
    public var changeCounter: UInt32

    /// The counter of changes to the schema.
    public var schemaCookie: UInt32

    /// How far the write-ahead log went; nil where nothing of the store was in it.
    public var log: LogMark?
  }

  /// A place in a write-ahead log.
  public struct LogMark: Sendable, Hashable {
    /// The first salt of the log.
    public var salt1: UInt32

    /// The second salt of the log.
    public var salt2: UInt32

    /// The frames up to the last commit.
    public var frames: UInt32

    /// A place in a log.
    package init(salt1: UInt32, salt2: UInt32, frames: UInt32) {
      self.salt1 = salt1
      self.salt2 = salt2
      self.frames = frames
    }
  }

  /// An entry of the store's list of tables.
  public struct Entry: Sendable, Hashable {
    /// `table`, `index`, `view` or `trigger`.
    public var kind: String

    /// The name.
    public var name: String

    /// The table that it belongs to.
    public var tableName: String

    /// The root page; 0 where it has none.
    public var root: UInt32

    /// The statement that makes it; nil for what SQLite makes by itself.
    public var sql: String?
  }

  /// What a kit knows of a table.
  public struct Table: Sendable, Hashable {
    /// The name.
    public var name: String

    /// The root page.
    public var root: UInt32

    /// Whether its rows have rowids.
    public var hasRowids: Bool

    /// The pages with its rows, in the order of the keys; inner pages of tables without rowids are among them.
    public var leaves: [UInt32]

    /// The sum of each of those pages, in their order; empty for large stores.
    public var sums: [UInt32]

    /// The number of rows.
    public var rows: Int64

    /// Its rows by entity.
    public var groups: [Group]
  }

  /// The rows of one entity in a table.
  public struct Group: Sendable, Hashable {
    /// The entity's number in the store; 0 for a table that is no entity's.
    public var entity: Int64

    /// The number of rows.
    public var rows: Int64

    /// The rowids; nil where there are too many ranges of them, or no rowids.
    public var keys: KeyRanges?
  }
}

extension RecoveryKit {
  /// The number of rows in all tables that are not the store's own books; `Int64.max` stands for that many and more.
  public var rows: Int64 {
    tables.reduce(0) { sum, table in
      let (total, isTooMany) = sum.addingReportingOverflow(table.name.hasPrefix("sqlite_") ? 0 : max(0, table.rows))
      return isTooMany ? .max : total
    }
  }

  /// Whether it has sums of pages.
  public var hasSums: Bool { tables.contains { !$0.sums.isEmpty } }

  /// The table of a name, as SQLite compares names.
  public func table(named name: String) -> Table? {
    let wanted = name.lowercased()
    return tables.first { $0.name.lowercased() == wanted }
  }
}

extension RecoveryKit {
  /// How large a store may be for the sums of its pages to be part of its kit, unless told otherwise: 64 MB.
  public static let defaultSumLimit: Int64 = 64_000_000

  /// Notes a kit of a store that no connection of this process has open.
  ///
  /// The store is only read. Where another process writes to it meanwhile it is read again, a few times.
  ///
  /// - Parameters:
  ///   - store: the main file.
  ///   - sumLimit: the largest store of which pages are summed, in bytes.
  /// - Throws: ``RecoveryKitError``: `store-not-sound` for a damaged store, `store-changed` where it would not rest, or what
  ///   the file system says.
  public init(
    of store: FilePath, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit,
    surroundings: Surroundings = .machine
  ) throws(RecoveryKitError) {
    let fileSystem = surroundings.fileSystem
    let files = try wrapping(RecoveryKitError.init) { () throws(FileError) in
      try StoreFileSet.locate(store, in: fileSystem)
    }
    for _ in 0..<4 {
      let before = try wrapping(RecoveryKitError.init) { () throws(FileError) in try files.members(in: fileSystem) }
      let outcome = Self.attempt(files, sumsUpTo: sumLimit, surroundings)
      let after = try wrapping(RecoveryKitError.init) { () throws(FileError) in try files.members(in: fileSystem) }
      // What was read while the store changed is neither a kit nor a verdict.
      guard after == before else { continue }
      do throws(RecoveryKitError) {
        self = try outcome.get()
        return
      } catch {
        var named = error
        if named.path == nil { named.path = store }
        throw named
      }
    }
    throw RecoveryKitError(
      .storeChanged, operation: "note a recovery kit", path: store, detail: "another process keeps writing to it")
  }

  private static func attempt(
    _ files: StoreFileSet, sumsUpTo limit: Int64, _ surroundings: Surroundings
  ) -> Result<RecoveryKit, RecoveryKitError> {
    do throws(RecoveryKitError) {
      let fileSystem = surroundings.fileSystem
      let lock = try wrapping(RecoveryKitError.init) { () throws(FileError) in
        LockBox(try SharedStoreLock(on: files, in: fileSystem))
      }
      guard let main = lock.file else {
        throw RecoveryKitError(FileError(.notFound, operation: "read the store", path: files.main))
      }
      let log = try part(.wal, of: files, in: fileSystem)
      // The journal of a writer that is alive is not hot: what it is about to write has not reached the file.
      let journal = lock.isWriterActive ? nil : try part(.journal, of: files, in: fileSystem)
      let kit = try read(main: main, log: log, journal: journal, sumsUpTo: limit, at: surroundings.now())
      lock.release()
      return .success(kit)
    } catch {
      return .failure(error)
    }
  }

  /// Notes a kit of a store whose bytes the caller keeps still: a database file, log and journal undone or laid over it.
  ///
  /// - Throws: `store-not-sound` for a damaged one, or what reading says.
  package init(
    reading main: any ByteSource, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit, at date: Timestamp
  ) throws(RecoveryKitError) {
    self = try Self.read(main: main, log: nil, journal: nil, sumsUpTo: sumLimit, at: date)
  }

  /// Notes a kit from the bytes of a store.
  static func read(
    main: any ByteSource, log: (any ByteSource)?, journal: (any ByteSource)?, sumsUpTo limit: Int64, at date: Timestamp
  ) throws(RecoveryKitError) -> RecoveryKit {
    let database = try wrapping(RecoveryKitError.init) { () throws(FormatError) in
      try Database(main: main, writeAheadLog: log, rollbackJournal: journal)
    }
    var survey = KitSurvey(database, sumsUpTo: limit)
    return try survey.run(at: date)
  }

  private static func part(
    _ part: StoreFileSet.Part, of files: StoreFileSet, in fileSystem: FileSystem
  ) throws(RecoveryKitError) -> (any ByteSource)? {
    try wrapping(RecoveryKitError.init) { () throws(FileError) -> (any ByteSource)? in
      guard try fileSystem.status(of: files.path(of: part)) != nil else { return nil }
      let file = try fileSystem.open(files.path(of: part))
      return file.count > 0 ? file : nil
    }
  }
}

/// The making of a kit from the pages that a check of every page shows.
package struct KitGathering {
  private var survey: KitSurvey

  /// Reads everything but the rows.
  ///
  /// - Parameters:
  ///   - main: a database file whose bytes the caller keeps still, and of which every page will be shown.
  ///   - sumLimit: the largest store of which pages are summed, in bytes.
  /// - Throws: `store-not-sound` for a damaged one, or what reading says.
  package init(
    reading main: any ByteSource, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit, at date: Timestamp
  ) throws(RecoveryKitError) {
    let database: Database
    do throws(FormatError) { database = try Database(main: main) } catch { throw RecoveryKitError(error) }
    survey = KitSurvey(database, sumsUpTo: sumLimit)
    try survey.begin(at: date)
  }

  /// Takes a page of a b-tree; those of one tree come one behind the other.
  package mutating func visit(_ page: BTreePage, ofTree root: UInt32) throws(RecoveryKitError) {
    try survey.visit(page, ofTree: root)
  }

  /// The kit, where every page was shown and the check found nothing.
  package mutating func finish() throws(RecoveryKitError) -> RecoveryKit { try survey.finish() }
}

/// Holds a reader's lock until it is released, at the latest when this ends.
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

/// A recovery kit that could not be made, written or read.
public typealias RecoveryKitError = Failure<RecoveryKitErrorKind>

/// Why a recovery kit could not be made, written or read.
public enum RecoveryKitErrorKind: String, FailureKind {
  /// The store is not sound, so that nothing is to be noted of it.
  case storeNotSound = "store-not-sound"

  /// The store changed while it was read.
  case storeChanged = "store-changed"

  /// The file is no kit, or a damaged one.
  case unreadable = "kit-unreadable"

  /// A later version of this library wrote the kit.
  case laterFormat = "kit-later-format"

  /// The kit cannot be packed.
  case packing = "kit-packing"

  /// The file system refused; the code is that of the file error.
  case file = "kit-file"

  /// What was being done, where a failure does not say.
  public static let usualOperation = "note a recovery kit"

  /// What the reader can do next, where a failure does not say.
  public var usualHint: String {
    switch self {
    case .storeNotSound: "Inspect the store with a full check; salvage it where that finds damage."
    case .storeChanged: "Try again when it is at rest."
    case .unreadable: "Use another kit of the store, or none."
    case .laterFormat: "Use the version that wrote it, or an older kit."
    case .packing: "Try again later."
    case .file: "Check the path and its permissions."
    }
  }

  /// Whether the environment is at fault, and not the store.
  public var isEnvironmental: Bool { self == .storeChanged }

  /// Whether the code is that of the file system's error.
  public var standsForCause: Bool { self == .file }
}

extension RecoveryKitError {
  /// The error of a file that could not be read or written.
  package init(_ error: FileError) { self.init(.file, because: error) }

  /// The error of a store that could not be read, or is not sound.
  init(_ error: FormatError) { self.init(error.fileError == nil ? .storeNotSound : .file, because: error) }

  static func notSound(_ detail: String, _ path: FilePath? = nil) -> RecoveryKitError {
    RecoveryKitError(.storeNotSound, path: path, detail: detail)
  }

  static func unreadable(_ path: FilePath?, _ detail: String = "it is no recovery kit, or a damaged one")
    -> RecoveryKitError
  {
    RecoveryKitError(.unreadable, operation: "read the recovery kit", path: path, detail: detail)
  }
}
