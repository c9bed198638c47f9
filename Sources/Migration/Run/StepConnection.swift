internal import GRDB
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// A connection of SQLite's to a file of the working folder.
///
/// Memory is bounded: a cache of 4 MB (a larger one was not faster), temporary trees in files, nothing mapped. Nothing is durable until the file is
/// pushed to the disk as a whole, because an unfinished one is thrown away.
struct StepConnection {
  private let queue: DatabaseQueue
  private let path: FilePath

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - referenceDate: what `NSCoreDataNow` says, in seconds since 2001-01-01T00:00:00Z.
  ///   - cacheKilobytes: the size of the cache of pages.
  init(
    _ path: FilePath, _ mode: SQLiteLocation.Mode, referenceDate: Double = 0, cacheKilobytes: Int = 4096
  ) throws(MigrationError) {
    self.path = path
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.readonly = mode == .immutable
    // A step that fails leaves its transaction open, and the file is thrown away with it.
    configuration.allowsUnsafeTransactions = true
    configuration.label = "Lazaret.Migration"
    configuration.prepareDatabase { database in
      MigrationTrace.current?.watch(database)
      try Self.addFunctions(to: database, referenceDate: referenceDate)
      try database.execute(
        sql:
          "PRAGMA cache_size = -\(cacheKilobytes); PRAGMA temp_store = 1; PRAGMA mmap_size = 0; PRAGMA trusted_schema = 0"
      )
    }
    do {
      queue = try DatabaseQueue(path: SQLiteLocation(path, mode).address, configuration: configuration)
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  /// Adds the functions that triggers of Core Data and expressions of mappings call.
  static func addFunctions(to database: Database, referenceDate: Double) throws {
    for function in CoreDataFunctions.all(now: { referenceDate }) + MappingFunctions.additional {
      database.add(function: function)
    }
  }

  /// Runs statements outside any transaction.
  func run<Value>(_ body: (Database) throws -> Value) throws(MigrationError) -> Value {
    do {
      return try queue.writeWithoutTransaction(body)
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  /// Reads.
  func read<Value>(_ body: (Database) throws -> Value) throws(MigrationError) -> Value {
    do {
      return try queue.unsafeRead(body)
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }

  /// Closes the connection.
  func close() throws(MigrationError) {
    do {
      try queue.close()
    } catch {
      throw MigrationError(database: error, path: path)
    }
  }
}

extension MigrationError {
  /// What SQLite reported; neither SQL nor values of records get into it.
  init(database error: any Error, path: FilePath?) {
    if let error = error as? MigrationError {
      self = error
      return
    }
    if let error = error as? FileError {
      self.init(error)
      return
    }
    if let error = error as? any ReportableError {
      if error.isEnvironmental {
        let kind = FileError.Kind(rawValue: error.code) ?? (error.code == "store-locked" ? .locked : .other)
        self.init(
          FileError(kind, operation: error.operation, path: error.path ?? path, detail: error.detail, hint: error.hint))
        return
      }
      self.init(.sqlite, path: error.path ?? path, detail: error.detail, hint: error.hint)
      return
    }
    guard let error = error as? DatabaseError else {
      self.init(.sqlite, path: path, detail: "an unforeseen failure")
      return
    }
    let code = error.extendedResultCode.rawValue
    let kind: FileError.Kind? =
      switch error.resultCode {
      case .SQLITE_FULL: .noSpace
      case .SQLITE_IOERR: .inputOutput
      case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL: .locked
      case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH, .SQLITE_CANTOPEN: .permissionDenied
      case .SQLITE_NOMEM: .other
      default: nil
      }
    if let kind {
      self.init(FileError(kind, operation: "migrate the store", path: path))
    } else {
      self.init(.sqlite, path: path, detail: "SQLite reported \(error.resultCode) (code \(code))")
    }
  }
}
