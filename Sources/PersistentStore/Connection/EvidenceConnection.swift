internal import CSQLite
internal import Foundation
package import GRDB
internal import GRDBSQLite
internal import Platform
package import SystemPackage

/// The one place where SQLite is let at a file that others made: evidence, a copy of it, a backup, what was received, what is
/// browsed or checked.
///
/// What the file's schema declares does not run: its triggers and views are off, its functions are SQLite's harmless ones,
/// checks are not evaluated, and nothing can be written into the schema. Limits bound what is left. The store that the app
/// opens is not opened like this: derived attributes are triggers.
package enum EvidenceConnection {
  /// What stands at the path, and what SQLite may do to it.
  package enum Access: Sendable {
    /// A file that does not change meanwhile: it is read without locks, and nothing is made beside it.
    case unchanging

    /// A private copy: SQLite may bring its log in, or undo its journal.
    case copy

    /// A store in use: it is only read, with its locks; a connection that may not write would leave files behind.
    case inUse

    /// A new file, for what is taken out of others that are attached.
    case new

    /// The parameters of SQLite's URI.
    package var parameters: String {
      switch self {
      case .unchanging: "mode=ro&immutable=1"
      case .copy, .inUse: "mode=rw"
      case .new: "mode=rwc"
      }
    }
  }

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: the main file; a log beside it is read unless it is `unchanging`.
  ///   - label: who works with it, for debugging.
  ///   - cacheKilobytes: the size of the cache of pages.
  ///   - others: the files that the connection attaches.
  ///   - temporaryBytes: the most bytes that the temporary files of all connections with the same limit have together; a
  ///     statement that needs more ends with `SQLITE_INTERRUPT`. No limit if nil.
  ///   - prepare: done with the connection besides, such as adding functions.
  package static func open(
    _ path: FilePath, _ access: Access, label: String, cacheKilobytes: Int = 2000, attaching others: [FilePath] = [],
    temporaryBytes: Int64? = nil, prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    let bytes = content(of: [path] + others)
    var configuration = configuration(label, cacheKilobytes, others.count, bytes, prepare)
    configuration.readonly = access == .unchanging
    if access == .inUse { configuration.busyMode = .timeout(1) }
    var address = address(path, access)
    if let temporaryBytes {
      guard let fileSystem = TemporaryFiles.fileSystem(limit: temporaryBytes) else {
        throw DatabaseError(resultCode: .SQLITE_ERROR, message: "this SQLite takes no virtual file system")
      }
      address += "&vfs=\(fileSystem)"
    }
    return try DatabaseQueue(path: address, configuration: configuration)
  }

  /// Opens a virtual file, whose file system has no temporary files: what statements need besides is in memory.
  package static func open(
    _ file: VirtualFile, label: String, cacheKilobytes: Int = 2000,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    var configuration = configuration(label, cacheKilobytes, 0, file.count, temporary: "MEMORY", prepare)
    configuration.readonly = true
    return try DatabaseQueue(path: file.address, configuration: configuration)
  }

  /// Makes a file for what is taken out of a virtual one, which the connection attaches by its address.
  package static func open(
    new path: FilePath, label: String, cacheKilobytes: Int = 2000, attaching other: VirtualFile,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    try DatabaseQueue(
      path: address(path, .new), configuration: configuration(label, cacheKilobytes, 1, other.count, prepare))
  }

  /// Opens a connection to nothing but the files that it attaches, by ``address(_:_:)``.
  package static func open(
    attaching others: [FilePath], label: String, cacheKilobytes: Int = 2000,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    try DatabaseQueue(
      configuration: configuration(label, cacheKilobytes, others.count, content(of: others), prepare))
  }

  /// The address of a file as SQLite's URI, whatever bytes its name holds.
  package static func address(_ path: FilePath, _ access: Access) -> String {
    PersistentStore.escaped(path) + "?" + access.parameters
  }

  private static func configuration(
    _ label: String, _ cacheKilobytes: Int, _ attached: Int, _ bytes: Int64, temporary: String = "FILE",
    _ prepare: @escaping @Sendable (Database) throws -> Void
  ) -> Configuration {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // What fails leaves its transaction open, and the connection is closed with it.
    configuration.allowsUnsafeTransactions = true
    configuration.label = label
    configuration.prepareDatabase { database in
      try harden(database, holding: bytes, attached: attached)
      try prepare(database)
      try database.execute(
        sql: "PRAGMA cache_size = -\(cacheKilobytes); PRAGMA temp_store = \(temporary); PRAGMA mmap_size = 0")
    }
    return configuration
  }

  /// The bytes of files with what may lie in their logs.
  ///
  /// What cannot be looked at counts as nothing here: opening it says why.
  package static func content(of files: [FilePath]) -> Int64 {
    files.reduce(0) { sum, file in
      let sizes = [file, file.sibling(suffix: "-wal")].map { (try? FileSystem().status(of: $0))??.size ?? 0 }
      return sizes.reduce(sum) { $0.addingReportingOverflow(max(0, $1)).overflow ? .max : $0 + max(0, $1) }
    }
  }

  /// The limit of a piece of work with files: half a minute, and a second for each MB that they hold.
  ///
  /// Whatever SQLite does with whole tables is done by then, unless the files were made to take longer.
  package static func limit(
    for files: [FilePath], isCancelled: (() -> Bool)? = nil
  ) -> StatementLimit {
    StatementLimit(time: time(for: content(of: files)), isCancelled: isCancelled)
  }

  /// The same limit for a virtual file; what its bytes let SQLite wait does not count.
  package static func limit(for file: VirtualFile, isCancelled: (() -> Bool)? = nil) -> StatementLimit {
    StatementLimit(time: time(for: file.count), isCancelled: isCancelled, waited: file.waited)
  }

  private static func time(for bytes: Int64) -> Duration { .seconds(30) + .milliseconds(min(bytes, 1 << 50) / 1000) }

  // MARK: Settings

  /// Sets a connection so that the schema of its files does nothing, and bounds what statements take.
  ///
  /// - Parameters:
  ///   - bytes: how many bytes the files hold; no value of theirs is longer.
  ///   - attached: how many files are attached.
  /// - Throws: `SQLITE_ERROR` where this SQLite lacks a setting.
  package static func harden(_ database: Database, holding bytes: Int64, attached: Int = 0) throws {
    guard let connection = unsafe database.sqliteConnection else { throw DatabaseError(resultCode: .SQLITE_MISUSE) }
    for (setting, value) in settings {
      guard unsafe lazaret_sqlite_set(UnsafeMutableRawPointer(connection), setting, value) == SQLITE_OK else {
        throw DatabaseError(resultCode: .SQLITE_ERROR, message: "this SQLite lacks the setting \(setting)")
      }
    }
    let length = longestValue(in: bytes)
    for (limit, value) in limits + [
      (SQLITE_LIMIT_LENGTH, length), (SQLITE_LIMIT_SQL_LENGTH, max(length, 8 << 20)),
      (SQLITE_LIMIT_ATTACHED, Int32(clamping: attached)),
    ] {
      // A limit can only be lowered below what this SQLite, or the app, has for all connections.
      let before = unsafe sqlite3_limit(connection, limit, -1)
      _ = unsafe sqlite3_limit(connection, limit, min(before, value))
    }
    try BoundedFormat.add(to: database)
    try database.execute(
      sql: "PRAGMA trusted_schema = 0; PRAGMA cell_size_check = 1; PRAGMA ignore_check_constraints = 1")
  }

  /// The most bytes that a value may have on the way: twice as many as the files hold, since digits of bytes are two, and
  /// rows are sorted with their keys; so it is above every value that is there.
  package static func longestValue(in bytes: Int64) -> Int32 {
    bytes < 1 << 30 ? Int32(clamping: 2 * max(0, bytes) + (1 << 20)) : .max
  }

  /// `sqlite3_db_config`: what is on and off (https://sqlite.org/security.html).
  private static let settings: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
    (SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0),
  ]

  /// `sqlite3_limit`: SQLite's own default of the depth, since a schema that the app could read must be readable here;
  /// enough operations for a statement about thousands of tables, of which 120 MB are the most.
  private static let limits: [(Int32, Int32)] = [
    (SQLITE_LIMIT_EXPR_DEPTH, 1000), (SQLITE_LIMIT_VDBE_OP, 5_000_000), (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 10_000), (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]
}

/// A bound on the files in which SQLite sorts and gathers rows.
///
/// In files that takes a few megabytes of memory, however many rows there are. SQLite knows no limit for them, and leaves them
/// in no folder where they could be counted; so a connection that runs what a person typed opens them through a virtual file
/// system (https://sqlite.org/vfs.html) that counts their bytes and hands everything on to SQLite's own.
final class TemporaryFiles: Sendable {
  /// The name by which SQLite knows the virtual file system; another copy of this code in the process has one of its own.
  private static let prefix = "lazaret-temporary-\(UUID().uuidString)"

  /// The most bytes that the files of all its connections have together.
  private let limit: Int64
  private let used = Mutex<Int64>(0)

  private init(limit: Int64) { self.limit = limit }

  /// What of these file systems SQLite knows, by their limits; they stay for as long as the process runs.
  private static let known = Mutex<[Int64: Int32]>([:])

  /// The name of a file system for SQLite's URI.
  ///
  /// - Parameter limit: the most bytes that the temporary files of all connections with the same limit have together; a
  ///   statement that needs more ends with `SQLITE_INTERRUPT`.
  /// - Returns: nil where SQLite takes no virtual file system.
  static func fileSystem(limit: Int64) -> String? {
    let name = "\(prefix)-\(limit)"
    let code = known.withLock { known in
      if let code = known[limit] { return code }
      let code = register(name, TemporaryFiles(limit: limit))
      known[limit] = code
      return code
    }
    return code == SQLITE_OK ? name : nil
  }

  private func take(_ bytes: Int64) -> Bool {
    used.withLock { used in
      guard bytes <= limit - used else { return false }
      used += bytes
      return true
    }
  }

  private func giveBack(_ bytes: Int64) { used.withLock { $0 -= bytes } }

  // MARK: What SQLite calls

  /// What the file system hands on to, and what it counts with.
  @unsafe private struct Parts {
    let usual: UnsafeMutablePointer<sqlite3_vfs>
    let files: Unmanaged<TemporaryFiles>
    let methods: UnsafePointer<sqlite3_io_methods>
  }

  /// An open file: what SQLite has there itself, then these, then the file of SQLite's own file system.
  @unsafe private struct Head {
    var own: sqlite3_file
    var files: Unmanaged<TemporaryFiles>

    /// How many bytes of it are counted.
    var end: Int64
  }

  private static let temporary =
    SQLITE_OPEN_TEMP_DB | SQLITE_OPEN_TRANSIENT_DB | SQLITE_OPEN_TEMP_JOURNAL | SQLITE_OPEN_SUBJOURNAL

  private static func head(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<Head> {
    unsafe UnsafeMutableRawPointer(file).assumingMemoryBound(to: Head.self)
  }

  private static func inner(_ file: UnsafeMutablePointer<sqlite3_file>) -> UnsafeMutablePointer<sqlite3_file> {
    unsafe UnsafeMutableRawPointer(file).advanced(by: MemoryLayout<Head>.stride)
      .assumingMemoryBound(to: sqlite3_file.self)
  }

  private static func register(_ name: String, _ files: TemporaryFiles) -> Int32 {
    guard let usual = unsafe sqlite3_vfs_find(nil), let name = unsafe strdup(name) else { return SQLITE_ERROR }
    let methods = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    unsafe methods.initialize(to: TemporaryFiles.methods)
    let parts = UnsafeMutablePointer<Parts>.allocate(capacity: 1)
    unsafe parts.initialize(
      to: Parts(usual: usual, files: Unmanaged.passRetained(files), methods: UnsafePointer(methods)))
    var system = unsafe usual.pointee
    unsafe system.pNext = nil
    unsafe system.zName = UnsafePointer(name)
    unsafe system.pAppData = UnsafeMutableRawPointer(parts)
    unsafe system.iVersion = 1
    unsafe system.szOsFile += Int32(MemoryLayout<Head>.stride)
    unsafe system.xOpen = { system, name, file, flags, outFlags in
      guard let file = unsafe file, let system = unsafe system else { return SQLITE_CANTOPEN }
      let parts = unsafe system.pointee.pAppData.assumingMemoryBound(to: Parts.self).pointee
      guard let open = unsafe parts.usual.pointee.xOpen else { return SQLITE_CANTOPEN }
      guard flags & TemporaryFiles.temporary != 0 else {
        return unsafe open(parts.usual, name, file, flags, outFlags)
      }
      unsafe TemporaryFiles.head(file).initialize(
        to: Head(own: sqlite3_file(pMethods: nil), files: parts.files, end: 0))
      let inner = unsafe TemporaryFiles.inner(file)
      unsafe inner.pointee.pMethods = nil
      let code = unsafe open(parts.usual, name, inner, flags, outFlags)
      // SQLite closes what has methods, also where it could not be opened.
      if unsafe inner.pointee.pMethods != nil { unsafe file.pointee.pMethods = unsafe parts.methods }
      return code
    }
    let kept = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe kept.initialize(to: system)
    return unsafe sqlite3_vfs_register(kept, 0)
  }

  /// What SQLite does with an open temporary file (https://sqlite.org/c3ref/io_methods.html); none is mapped or shared.
  private static let methods: sqlite3_io_methods = {
    var methods = sqlite3_io_methods()
    methods.iVersion = 1
    unsafe methods.xClose = { file in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let head = unsafe TemporaryFiles.head(file)
      unsafe head.pointee.files.takeUnretainedValue().giveBack(head.pointee.end)
      unsafe head.pointee.end = 0
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xClose(inner)
    }
    unsafe methods.xRead = { file, target, count, offset in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xRead(inner, target, count, offset)
    }
    unsafe methods.xWrite = { file, source, count, offset in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let head = unsafe TemporaryFiles.head(file)
      let end = offset + Int64(count)
      if unsafe end > head.pointee.end {
        guard unsafe head.pointee.files.takeUnretainedValue().take(end - head.pointee.end) else {
          return SQLITE_INTERRUPT
        }
        unsafe head.pointee.end = end
      }
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xWrite(inner, source, count, offset)
    }
    unsafe methods.xTruncate = { file, size in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let head = unsafe TemporaryFiles.head(file)
      let inner = unsafe TemporaryFiles.inner(file)
      let code = unsafe inner.pointee.pMethods.pointee.xTruncate(inner, size)
      if code == SQLITE_OK, unsafe size < head.pointee.end {
        unsafe head.pointee.files.takeUnretainedValue().giveBack(head.pointee.end - size)
        unsafe head.pointee.end = size
      }
      return code
    }
    unsafe methods.xFileSize = { file, size in
      guard let file = unsafe file else { return SQLITE_MISUSE }
      let inner = unsafe TemporaryFiles.inner(file)
      return unsafe inner.pointee.pMethods.pointee.xFileSize(inner, size)
    }
    // They go with the connection that alone has them: nothing is to be locked, and nothing has to be on the disk.
    unsafe methods.xSync = { _, _ in SQLITE_OK }
    unsafe methods.xLock = { _, _ in SQLITE_OK }
    unsafe methods.xUnlock = { _, _ in SQLITE_OK }
    unsafe methods.xCheckReservedLock = { _, result in
      if let result = unsafe result { unsafe result.pointee = 0 }
      return SQLITE_OK
    }
    unsafe methods.xFileControl = { _, _, _ in SQLITE_NOTFOUND }
    unsafe methods.xSectorSize = { _ in 4096 }
    unsafe methods.xDeviceCharacteristics = { _ in 0 }
    return methods
  }()
}
