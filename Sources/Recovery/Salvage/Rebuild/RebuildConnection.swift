internal import GRDB
internal import PageRecovery
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// A connection of SQLite's to a file that is being rebuilt, or that was.
struct RebuildConnection {
  private let connection: WorkingConnection
  private let path: FilePath

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - isNew: whether it is to be made, and written; else it is only read and does not change meanwhile.
  ///   - referenceDate: what `NSCoreDataNow` says, in seconds since 2001-01-01T00:00:00Z.
  ///   - isCancelled: asked now and then, on another thread, whether the work is to end.
  init(
    _ path: FilePath, isNew: Bool, referenceDate: Double = 0, isCancelled: (@Sendable () -> Bool)? = nil
  ) throws(SalvageError) {
    self.path = path
    do {
      connection = try WorkingConnection(
        path, isNew ? .create : .immutable, label: "Lazaret.Salvage", cacheKilobytes: 8192, takesOldQuotes: true,
        isCancelled: isCancelled
      ) { database in
        for function in CoreDataFunctions.all(now: { referenceDate }) { database.add(function: function) }
      }
    } catch {
      throw SalvageError(database: error, path: path)
    }
  }

  /// Runs statements outside any transaction.
  func run<Value>(_ body: (Database) throws -> Value) throws(SalvageError) -> Value {
    try wrapping(failure) { try connection.run(body) }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws(SalvageError) -> Value {
    try wrapping(failure) { try connection.read(body) }
  }

  func close() throws(SalvageError) {
    try wrapping(failure) { try connection.close() }
  }

  private func failure(_ error: any Error) -> SalvageError { SalvageError(database: error, path: path) }
}

extension SalvageError {
  /// What SQLite, or another module, reported; neither SQL nor values of records get into it.
  init(database error: any Error, path: FilePath?) {
    if let error = error as? SalvageError {
      self = error
      return
    }
    let operation = "rebuild the store"
    switch DatabaseFailure(error, operation: operation, path: path) {
    case .file(let error): self.init(error)
    case .interrupted: self = .cancelled()
    case .reported(let error): self.init(.output, because: error, path: error.path ?? path)
    case .sqlite(let code, _): self.init(unexplained: "SQLite reported code \(code)", operation, path)
    case .unforeseen: self.init(unexplained: "an unforeseen failure", operation, path)
    }
  }

  private init(unexplained detail: String, _ operation: String, _ path: FilePath?) {
    self.init(
      .output, operation: operation, path: path, detail: detail,
      hint: "Salvage with --raw to get the rows as they are, and report it.")
  }
}
