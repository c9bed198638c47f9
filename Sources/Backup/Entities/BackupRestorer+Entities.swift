import GRDB
package import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
package import SystemPackage

extension BackupRestorer {
  /// Takes records out of a backup into a new store of the same model.
  ///
  /// References to records that are left out are cut and counted. Large values in files of their own come along.
  ///
  /// - Parameters:
  ///   - path: the new store; nothing may be there.
  ///   - model: the model of the backup's version; the one that the store carries if nil.
  ///   - options: of these, whether what is left of a damaged backup is salvaged; the backup is unpacked as a whole then.
  ///   - temporary: where the blocks that were read are kept meanwhile; among the system's temporary files if nil.
  /// - Throws: `unknown-entity` for one that the model does not have, `backup-request` for a store that carries no model; else what
  ///   reading the backup, or writing the new store, failed with. Nothing is left then.
  package func extract(
    _ selection: EntitySelection, from id: BackupIdentifier, to path: FilePath, model: ManagedObjectModel? = nil,
    options: Options = Options(), temporary: FilePath? = nil
  ) throws(BackupError) -> ExtractionReport {
    let target = try locate(path)
    try refuseWhatIsThere(target)
    // Where blocks turn out to be damaged the whole is read from its beginning.
    let progress = RisingProgress(options.progress)
    var options = options
    options.progress = progress.report
    do throws(BackupError) {
      if let report = try extractBlocks(
        selection, from: id, to: target, model: model, options: options, temporary: temporary)
      {
        return report
      }
    } catch {
      guard error.kind == .damaged || error.kind == .chainBroken, options.salvages else { throw error }
    }
    return try withRestored(id, options: options, temporary: temporary) { store, _, restored throws(BackupError) in
      let content: any ByteSource
      do throws(FileError) { content = try fileSystem.open(store.main) } catch { throw BackupError(error) }
      var report = try fill(target, selection, from: try virtualFile(content), id, model: model) {
        new, names throws(BackupError) in
        if !names.isEmpty { try copyValues(names, from: store.path(of: .externalData), to: new) }
      }
      report.lostBlocks = restored.lostBlocks
      report.isContentRight = restored.isContentRight
      return report
    }
  }

  /// Takes the records out of the blocks that hold them.
  ///
  /// - Returns: nil for a backup that can only be proven as a whole.
  private func extractBlocks(
    _ selection: EntitySelection, from id: BackupIdentifier, to target: StoreFileSet, model: ManagedObjectModel?,
    options: Options, temporary: FilePath?
  ) throws(BackupError) -> ExtractionReport? {
    let home = try privateFolder(in: temporary)
    defer { withExtendedLifetime(home) {} }
    let extraction = try BackupExtraction(
      id, in: try BackupCatalog(of: place), fileSystem: fileSystem, progress: options.progress)
    guard let content = try ChainContent(extraction, keepingIn: home.path.appending("Blocks")) else { return nil }
    let backup = try virtualFile(content, waited: { content.waited })
    return try fill(target, selection, from: backup, id, model: model) { new, names throws(BackupError) in
      try content.finish()
      if names.isEmpty { return }
      let lost = try extraction.writeExternalData(into: new, where: names.contains).lostItems
      guard let item = lost.first else { return }
      throw BackupError(
        .damaged, operation: "take records out of the backup",
        detail: "the large value \(item) is damaged or missing",
        hint: "Take them out of another backup, or leave out what is lost with --salvage.")
    }
  }

  /// Makes the new store beside its place, and puts it there once it is whole.
  ///
  /// - Parameters:
  ///   - backup: the database of the backup.
  ///   - writeValues: called when the records are there; writes those of its large values below a folder that have one of some
  ///     names.
  private func fill(
    _ target: StoreFileSet, _ selection: EntitySelection, from backup: VirtualFile, _ id: BackupIdentifier,
    model: ManagedObjectModel?, writeValues: (FilePath, Set<String>) throws(BackupError) -> Void
  ) throws(BackupError) -> ExtractionReport {
    let folder = RestoreFolder(for: target, in: fileSystem)
    return try removingLeftovers(of: folder) { () throws(BackupError) in
      let working = try folder.make()
      var report = try fill(folder.store.main, selection, from: backup, id, model: model)
      try addValues(to: folder.store, writeValues)
      report.values = try valueCount(of: folder.store)
      report.lostValues = try missingValues(of: folder.store)
      report.path = target.main
      try synchronize(folder.store.main)
      try check(folder.store.main, id)
      try install(id, from: folder, nil)
      _ = consume working
      return report
    }
  }

  private func fill(
    _ file: FilePath, _ selection: EntitySelection, from backup: VirtualFile, _ id: BackupIdentifier,
    model: ManagedObjectModel?
  ) throws(BackupError) -> ExtractionReport {
    do {
      let queue = try EvidenceConnection.open(
        new: file, label: "Lazaret.Backup", cacheKilobytes: 8192, attaching: backup
      ) { database in
        for function in CoreDataFunctions.all(now: { 0 }) { database.add(function: function) }
      }
      let done = try queue.writeWithoutTransaction { database -> EntityExtraction in
        try database.execute(
          sql: """
            PRAGMA page_size = 4096; PRAGMA auto_vacuum = 2; PRAGMA encoding = 'UTF-8';
            PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF
            """)
        try database.execute(sql: "ATTACH DATABASE ? AS backup", arguments: [backup.address])
        var work: EntityExtraction?
        try database.inTransaction {
          work = try EvidenceConnection.limit(for: backup).apply(to: database) {
            let source = try ComparedStore(database, schema: "backup")
            let (layout, metadata) = try layout(of: source, database, model: model, for: selection)
            var fresh = metadata
            fresh.uuid = surroundings.makeUUID().description
            var extraction = EntityExtraction(database, source: source, layout: layout, selection: selection)
            try extraction.run(metadata: fresh)
            // SQLite goes on without what it only reads to be faster.
            if let failure = backup.failure { throw failure }
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
    } catch {
      // SQLite says only that it could not read; the block that could not be is the reason.
      if let failure = backup.failure { throw failure.cause as? BackupError ?? BackupError(failure) }
      if let error = error as? ModelError { throw BackupError(.store, because: error, path: file) }
      throw BackupError(database: error, operation: "take records out of the backup", path: file)
    }
  }

  private func virtualFile(
    _ content: any ByteSource, waited: @escaping @Sendable () -> Duration = { .zero }
  ) throws(BackupError) -> VirtualFile {
    do throws(FileError) { return try VirtualFile(content, waited: waited) } catch { throw BackupError(error) }
  }

  /// The layout of the backup's store, by the model that it was written with, and its metadata.
  private func layout(
    of source: ComparedStore, _ database: GRDB.Database, model: ManagedObjectModel?, for selection: EntitySelection
  ) throws -> (StoreLayout, StoreMetadata) {
    guard source.tables["z_metadata"] != nil else {
      throw Self.request("the backup is not one of a Core Data store")
    }
    guard let metadata = source.metadata else { throw Self.request("the store's metadata cannot be read") }
    let known = try model ?? source.modelCache(database).map { try ManagedObjectModel(modelCache: $0) }
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
      throw BackupError(
        .unknownEntity, operation: "take records out of the backup",
        detail: "its model has no entity \"\(printable(name))\"",
        hint: NameSuggestion.hint(for: name, among: layout.entities.map(\.name), "entities"))
    }
    return (layout, metadata)
  }

  private static func request(_ detail: String, hint: String = "See: lazaret backup list") -> BackupError {
    BackupError(.request, operation: "take records out of the backup", detail: detail, hint: hint)
  }

  // MARK: Large values

  /// Writes the files that records of the new store refer to.
  private func addValues(
    to new: StoreFileSet, _ write: (FilePath, Set<String>) throws(BackupError) -> Void
  ) throws(BackupError) {
    let target = new.path(of: .externalData)
    try write(target, try referencedValues(of: new.main, seeksAll: true).possibleNames)
    do throws(FileError) {
      guard try fileSystem.status(of: target)?.kind == .directory else { return }
      for folder in try fileSystem.descendants(of: target).folders + [[]] {
        try fileSystem.synchronizeDirectory(target.appending(folder))
      }
    } catch {
      throw BackupError(error)
    }
  }

  private func copyValues(_ names: Set<String>, from source: FilePath, to target: FilePath) throws(BackupError) {
    do {
      guard try fileSystem.status(of: source)?.kind == .directory else { return }
      try fileSystem.copyTree(source, to: target, where: names.contains)
    } catch {
      throw BackupError(database: error, operation: "copy the large values", path: target)
    }
  }

  private func synchronize(_ file: FilePath) throws(BackupError) {
    do throws(FileError) { try fileSystem.synchronizeFile(file) } catch { throw BackupError(error) }
  }
}

/// Which records are taken out of a backup.
package struct EntitySelection: Sendable, Hashable {
  /// The names of entities; those that inherit from one of them are meant too.
  package var entities: [String]

  /// The primary keys of the records; nil for all.
  package var primaryKeys: [Int64]?

  /// A selection.
  package init(entities: [String], primaryKeys: [Int64]? = nil) {
    self.entities = entities
    self.primaryKeys = primaryKeys
  }
}

/// Passes on the progress of work that may begin anew in another way: in no phase does what is done become less.
final class RisingProgress: Sendable {
  private let progress: BackupProgress
  private let highest = Mutex<[BackupPhase: Share]>([:])

  private struct Share {
    var done: Int64
    var total: Int64
    var part: Double { total > 0 ? Double(done) / Double(total) : 0 }
  }

  /// Progress that is passed on to a function.
  init(_ progress: @escaping BackupProgress) { self.progress = progress }

  /// Passes on what is done, or what was before where that was more; false ends the work.
  func report(_ phase: BackupPhase, _ done: Int64, _ total: Int64) -> Bool {
    let share = highest.withLock { highest in
      let (before, now) = (highest[phase], Share(done: done, total: total))
      let share = if let before, before.part > now.part { before } else { now }
      highest[phase] = share
      return share
    }
    return progress(phase, share.done, share.total)
  }
}

/// What is being done, as far as progress is told.
package enum BackupPhase: String, Sendable, Hashable {
  /// The pages that changed are looked for.
  case comparing

  case packing

  /// The large values are packed.
  case externalData = "external-data"

  /// What was written is read back.
  case proving

  case unpacking

  /// A restored store is checked.
  case checking
}

/// Called with the phase, the bytes done and the bytes in all; false ends the work.
package typealias BackupProgress = @Sendable (_ phase: BackupPhase, _ done: Int64, _ total: Int64) -> Bool

/// What was taken out of a backup into a store of its own.
package struct ExtractionReport: Sendable, Hashable, Encodable {
  /// The records of an entity.
  package struct Entity: Sendable, Hashable, Encodable {
    /// The entity.
    package var name: String

    /// How many records of it are in the new store.
    package var records: Int64

    /// A number of records.
    package init(name: String, records: Int64) {
      self.name = name
      self.records = records
    }
  }

  /// References to records that were left out.
  package struct Cut: Sendable, Hashable, Encodable {
    /// The entity whose records referred to others.
    package var entity: String

    /// The relationship.
    package var relationship: String

    /// How many references were cut.
    package var count: Int64

    /// A number of references.
    package init(entity: String, relationship: String, count: Int64) {
      self.entity = entity
      self.relationship = relationship
      self.count = count
    }
  }

  /// The backup.
  package var id: BackupIdentifier

  /// The new store.
  package var path: FilePath

  /// The entities with records, by name.
  package var entities: [Entity]

  /// The references that were cut, by entity and relationship.
  package var cut: [Cut]

  /// The primary keys that were asked for and that no such record has.
  package var missing: [Int64]

  /// The large values in files of their own that came along.
  package var values: Int

  /// The blocks of the backup that are lost, where what is left of it was salvaged.
  package var lostBlocks: [RestoreReport.LostBlock] = []

  /// Whether the backup's database was read as it was backed up; false where it was salvaged, and records may be missing.
  package var isContentRight = true

  /// The large values that the records refer to and that are lost, by the names of their files.
  package var lostValues: [String] = []

  /// Whether every record that was chosen is as it was when the backup was taken.
  package var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  /// Writes the report of an extraction, with `complete`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "store": PathText(path), "entities": entities, "referencesCut": cut, "missingKeys": missing,
      "values": values, "complete": isComplete, "lostBlocks": lostBlocks, "lostValues": lostValues,
    ])
  }
}
