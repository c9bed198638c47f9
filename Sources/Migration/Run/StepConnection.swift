internal import GRDB
internal import PersistentStore
internal import Platform
package import SystemPackage

/// An SQLite connection in the working folder.
///
/// Its default cache is 4 MB; larger ones were not faster.
struct StepConnection {
  private let connection: WorkingConnection
  private let path: FilePath

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - referenceDate: In seconds since 2001-01-01T00:00:00Z.
  ///   - others: The files an evidence connection attaches.
  init(
    _ path: FilePath, _ mode: WorkingConnection.Mode, referenceDate: Double = 0, cacheKilobytes: Int = 4096,
    attaching others: [FilePath] = []
  ) throws {
    self.path = path
    do {
      connection = try WorkingConnection(
        path, mode, label: "Lazaret.Migration", cacheKilobytes: cacheKilobytes, attaching: others,
        isCancelled: MigrationTrace.current?.isCancelled
      ) { database in
        MigrationTrace.current?.watch(database)
        try Self.addFunctions(to: database, referenceDate: referenceDate)
      }
    } catch {
      throw MigrationError(any: error, path: path)
    }
  }

  static func addFunctions(to database: Database, referenceDate: Double) throws {
    for function in CoreDataFunctions.all(now: { referenceDate }) + MappingFunctions.additional {
      database.add(function: function)
    }
  }

  func run<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try wrapping(failure) { try connection.run(body) }
  }

  func read<Value>(_ body: (Database) throws -> Value) throws -> Value {
    try wrapping(failure) { try connection.read(body) }
  }

  func close() throws {
    try wrapping(failure) { try connection.close() }
  }

  private func failure(_ error: any Error) -> MigrationError { MigrationError(any: error, path: path) }
}

extension MigrationError {
  /// The environmental error represented by another one; nil for errors of records or models.
  init?(environmental error: any Error) {
    guard let cause = DatabaseFailure(error, operation: "migrate the store", path: nil).environmentalError else {
      return nil
    }
    self.init(cause)
  }

  /// An SQLite error, without SQL and record values.
  package init(any error: any Error, path: FilePath? = nil) {
    if let error = error as? MigrationError {
      self = error
      return
    }
    switch DatabaseFailure(error, operation: "migrate the store", path: path) {
    case .file(let error): self.init(error)
    case .interrupted: self.init(.cancelled, path: path, detail: "it was cancelled")
    case .reported(let error):
      self.init(.sqlite, because: error, operation: Kind.usualOperation, path: error.path ?? path)
    case .sqlite(let code, let name)
    where [ResultCode.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(ResultCode(rawValue: code & 0xff)):
      // All data of a step comes from the store.
      self.init(.sourceDamaged, path: path, detail: "SQLite met damage in it: \(name) (code \(code))")
    case .sqlite(let code, let name): self.init(.sqlite, path: path, detail: "SQLite reported \(name) (code \(code))")
    case .unforeseen: self.init(.sqlite, path: path, detail: "an unforeseen failure")
    }
  }
}
