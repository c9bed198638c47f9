package import SQLiteFormat
public import StoreFiles
public import SystemPackage

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
