internal import CSQLite
internal import Foundation
package import GRDB
internal import GRDBSQLite
internal import Platform
package import SystemPackage

/// The only way to open others' files in SQLite: evidence, copies, backups, uploads, browsed or checked stores.
///
/// Schema declarations do not run: triggers and views are off, functions limited to SQLite's harmless ones, checks not
/// evaluated, the schema not writable. Limits bound the rest. The app's live store is opened otherwise: derived
/// attributes are triggers.
package enum EvidenceConnection {
  package enum Access: Sendable {
    /// Read without locks, as the file does not change.
    case unchanging

    /// A private copy: SQLite may checkpoint its log or roll back its journal.
    case copy

    /// Read-only with locks; without write permission a connection would leave files there.
    case inUse

    /// A new file for content of attached ones.
    case new

    var parameters: String {
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
  ///   - path: the main file; its log is read unless the access is `unchanging`.
  ///   - temporaryBytes: the limit for temporary files of all connections with this limit; exceeding it gives
  ///     `SQLITE_INTERRUPT`.
  ///   - prepare: called with the new connection.
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

  package static func open(
    _ file: VirtualFile, label: String, cacheKilobytes: Int = 2000,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    var configuration = configuration(label, cacheKilobytes, 0, file.count, temporary: "MEMORY", prepare)
    configuration.readonly = true
    return try DatabaseQueue(path: file.address, configuration: configuration)
  }

  package static func open(
    new path: FilePath, label: String, cacheKilobytes: Int = 2000, attaching other: VirtualFile,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    try DatabaseQueue(
      path: address(path, .new), configuration: configuration(label, cacheKilobytes, 1, other.count, prepare))
  }

  /// Opens a connection for files attached by ``address(_:_:)``, and one by its own address.
  package static func open(
    attaching others: [FilePath], and file: VirtualFile? = nil, label: String, cacheKilobytes: Int = 2000,
    prepare: @escaping @Sendable (Database) throws -> Void = { _ in }
  ) throws -> DatabaseQueue {
    let (count, bytes) = (others.count + (file == nil ? 0 : 1), content(of: others) + (file?.count ?? 0))
    return try DatabaseQueue(configuration: configuration(label, cacheKilobytes, count, bytes, prepare))
  }

  /// Returns an SQLite URI for any path bytes.
  package static func address(_ path: FilePath, _ access: Access) -> String {
    PersistentStore.escaped(path) + "?" + access.parameters
  }

  private static func configuration(
    _ label: String, _ cacheKilobytes: Int, _ attached: Int, _ bytes: Int64, temporary: String = "FILE",
    _ prepare: @escaping @Sendable (Database) throws -> Void
  ) -> Configuration {
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    // A failure leaves its transaction open; closing the connection ends it.
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

  /// Returns the size of files and logs; unreadable ones count as 0, since opening reports the reason.
  static func content(of files: [FilePath]) -> Int64 {
    files.reduce(0) { sum, file in
      let sizes = [file, file.sibling(suffix: "-wal")].map { (try? FileSystem().status(of: $0))??.size ?? 0 }
      return sizes.reduce(sum) { $0.addingReportingOverflow(max(0, $1)).overflow ? .max : $0 + max(0, $1) }
    }
  }

  /// Returns the time limit: 30 seconds plus one per MB.
  ///
  /// Full table scans finish in it unless a file was crafted to be slow.
  package static func limit(for files: [FilePath], isCancelled: (() -> Bool)? = nil) -> StatementLimit {
    StatementLimit(time: time(for: content(of: files)), isCancelled: isCancelled)
  }

  /// Returns that limit for a virtual file and others, excluding its source's waiting time.
  package static func limit(
    for file: VirtualFile, and others: [FilePath] = [], isCancelled: (() -> Bool)? = nil
  ) -> StatementLimit {
    StatementLimit(time: time(for: file.count + content(of: others)), isCancelled: isCancelled, waited: file.waited)
  }

  private static func time(for bytes: Int64) -> Duration { .seconds(30) + .milliseconds(min(bytes, 1 << 50) / 1000) }

  // MARK: Settings

  /// Disables the schema's declarations and limits statements.
  ///
  /// - Parameter bytes: the total size of the files, which bounds every value.
  /// - Throws: `SQLITE_ERROR` if this SQLite lacks a setting.
  static func harden(_ database: Database, holding bytes: Int64, attached: Int = 0) throws {
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
      // Never above the limit that this SQLite or the app set for all connections.
      let before = unsafe sqlite3_limit(connection, limit, -1)
      _ = unsafe sqlite3_limit(connection, limit, min(before, value))
    }
    try BoundedFormat.add(to: database)
    try database.execute(
      sql: "PRAGMA trusted_schema = 0; PRAGMA cell_size_check = 1; PRAGMA ignore_check_constraints = 1")
  }

  /// Returns the longest value: twice the file size, since hex doubles bytes and sorted rows include keys.
  package static func longestValue(in bytes: Int64) -> Int32 {
    bytes < 1 << 30 ? Int32(clamping: 2 * max(0, bytes) + (1 << 20)) : .max
  }

  /// `sqlite3_db_config` settings (https://sqlite.org/security.html).
  private static let settings: [(Int32, Int32)] = [
    (SQLITE_DBCONFIG_DEFENSIVE, 1), (SQLITE_DBCONFIG_ENABLE_TRIGGER, 0), (SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    (SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0), (SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0),
    (SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0),
  ]

  /// `sqlite3_limit` values: SQLite's default depth, so that every schema the app could read is readable; operations
  /// for a statement over thousands of tables, at most 120 MB.
  private static let limits: [(Int32, Int32)] = [
    (SQLITE_LIMIT_EXPR_DEPTH, 1000), (SQLITE_LIMIT_VDBE_OP, 5_000_000), (SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 10_000), (SQLITE_LIMIT_WORKER_THREADS, 0),
  ]
}

/// A limit on temporary files for sorting and grouping.
///
/// Files keep memory at a few megabytes for any number of rows, but SQLite neither limits them nor keeps them in a
/// countable folder. Connections with user SQL therefore use a virtual file system (https://sqlite.org/vfs.html) that
/// counts bytes and forwards to SQLite's own.
final class TemporaryFiles: Sendable {
  /// Unique to this copy of the code in the process.
  private static let prefix = "lazaret-temporary-\(UUID().uuidString)"

  private let limit: Int64
  private let used = Mutex<Int64>(0)

  private init(limit: Int64) { self.limit = limit }

  private static let known = Mutex<[Int64: Int32]>([:])

  /// Registers a file system and returns its name; nil if SQLite rejects it.
  ///
  /// - Parameter limit: the byte limit for temporary files of all connections with this limit; exceeding it gives
  ///   `SQLITE_INTERRUPT`.
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

  @unsafe private struct Parts {
    let usual: UnsafeMutablePointer<sqlite3_vfs>
    let files: Unmanaged<TemporaryFiles>
    let methods: UnsafePointer<sqlite3_io_methods>
  }

  /// SQLite's header, these fields, then the underlying file.
  @unsafe private struct Head {
    var own: sqlite3_file
    var files: Unmanaged<TemporaryFiles>

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
      guard flags & TemporaryFiles.temporary != 0 else { return unsafe open(parts.usual, name, file, flags, outFlags) }
      unsafe TemporaryFiles.head(file).initialize(
        to: Head(own: sqlite3_file(pMethods: nil), files: parts.files, end: 0))
      let inner = unsafe TemporaryFiles.inner(file)
      unsafe inner.pointee.pMethods = nil
      let code = unsafe open(parts.usual, name, inner, flags, outFlags)
      // SQLite closes a file with methods even after a failed open.
      if unsafe inner.pointee.pMethods != nil { unsafe file.pointee.pMethods = unsafe parts.methods }
      return code
    }
    let kept = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    unsafe kept.initialize(to: system)
    return unsafe sqlite3_vfs_register(kept, 0)
  }

  /// The file methods (https://sqlite.org/c3ref/io_methods.html), without mapping or sharing.
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
    // Private and deleted on close: no locks, no syncs.
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
