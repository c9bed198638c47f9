internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import PersistentStore
public import Platform
public import SQLiteFormat
public import SystemPackage

extension RecoveryKit {
  /// Creates a kit of a store that this or another process has open, possibly for writing.
  ///
  /// A second connection's read transaction ensures a consistent state. Bytes are read through SQLite's own handles:
  /// opening and closing the file again would release SQLite's locks in this process
  /// (https://sqlite.org/howtocorrupt.html, section 2.2).
  ///
  /// - Parameters:
  ///   - store: the main file.
  ///   - sumLimit: the largest store with page checksums, in bytes.
  /// - Throws: ``SalvageError``.
  public init(
    ofOpen store: FilePath, sumsUpTo sumLimit: Int64 = RecoveryKit.defaultSumLimit,
    surroundings: Surroundings = .machine
  ) throws {
    let date = surroundings.now()
    self = try Self.reading(store, "note a recovery kit") { main, log in
      try RecoveryKit.read(main: main, log: log, journal: nil, sumsUpTo: sumLimit, at: date)
    }
  }

  /// Checks every page of a store that this or another process has open.
  ///
  /// - Throws: ``SalvageError``: `store-changed` if another connection has an exclusive lock, or a read error.
  public static func check(ofOpen store: FilePath) throws -> IntegrityReport {
    try reading(store, "check the store") { main, log in
      try Database(main: main, writeAheadLog: log).checkIntegrity()
    }
  }

  private static func reading<Value>(
    _ store: FilePath, _ operation: String, _ body: (ConnectionBytes, ConnectionBytes?) throws -> Value
  ) throws -> Value {
    do {
      let queue = try EvidenceConnection.open(store, .inUse, label: "Lazaret.RecoveryKit")
      let value = try queue.read { database in
        // The first read begins the transaction.
        _ = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master")
        let (main, log) = try ConnectionBytes.both(of: database)
        return try body(main, log)
      }
      try queue.close()
      return value
    } catch var error as SalvageError {
      if error.path == nil { error.path = store }
      throw error
    } catch let error as FileError where error.kind != .locked {
      var error = SalvageError(kit: error)
      if error.path == nil { error.path = store }
      throw error
    } catch {
      guard let cause = DatabaseFailure(error, operation: operation, path: store).environmentalError else {
        throw SalvageError.notSound("it cannot be opened for reading", store)
      }
      guard cause.kind == .locked else { throw SalvageError(cause) }
      throw SalvageError(
        .storeChanged, operation: operation, path: store, detail: "another connection has it to itself")
    }
  }
}

/// A file read through SQLite's handle, by C function pointers; valid during the transaction.
@safe private final class ConnectionBytes: ByteSource, @unchecked Sendable {
  private let file: UnsafeMutablePointer<sqlite3_file>
  let count: Int64

  static func both(of database: GRDB.Database) throws -> (main: ConnectionBytes, log: ConnectionBytes?) {
    guard let main = try ConnectionBytes(database, SQLITE_FCNTL_FILE_POINTER) else {
      throw SalvageError.notSound("SQLite has no file for it")
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
    // A truncated file reads as zeros, which fail all checks.
    let isShort = code & 0xff == SQLITE_IOERR && code >> 8 == 2
    guard code == SQLITE_OK || isShort else {
      throw FileError(.inputOutput, operation: "read the store", path: "")
    }
    return wanted
  }
}
