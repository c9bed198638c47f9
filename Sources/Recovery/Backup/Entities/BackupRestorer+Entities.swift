import GRDB
package import ManagedObjectModel
import PersistentStore
import SQLiteFormat
import StoreFiles
package import SystemPackage

extension BackupRestorer {
  /// Takes records out of a backup into a new store of the same model.
  ///
  /// References to records that are left out are cut and counted. Large values in files of their own come along.
  ///
  /// - Parameters:
  ///   - path: the new store; nothing may be there.
  ///   - model: the model of the backup's version; the one that the store carries if nil.
  /// - Throws: `backup-request` for an entity that the model does not have, or a store that carries no model; else what
  ///   restoring, or writing the new store, failed with. Nothing is left then.
  package func extract(
    _ selection: EntitySelection, from id: BackupIdentifier, to path: FilePath, model: ManagedObjectModel? = nil,
    options: Options = Options(), temporary: FilePath? = nil
  ) throws(BackupError) -> ExtractionReport {
    let target = try locate(path)
    try refuseWhatIsThere(target)
    return try withRestored(id, options: options, temporary: temporary) { store, _ throws(BackupError) in
      let folder = RestoreFolder(for: target, in: fileSystem)
      return try removingLeftovers(of: folder) { () throws(BackupError) in
        let working = try folder.make()
        var report = try fill(folder.store.main, selection, from: store, id, model: model)
        report.values = try copyValues(from: store, to: folder.store)
        report.path = target.main
        try synchronize(folder.store.main)
        try check(folder.store.main, id)
        try install(id, from: folder)
        _ = consume working
        return report
      }
    }
  }

  private func fill(
    _ file: FilePath, _ selection: EntitySelection, from store: StoreFileSet, _ id: BackupIdentifier,
    model: ManagedObjectModel?
  ) throws(BackupError) -> ExtractionReport {
    do {
      let backup = try PersistentStore(opening: store.main, options: .evidence)
      let cache = try backup.modelCache()
      let metadata = try backup.metadata()
      try backup.close()
      guard let metadata else { throw Self.request("the backup is not one of a Core Data store") }
      let known = try model ?? cache.map { try ManagedObjectModel(modelCache: $0) }
      guard let known else {
        throw Self.request("the store carries no model", hint: "Give the model it was written with, with --model.")
      }
      guard known.versionHashes() == metadata.versionHashes else {
        throw Self.request(
          "the model is not the one that the backup was written with",
          hint: "Give the version it was written with, with --model.")
      }
      let layout = try StoreLayout(known)
      for name in selection.entities where layout.entity(named: name) == nil {
        throw Self.request(
          "its model has no entity \"\(printable(name))\"",
          hint: "It has: \(layout.entities.map { printable($0.name) }.joined(separator: ", ")).")
      }
      var fresh = metadata
      fresh.uuid = surroundings.makeUUID().description
      let queue = try EvidenceConnection.open(
        file, .new, label: "Lazaret.Backup", cacheKilobytes: 8192, attaching: [store.main]
      ) { database in
        for function in CoreDataFunctions.all(now: { 0 }) { database.add(function: function) }
      }
      let done = try queue.writeWithoutTransaction { database -> EntityExtraction in
        try database.execute(
          sql: """
            PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA encoding = 'UTF-8';
            PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF
            """)
        try database.execute(
          sql: "ATTACH DATABASE ? AS backup", arguments: [EvidenceConnection.address(store.main, .unchanging)])
        var work: EntityExtraction?
        try database.inTransaction {
          work = try EvidenceConnection.limit(for: [store.main]).apply(to: database) {
            var extraction = try EntityExtraction(database, layout: layout, selection: selection)
            try extraction.run(metadata: fresh)
            return extraction
          }
          return .commit
        }
        try database.execute(sql: "DETACH DATABASE backup")
        try database.execute(sql: "PRAGMA main.journal_mode = WAL")
        try database.bringLogIntoMainFile()
        guard let work else { throw Self.request("nothing was extracted") }
        return work
      }
      try queue.close()
      return ExtractionReport(
        id: id, path: file, entities: done.entities, cut: done.cut, missing: done.missing, values: 0)
    } catch let error as PersistentStoreError {
      throw BackupError(.store, because: error, path: file)
    } catch let error as ModelError {
      throw BackupError(.store, because: error, path: file)
    } catch {
      throw BackupError(database: error, operation: "take records out of the backup", path: file)
    }
  }

  private static func request(_ detail: String, hint: String = "See: lazaret backup list") -> BackupError {
    BackupError(.request, operation: "take records out of the backup", detail: detail, hint: hint)
  }

  // MARK: Large values

  /// Copies the files that records of the new store refer to.
  private func copyValues(from store: StoreFileSet, to new: StoreFileSet) throws(BackupError) -> Int {
    let (source, target) = (store.path(of: .externalData), new.path(of: .externalData))
    do {
      guard try fileSystem.status(of: source)?.kind == .directory else { return 0 }
      let names = try referencedNames(new.main)
      var count = 0
      let content = try fileSystem.descendants(of: source)
      for file in content.files where file.relative.last.map({ names.contains($0.string) }) == true {
        let destination = target.appending(file.relative)
        try fileSystem.makeDirectory(destination.folder)
        _ = try fileSystem.copy(file.path, to: destination)
        count += 1
      }
      if count > 0 {
        for folder in content.folders where try fileSystem.status(of: target.appending(folder)) != nil {
          try fileSystem.synchronizeDirectory(target.appending(folder))
        }
        try fileSystem.synchronizeDirectory(target)
      }
      return count
    } catch {
      throw BackupError(database: error, operation: "copy the large values", path: target)
    }
  }

  /// The names of files that values of a store lead to: a marker, the name, and a zero (format section 3.7).
  private func referencedNames(_ file: FilePath) throws -> Set<String> {
    let queue = try EvidenceConnection.open(file, .unchanging, label: "Lazaret.Backup")
    let names = try queue.unsafeRead { database -> Set<String> in
      let store = try ComparedStore(database, schema: "main")
      var names: Set<String> = []
      for table in store.tables.values where table.name.lowercased().hasPrefix("z") {
        for column in table.columns {
          let name = SQLText.quotedIdentifier(column.name)
          let found = try String.fetchAll(
            database,
            sql: "SELECT CAST(rtrim(CAST(substr(\(name), 2) AS TEXT), char(0)) AS TEXT) FROM \(store.sql(table)) "
              + "WHERE typeof(\(name)) = 'blob' AND length(\(name)) BETWEEN 30 AND 60 AND substr(\(name), 1, 1) = x'02'"
          )
          names.formUnion(found.map { String($0.prefix { $0 != "\0" }) })
        }
      }
      return names
    }
    try queue.close()
    return names
  }

  private func synchronize(_ file: FilePath) throws(BackupError) {
    do throws(FileError) { try fileSystem.synchronizeFile(file) } catch { throw BackupError(error) }
  }
}
