internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import PersistentStore
public import Platform
public import SQLiteFormat
public import SystemPackage

extension RecoveryKit {
  /// Notes a kit of a store that this process, or another one, has open and may be writing to.
  ///
  /// A second connection holds a read transaction, so that what is read is one state of the store, and the bytes come
  /// through SQLite's own handles: opening the file once more and closing it would end the locks that SQLite has on it in
  /// this process (https://sqlite.org/howtocorrupt.html, section 2.2).
  ///
  /// - Parameters:
  ///   - store: the main file, which another connection of this process has open.
  ///   - sumLimit: the largest store of which pages are summed, in bytes.
  /// - Throws: ``RecoveryKitError``.
  public init(
    ofOpen store: FilePath, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit,
    surroundings: Surroundings = .machine
  ) throws(RecoveryKitError) {
    let date = surroundings.now()
    self = try Self.reading(store, "note a recovery kit") { main, log in
      try RecoveryKit.read(main: main, log: log, journal: nil, sumsUpTo: sumLimit, at: date)
    }
  }

  /// Looks at every page of a store that this process, or another one, has open and may be writing to.
  ///
  /// - Throws: ``RecoveryKitError``: `store-changed` where another connection has it to itself, or what reading says.
  public static func check(ofOpen store: FilePath) throws(RecoveryKitError) -> IntegrityReport {
    try reading(store, "check the store") { main, log in
      try Database(main: main, writeAheadLog: log).checkIntegrity()
    }
  }

  /// Reads one state of an open store through a connection of its own.
  private static func reading<Value>(
    _ store: FilePath, _ operation: String, _ body: (ConnectionBytes, ConnectionBytes?) throws -> Value
  ) throws(RecoveryKitError) -> Value {
    do {
      let queue = try EvidenceConnection.open(store, .inUse, label: "Lazaret.RecoveryKit")
      let value = try queue.read { database in
        // The first look at a page is what begins the transaction.
        _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master")
        let (main, log) = try ConnectionBytes.both(of: database)
        return try body(main, log)
      }
      try queue.close()
      return value
    } catch var error as RecoveryKitError {
      if error.path == nil { error.path = store }
      throw error
    } catch let error as FormatError {
      var error = RecoveryKitError(error)
      if error.path == nil { error.path = store }
      throw error
    } catch {
      guard let cause = DatabaseFailure(error, operation: operation, path: store).environmentalError else {
        throw .notSound("it cannot be opened for reading", store)
      }
      guard cause.kind == .locked else { throw RecoveryKitError(cause) }
      throw RecoveryKitError(
        .storeChanged, operation: operation, path: store, detail: "another connection has it to itself")
    }
  }
}

/// The bytes of a file that SQLite has open, read through its handle; valid as long as the connection's transaction.
///
/// The only place of this module that calls C through pointers.
@safe private final class ConnectionBytes: ByteSource, @unchecked Sendable {
  private let file: UnsafeMutablePointer<sqlite3_file>
  let count: Int64

  /// The main file, and the write-ahead log where there is one.
  static func both(of database: GRDB.Database) throws -> (main: ConnectionBytes, log: ConnectionBytes?) {
    guard let main = try ConnectionBytes(database, SQLITE_FCNTL_FILE_POINTER) else {
      throw RecoveryKitError.notSound("SQLite has no file for it")
    }
    let mode = try String.fetchOne(database, sql: "PRAGMA journal_mode")
    let log = mode?.lowercased() == "wal" ? try ConnectionBytes(database, SQLITE_FCNTL_JOURNAL_POINTER) : nil
    return (main, log.flatMap { $0.count > 0 ? $0 : nil })
  }

  private init?(_ database: GRDB.Database, _ operation: Int32) throws {
    var found: UnsafeMutablePointer<sqlite3_file>?
    let code = unsafe sqlite3_file_control(database.sqliteConnection, "main", operation, &found)
    guard code == SQLITE_OK, let found = unsafe found, let methods = unsafe found.pointee.pMethods,
      let size = unsafe methods.pointee.xFileSize
    else { return nil }
    var bytes: sqlite3_int64 = 0
    guard unsafe size(found, &bytes) == SQLITE_OK else { return nil }
    unsafe file = found
    count = bytes
  }

  func read(at offset: Int64, length: Int, into buffer: inout [UInt8]) throws(FileError) -> Int {
    let wanted = min(length, buffer.count, Int(clamping: max(0, count - offset)))
    guard offset >= 0, wanted > 0 else { return 0 }
    let code = unsafe buffer.withUnsafeMutableBytes { bytes -> Int32 in
      guard let read = unsafe file.pointee.pMethods?.pointee.xRead else { return SQLITE_IOERR }
      return unsafe read(file, bytes.baseAddress, Int32(clamping: wanted), offset)
    }
    // A file that became shorter ends in zeros; what is read then fits nothing.
    let isShort = code & 0xff == SQLITE_IOERR && code >> 8 == 2
    guard code == SQLITE_OK || isShort else {
      throw FileError(.inputOutput, operation: "read the store", path: "")
    }
    return wanted
  }
}
