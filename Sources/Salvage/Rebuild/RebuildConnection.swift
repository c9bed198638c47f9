internal import GRDB
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// A connection of SQLite's to a file that is being rebuilt, or that was.
///
/// Memory is bounded: a cache of 8 MB, temporary trees in files, nothing mapped.
struct RebuildConnection {
  private let queue: DatabaseQueue
  private let path: FilePath

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - isNew: whether it is to be made, and written; else it is only read and nobody changes it meanwhile.
  ///   - referenceDate: what `NSCoreDataNow` says, in seconds since 2001-01-01T00:00:00Z.
  init(_ path: FilePath, isNew: Bool, referenceDate: Double = 0) throws(SalvageError) {
    self.path = path
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    configuration.readonly = !isNew
    // What fails leaves its transaction open, and the file is thrown away with it.
    configuration.allowsUnsafeTransactions = true
    configuration.label = "Lazaret.Salvage"
    configuration.prepareDatabase { database in
      for function in CoreDataFunctions.all(now: { referenceDate }) { database.add(function: function) }
      try database.execute(
        sql: "PRAGMA cache_size = -8192; PRAGMA temp_store = 1; PRAGMA mmap_size = 0; PRAGMA trusted_schema = 0")
    }
    do {
      queue = try DatabaseQueue(path: isNew ? Self.newAddress(path) : Self.address(path), configuration: configuration)
    } catch {
      throw SalvageError(database: error, path: path)
    }
  }

  /// The address of a file that nobody changes: no locks, no log, nothing written beside it.
  static func address(_ path: FilePath) -> String {
    PersistentStore.address(of: path, isReadOnly: true) + "&immutable=1"
  }

  /// The address of a file that is made where it is missing.
  static func newAddress(_ path: FilePath) -> String {
    String(PersistentStore.address(of: path, isReadOnly: false).dropLast("mode=rw".count)) + "mode=rwc"
  }

  /// Runs statements outside any transaction.
  func run<Value>(_ body: (Database) throws -> Value) throws(SalvageError) -> Value {
    do {
      return try queue.writeWithoutTransaction(body)
    } catch {
      throw SalvageError(database: error, path: path)
    }
  }

  /// Reads.
  func read<Value>(_ body: (Database) throws -> Value) throws(SalvageError) -> Value {
    do {
      return try queue.unsafeRead(body)
    } catch {
      throw SalvageError(database: error, path: path)
    }
  }

  /// Closes the connection.
  func close() throws(SalvageError) {
    do {
      try queue.close()
    } catch {
      throw SalvageError(database: error, path: path)
    }
  }
}

extension SalvageError {
  /// What SQLite, or another module, reported; neither SQL nor values of records get into it.
  init(database error: any Error, path: FilePath?) {
    if let error = error as? SalvageError {
      self = error
      return
    }
    if let error = error as? FileError {
      self.init(error)
      return
    }
    if let error = error as? any ReportableError {
      if error.isEnvironmental {
        let kind = FileError.Kind(rawValue: error.code) ?? .other
        self.init(
          FileError(kind, operation: error.operation, path: error.path ?? path, detail: error.detail, hint: error.hint))
      } else {
        self.init(.output, operation: error.operation, path: error.path ?? path, detail: error.detail, hint: error.hint)
      }
      return
    }
    let code = (error as? DatabaseError)?.extendedResultCode.rawValue ?? 1
    let kind: FileError.Kind? =
      switch (error as? DatabaseError)?.resultCode {
      case .SQLITE_FULL?: .noSpace
      case .SQLITE_IOERR?: .inputOutput
      case .SQLITE_PERM?, .SQLITE_READONLY?, .SQLITE_CANTOPEN?: .permissionDenied
      default: nil
      }
    if let kind {
      self.init(FileError(kind, operation: "rebuild the store", path: path))
    } else {
      self.init(
        .output, operation: "rebuild the store", path: path, detail: "SQLite reported code \(code)",
        hint: "Salvage with --raw to get the rows as they are, and report it.")
    }
  }
}
