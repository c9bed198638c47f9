internal import GRDB
internal import ManagedObjectModel
internal import Migration
internal import PageRecovery
internal import PersistentStore
internal import StoreFiles
internal import SystemPackage

/// The checks that a rebuilt store must pass before it gets its name.
enum RebuildCheck {
  /// Checks a finished file that no process writes to, and pushes it to the disk meanwhile.
  ///
  /// - Parameter layout: that of the store's version; nil for plain stores.
  /// - Throws: `salvage-verification-failed`, or the error of reading it.
  static func run(
    _ path: FilePath, _ layout: StoreLayout?, in fileSystem: FileSystem, isCancelled: @escaping @Sendable () -> Bool
  ) throws(SalvageError) {
    do {
      _ = try concurrently { () throws(MigrationError) in
        do throws(SalvageError) {
          try RebuiltPages.check(path, in: fileSystem)
        } catch {
          throw MigrationError(carrying: error, path)
        }
      } _: { () throws(MigrationError) in
        do throws(SalvageError) {
          if let layout { try content(path, layout, isCancelled) }
          do throws(FileError) { try fileSystem.synchronizeFile(path) } catch { throw SalvageError(error) }
        } catch {
          throw MigrationError(carrying: error, path)
        }
      }
    } catch {
      // A disk that is full, or fails, is no fault of the store.
      if let fileError = error.fileError { throw SalvageError(fileError) }
      if error.kind == .cancelled { throw .cancelled() }
      throw SalvageError(.verificationFailed, operation: "verify the rebuilt store", path: path, detail: error.detail)
    }
  }

  /// Tables and columns must be those of a new store, the metadata the model's, and every reference must lead somewhere.
  private static func content(
    _ path: FilePath, _ layout: StoreLayout, _ isCancelled: @escaping @Sendable () -> Bool
  ) throws(SalvageError) {
    let connection = try RebuildConnection(path, isNew: false, isCancelled: isCancelled)
    try connection.read { database in
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
      guard
        try StoreMetadata(uuid: "", propertyList: [UInt8](data)).versionHashes == layout.model.versionHashes()
      else { throw failed("its version hashes are not those of the model") }
    }
    try connection.close()
  }

  private static func failed(_ detail: String) -> SalvageError {
    SalvageError(.verificationFailed, operation: "verify the rebuilt store", detail: detail, hint: "")
  }
}

extension MigrationError {
  /// The error of a check on its way out of a thread.
  fileprivate init(carrying error: SalvageError, _ path: FilePath) {
    if let fileError = error.fileError {
      self.init(fileError)
    } else if error.kind == .cancelled {
      self.init(.cancelled, operation: error.operation, path: path, detail: error.detail)
    } else {
      self.init(.verificationFailed, operation: error.operation, path: path, detail: error.detail)
    }
  }
}
