import GRDB
import PersistentStore
internal import StoreFiles
package import SystemPackage

extension RestorePreview {
  /// Compares two database files that no other process uses; both stay as they are.
  ///
  /// Memory is bounded: tables are joined by SQLite, with a small cache and its temporary trees in files.
  ///
  /// - Parameters:
  ///   - backup: the restored backup.
  ///   - other: the present store, or what could be salvaged of it; nil where there is none.
  ///   - state: what the present store is.
  package init(backup: FilePath, present other: FilePath?, state: Present) throws(BackupError) {
    do {
      var configuration = Configuration()
      configuration.foreignKeysEnabled = false
      configuration.label = "Lazaret.Backup"
      configuration.prepareDatabase { database in
        for function in CoreDataFunctions.all(now: { 0 }) { database.add(function: function) }
        try database.execute(
          sql: "PRAGMA cache_size = -8192; PRAGMA temp_store = 1; PRAGMA mmap_size = 0; PRAGMA trusted_schema = 0")
      }
      let queue = try DatabaseQueue(configuration: configuration)
      let difference = try queue.writeWithoutTransaction { database in
        try database.execute(
          sql: "ATTACH DATABASE ? AS backup",
          arguments: [PersistentStore.address(of: backup, isReadOnly: true) + "&immutable=1"])
        let address =
          other.map { PersistentStore.address(of: $0, isReadOnly: true) + "&immutable=1" } ?? ":memory:"
        try database.execute(sql: "ATTACH DATABASE ? AS present", arguments: [address])
        var difference = StoreDifference(
          database, backup: try ComparedStore(database, schema: "backup"),
          present: try ComparedStore(database, schema: "present"))
        try difference.run()
        return difference
      }
      try queue.close()
      self.init(
        present: state, entities: difference.entities, pairs: difference.pairs, remarks: difference.remarks)
    } catch {
      throw BackupError(database: error, operation: "compare the backup with the store", path: other ?? backup)
    }
  }
}

extension BackupError {
  /// What SQLite reports of a private copy; its words may hold values, so that only its code is told.
  init(database error: any Error, operation: String, path: FilePath) {
    if let error = error as? BackupError {
      self = error
      return
    }
    if case .file(let error) = DatabaseFailure(error, operation: operation, path: path) {
      self.init(error)
      return
    }
    let code = (error as? DatabaseError)?.extendedResultCode.rawValue ?? 1
    self.init(
      .store, operation: operation, path: path, detail: "SQLite reported code \(code)",
      hint: "Look at the store with: lazaret inspect")
  }
}
