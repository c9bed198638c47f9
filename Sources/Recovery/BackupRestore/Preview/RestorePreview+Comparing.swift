package import Backup
import GRDB
package import ManagedObjectModel
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
  ///   - models: the models by which versions are named.
  package init(
    backup: FilePath, present other: FilePath?, state: Present, models: [ModelBundle] = []
  ) throws(BackupError) {
    do {
      let files = [backup] + [other].compactMap(\.self)
      // With nothing at present there is a second, empty database in memory.
      let queue = try EvidenceConnection.open(
        attaching: other == nil ? files + files : files, label: "Lazaret.Backup", cacheKilobytes: 8192
      ) { database in
        for function in CoreDataFunctions.all(now: { 0 }) { database.add(function: function) }
      }
      let difference = try queue.writeWithoutTransaction { database in
        try database.execute(
          sql: "ATTACH DATABASE ? AS backup",
          arguments: [EvidenceConnection.address(backup, .unchanging)])
        let address = other.map { EvidenceConnection.address($0, .unchanging) } ?? ":memory:"
        try database.execute(sql: "ATTACH DATABASE ? AS present", arguments: [address])
        return try EvidenceConnection.limit(for: files).apply(to: database) {
          var difference = StoreDifference(
            database, backup: try ComparedStore(database, schema: "backup"),
            present: try ComparedStore(database, schema: "present"), models: models)
          try difference.run()
          return difference
        }
      }
      try queue.close()
      self.init(
        present: state, entities: difference.entities, pairs: difference.pairs, schema: difference.schema,
        versions: state == .missing
          ? nil : Versions(difference.backup.metadata, difference.present.metadata, models),
        remarks: difference.remarks)
    } catch {
      throw BackupError(database: error, operation: "compare the backup with the store", path: other ?? backup)
    }
  }
}

extension RestorePreview.Versions {
  /// The versions that two stores' metadata name; nil where they are the same, or neither names one.
  init?(_ backup: StoreMetadata?, _ present: StoreMetadata?, _ models: [ModelBundle]) {
    guard (backup?.versionHashes ?? [:]) != (present?.versionHashes ?? [:]) else { return nil }
    self.init(
      backup: RestorePreview.Version(backup, models), present: RestorePreview.Version(present, models))
  }
}

extension RestorePreview.Version {
  /// The version that a store's metadata name; nil where they name none.
  init?(_ metadata: StoreMetadata?, _ models: [ModelBundle]) {
    guard let metadata, !metadata.versionHashes.isEmpty else { return nil }
    let (hashes, identifiers) = (metadata.versionHashes, metadata.versionIdentifiers)
    self.init(
      name: models.lazy.compactMap { $0.version(matching: hashes, identifiers: identifiers)?.name }.first,
      identifiers: identifiers.filter { !$0.isEmpty }, checksum: ManagedObjectModel.versionChecksum(of: hashes))
  }
}

extension BackupError {
  /// What SQLite reports of a private copy; its words may hold values, so that only its code is told.
  package init(database error: any Error, operation: String, path: FilePath) {
    if let error = error as? BackupError {
      self = error
      return
    }
    if case .file(let error) = DatabaseFailure(error, operation: operation, path: path) {
      self.init(error)
      return
    }
    if case .interrupted = DatabaseFailure(error, operation: operation, path: path) {
      self.init(
        .store, operation: operation, path: path, detail: "it takes far longer than a store of its size should",
        hint: "Look at the store with: lazaret inspect")
      return
    }
    let code = (error as? DatabaseError)?.extendedResultCode.rawValue ?? 1
    self.init(
      .store, operation: operation, path: path, detail: "SQLite reported code \(code)",
      hint: "Look at the store with: lazaret inspect")
  }
}
