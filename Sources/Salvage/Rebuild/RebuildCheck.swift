internal import GRDB
import ManagedObjectModel
internal import Migration
internal import PersistentStore
package import Platform
internal import SQLiteFormat
package import SystemPackage

/// The checks of a rebuilt store before installation.
enum RebuildCheck {
  /// Checks a finished file that no process writes to, while flushing it to the disk.
  ///
  /// - Parameter layout: nil for plain stores.
  /// - Throws: `salvage-verification-failed`, or a reading error.
  static func run(
    _ path: FilePath, _ layout: StoreLayout?, in fileSystem: FileSystem, isCancelled: @escaping @Sendable () -> Bool
  ) throws {
    do {
      _ = try concurrently {
        try pages(path, in: fileSystem)
      } _: {
        if let layout { try content(path, layout, isCancelled) }
        try fileSystem.synchronizeFile(path)
      }
    } catch {
      let error = SalvageError(any: error)
      // A full or failing disk is no fault of the store.
      if let fileError = error.fileError { throw SalvageError(fileError) }
      if error.kind == .cancelled { throw SalvageError.cancelled() }
      throw SalvageError(.verificationFailed, operation: "verify the rebuilt store", path: path, detail: error.detail)
    }
  }

  /// Checks tables, columns, metadata and references against the model.
  private static func content(
    _ path: FilePath, _ layout: StoreLayout, _ isCancelled: @escaping @Sendable () -> Bool
  ) throws {
    try open(path, isNew: false, isCancelled: isCancelled) { database in
      let serious = try SQLSchema(layout).differences(to: try SQLSchema(database)).filter { difference in
        switch difference {
        case .unexpectedTable, .unexpectedIndex: false
        case .missingTable, .missingColumn, .unexpectedColumn, .otherType, .missingIndex: true
        }
      }
      guard serious.isEmpty else { throw failed("its tables differ from those of a new store") }
      guard try !Dangling.exist(database, layout) else { throw failed("references lead to records that are not there") }
      guard let row = try Row.fetchOne(database, sql: "SELECT Z_UUID, Z_PLIST FROM Z_METADATA") else {
        throw failed("it has no metadata")
      }
      let list: DatabaseValue = row[1]
      guard case .blob(let data) = list.storage else { throw failed("its metadata cannot be read") }
      guard try StoreMetadata(uuid: "", propertyList: [UInt8](data)).versionHashes == layout.model.versionHashes()
      else { throw failed("its version hashes are not those of the model") }
    }
  }

  /// Checks the bytes of a file without a WAL: each page has one use, each index as many entries as its table has rows.
  private static func pages(_ path: FilePath, in fileSystem: FileSystem) throws {
    let report: IntegrityReport
    do {
      report = try Database(main: try fileSystem.open(path)).checkIntegrity(findingLimit: 10)
    } catch {
      throw SalvageError(any: error, path: path)
    }
    guard report.isSound else {
      let kinds = report.findings.damage.keys.map(\.rawValue).sorted().joined(separator: ", ")
      throw SalvageError(
        .verificationFailed, operation: "verify the rebuilt store", path: path,
        detail: "its pages are damaged (\(kinds))", hint: "Report it.")
    }
  }

  /// Opens a rebuilt store, works on it, and closes it.
  ///
  /// - Parameters:
  ///   - isNew: whether to create the file; else it is read only and must not change.
  ///   - referenceDate: the result of `NSCoreDataNow`, in seconds since 2001-01-01T00:00:00Z.
  ///   - isCancelled: polled on another thread.
  static func open<Value>(
    _ path: FilePath, isNew: Bool, referenceDate: Double = 0, isCancelled: @escaping @Sendable () -> Bool,
    _ body: (GRDB.Database) throws -> Value
  ) throws -> Value {
    do {
      let connection = try WorkingConnection(
        path, isNew ? .create : .immutable, label: "Lazaret.Salvage", cacheKilobytes: 8192, takesOldQuotes: true,
        isCancelled: isCancelled
      ) { database in
        for function in CoreDataFunctions.all(now: { referenceDate }) { database.add(function: function) }
      }
      let value = try isNew ? connection.run(body) : connection.read(body)
      try connection.close()
      return value
    } catch {
      throw SalvageError(any: error, path: path)
    }
  }

  private static func failed(_ detail: String) -> SalvageError {
    SalvageError(.verificationFailed, operation: "verify the rebuilt store", detail: detail, hint: "")
  }
}

extension SalvageError {
  /// Wraps an error without SQL or values of records.
  package init(any error: any Error, path: FilePath? = nil) {
    switch error {
    case let error as SalvageError:
      self = error
      return
    case let error as FileError where error.kind.subject == .database:
      self.init(error)
      return
    case let error as PersistentStoreError:
      self.init(error)
      return
    default: break
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
      hint: "Salvage the rows as they are, without a model's layout, and report it.")
  }
}
