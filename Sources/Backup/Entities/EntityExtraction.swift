import Foundation
import GRDB
package import ManagedObjectModel
import PersistentStore
import Platform
import SQLiteFormat
package import SystemPackage

extension BackupRestorer {
  /// Extracts records of a backup, with external values, into a new store of the same model.
  ///
  /// References to omitted records are cut and counted.
  ///
  /// - Parameters:
  ///   - path: the new store.
  ///   - model: the backup's model; the one stored in it if nil.
  ///   - options: whether to salvage a damaged backup, which is then unpacked as a whole.
  ///   - temporary: the folder for read blocks; that of the system if nil.
  /// - Throws: `unknown-entity`; `backup-request` for a store without a model; errors of reading or writing. No store
  ///   is left.
  package func extract(
    _ selection: EntitySelection, from id: BackupIdentifier, to path: FilePath, model: ManagedObjectModel? = nil,
    options: Options = Options(), temporary: FilePath? = nil
  ) throws -> ExtractionReport {
    let target = try StoreFileSet.locate(path, in: fileSystem)
    try refuseWhatIsThere(target)
    // For damaged blocks the work restarts with the whole backup.
    let progress = RisingProgress(options.progress)
    var options = options
    options.progress = progress.report
    do {
      if let report = try extractBlocks(
        selection, from: id, to: target, model: model, options: options, temporary: temporary)
      {
        return report
      }
    } catch {
      let error = BackupError(any: error)
      guard error.kind == .damaged || error.kind == .chainBroken, options.salvages else { throw error }
    }
    return try withContent(id, options: options, temporary: temporary) { content, _ in
      var report = try fill(target, selection, from: try VirtualFile(content.main), id, model: model) { new, names in
        switch content.values {
        case .packed(let extraction): try writeValues(names, of: extraction, to: new)
        case .files(let folder): try copyValues(names, from: folder, to: new)
        }
      }
      if let restored = content.report {
        report.lostBlocks = restored.lostBlocks
        report.isContentRight = restored.isContentRight
      }
      return report
    }
  }

  /// Extracts the records by reading only their blocks.
  ///
  /// - Returns: nil for a backup only verifiable as a whole.
  private func extractBlocks(
    _ selection: EntitySelection, from id: BackupIdentifier, to target: StoreFileSet, model: ManagedObjectModel?,
    options: Options, temporary: FilePath?
  ) throws -> ExtractionReport? {
    let home = try privateFolder(in: temporary)
    defer { withExtendedLifetime(home) {} }
    let extraction = try BackupExtraction(
      id, in: try BackupCatalog(of: place), fileSystem: fileSystem, progress: options.progress)
    guard let content = try ChainContent(extraction, keepingIn: home.path.appending("Blocks")) else { return nil }
    let backup = try VirtualFile(content, waited: { content.waited })
    return try fill(target, selection, from: backup, id, model: model) { new, names in
      try content.reportDone()
      try writeValues(names, of: extraction, to: new)
    }
  }

  /// Builds the new store beside its path, and renames it when complete.
  ///
  /// - Parameter writeValues: called after the records; writes the named external values below a folder.
  private func fill(
    _ target: StoreFileSet, _ selection: EntitySelection, from backup: VirtualFile, _ id: BackupIdentifier,
    model: ManagedObjectModel?, writeValues: (FilePath, Set<String>) throws -> Void
  ) throws -> ExtractionReport {
    let folder = RestoreFolder(for: target, in: fileSystem)
    return try removingLeftovers(of: folder) {
      let working = try folder.make()
      var report = try fill(folder.store.main, selection, from: backup, id, model: model)
      try addValues(to: folder.store, writeValues)
      report.values = try valueCount(of: folder.store)
      report.lostValues = try missingValues(of: folder.store)
      report.path = target.main
      try fileSystem.synchronizeFile(folder.store.main)
      try check(try fileSystem.open(folder.store.main), id)
      try install(id, from: folder, nil)
      working.release()
      return report
    }
  }

  private func fill(
    _ file: FilePath, _ selection: EntitySelection, from backup: VirtualFile, _ id: BackupIdentifier,
    model: ManagedObjectModel?
  ) throws -> ExtractionReport {
    do {
      let queue = try EvidenceConnection.open(
        new: file, label: "Lazaret.Backup", cacheKilobytes: 8192, attaching: backup, prepare: addCoreDataFunctions)
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
            var extraction = EntityExtraction(database: database, layout: layout, source: source, selection: selection)
            try extraction.run(metadata: fresh)
            // SQLite ignores read errors that only cost speed.
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
      // The unreadable block explains SQLite's read error.
      if let failure = backup.failure { throw failure.cause as? BackupError ?? BackupError(failure) }
      if let error = error as? ModelError { throw BackupError(.store, because: error, path: file) }
      throw BackupError(database: error, operation: "take records out of the backup", path: file)
    }
  }

  /// Returns the store's layout, by its model, and its metadata.
  private func layout(
    of source: ComparedStore, _ database: GRDB.Database, model: ManagedObjectModel?, for selection: EntitySelection
  ) throws -> (StoreLayout, StoreMetadata) {
    guard source.tables["z_metadata"] != nil else { throw Self.request("the backup is not one of a Core Data store") }
    guard let metadata = source.metadata else { throw Self.request("the store's metadata cannot be read") }
    let known = try model ?? source.modelCache(database).map { try ManagedObjectModel(modelCache: $0) }
    guard let known else { throw Self.request("the store carries no model", hint: BackupErrorKind.giveModel) }
    guard known.versionHashes() == metadata.versionHashes else {
      throw Self.request("the model is not the one that the backup was written with", hint: BackupErrorKind.giveModel)
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

  private func addValues(to new: StoreFileSet, _ write: (FilePath, Set<String>) throws -> Void) throws {
    let target = new.path(of: .externalData)
    let referenced = try ReferencedValues.read(in: fileSystem.open(new.main), of: new.main, seeksAll: true)
    try write(target, referenced.possibleNames)
    guard try fileSystem.isFolder(target) else { return }
    for folder in try fileSystem.descendants(of: target).folders + [[]] {
      try fileSystem.synchronizeDirectory(target.appending(folder))
    }
  }

  private func writeValues(_ names: Set<String>, of extraction: BackupExtraction, to target: FilePath) throws {
    if names.isEmpty { return }
    let lost = try extraction.writeExternalData(into: target, where: names.contains).lostItems
    guard let item = lost.first else { return }
    throw BackupError(
      .damaged, operation: "take records out of the backup", detail: "the large value \(item) is damaged or missing",
      hint: "Take them out of another backup, \(BackupErrorKind.orWhatIsLeft)")
  }

  private func copyValues(_ names: Set<String>, from source: FilePath, to target: FilePath) throws {
    if names.isEmpty { return }
    do {
      guard try fileSystem.isFolder(source) else { return }
      try fileSystem.copyTree(source, to: target, where: names.contains)
    } catch { throw BackupError(database: error, operation: "copy the large values", path: target) }
  }
}

/// The records to extract.
package struct EntitySelection: Sendable, Hashable {
  /// The entity names; sub-entities are included.
  var entities: [String]

  /// The primary keys of the records; nil for all.
  var primaryKeys: [Int64]?

  package init(entities: [String], primaryKeys: [Int64]? = nil) {
    self.entities = entities
    self.primaryKeys = primaryKeys
  }
}

/// Keeps progress from decreasing if the work restarts.
final class RisingProgress: Sendable {
  private let progress: BackupProgress
  private let highest = Mutex<[BackupPhase: Share]>([:])

  private struct Share {
    var done: Int64
    var total: Int64
    var part: Double { total > 0 ? Double(done) / Double(total) : 0 }
  }

  init(_ progress: @escaping BackupProgress) { self.progress = progress }

  /// Reports the highest progress of a phase; returns false to stop.
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

/// The result of an extraction.
package struct ExtractionReport: Sendable, Hashable, Encodable {
  package struct Entity: Sendable, Hashable, Encodable {
    package var name: String

    package var records: Int64

    package init(name: String, records: Int64) {
      self.name = name
      self.records = records
    }
  }

  /// References to omitted records.
  package struct Cut: Sendable, Hashable, Encodable {
    package var entity: String

    package var relationship: String

    package var count: Int64

    package init(entity: String, relationship: String, count: Int64) {
      self.entity = entity
      self.relationship = relationship
      self.count = count
    }
  }

  package var id: BackupIdentifier

  package var path: FilePath

  package var entities: [Entity]

  package var cut: [Cut]

  /// The requested primary keys that were not found.
  package var missing: [Int64]

  package var values: Int

  package var lostBlocks: [RestoreReport.LostBlock] = []

  /// Whether the database is as backed up; false after a salvage.
  package var isContentRight = true

  /// The file names of lost external values.
  package var lostValues: [String] = []

  /// Whether every chosen record is as backed up.
  package var isComplete: Bool { isContentRight && lostBlocks.isEmpty && lostValues.isEmpty }

  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "backup": id, "store": PathText(path), "entities": entities, "referencesCut": cut, "missingKeys": missing,
      "values": values, "complete": isComplete, "lostBlocks": lostBlocks, "lostValues": lostValues,
    ])
  }
}

/// Fills a new store, `main`, with some records of a backup, `backup`, by statements on whole tables.
struct EntityExtraction {
  let database: GRDB.Database
  let layout: StoreLayout
  let source: ComparedStore
  let selection: EntitySelection
  private(set) var entities: [ExtractionReport.Entity] = []
  private(set) var cut: [ExtractionReport.Cut] = []
  private(set) var missing: [Int64] = []

  mutating func run(metadata: StoreMetadata) throws {
    try layout.makeTables(on: database)
    try database.execute(sql: "CREATE TEMP TABLE wanted (k INTEGER PRIMARY KEY)")
    for key in selection.primaryKeys ?? [] {
      try database.execute(sql: "INSERT OR IGNORE INTO temp.wanted VALUES (?)", arguments: [key])
    }
    for table in layout.tables { try fill(table) }
    for table in layout.joinTables { try fill(table) }
    for index in layout.indexes { try database.execute(sql: index.statement) }
    for table in layout.tables { try cutReferences(of: table) }
    try layout.makeSpatialIndexes(on: database)
    try fillBookkeeping(metadata)
    try layout.makeTriggers(on: database)
    try count()
  }

  // MARK: Records

  private func numbers(in table: TableLayout) -> [Int] {
    let chosen = selection.entities.compactMap { layout.entity(named: $0) }.filter { $0.tableName == table.name }
    return Set(chosen.flatMap { Array($0.numbers) }).sorted()
  }

  private func fill(_ table: TableLayout) throws {
    let numbers = numbers(in: table)
    guard !numbers.isEmpty, let old = source.tables[table.name.lowercased()] else { return }
    let names = Set(old.columns.map { $0.name.lowercased() })
    let columns = table.columns.filter { names.contains($0.name.lowercased()) }.map(\.sqlName).joined(separator: ", ")
    var condition = "Z_ENT IN (\(numbers.map(String.init).joined(separator: ", ")))"
    if selection.primaryKeys != nil { condition += " AND Z_PK IN (SELECT k FROM temp.wanted)" }
    try database.execute(
      sql: "INSERT INTO main.\(SQLText.identifier(table.name)) (\(columns)) "
        + "SELECT \(columns) FROM \(source.sql(old)) WHERE \(condition) ORDER BY Z_PK")
  }

  /// Returns an SQL condition: the new store has a record of the entity or a sub-entity.
  private func exists(_ target: EntityLayout, key: String) -> String {
    let numbers =
      target.isRoot ? "" : " AND q.Z_ENT BETWEEN \(target.numbers.lowerBound) AND \(target.numbers.upperBound)"
    return "EXISTS (SELECT 1 FROM main.\(SQLText.identifier(target.tableName)) AS q WHERE q.Z_PK = \(key)\(numbers))"
  }

  private mutating func fill(_ table: JoinTableLayout) throws {
    guard let old = source.tables[table.name.lowercased()],
      let own = layout.entity(named: table.relationship.entityName),
      let other = layout.entity(named: table.inverse.entityName),
      // Without records there are no pairs.
      [own, other].contains(where: { entity in
        layout.table(named: entity.tableName).map { !numbers(in: $0).isEmpty } ?? false
      })
    else { return }
    let list = table.columns.map(SQLText.identifier).joined(separator: ", ")
    let hasOwn = exists(own, key: "r.\(SQLText.identifier(table.sourceColumn))")
    let hasOther = exists(other, key: "r.\(SQLText.identifier(table.destinationColumn))")
    let first = SQLText.identifier(table.sourceColumn)
    let second = SQLText.identifier(table.destinationColumn)
    try database.execute(
      sql: "INSERT INTO main.\(SQLText.identifier(table.name)) (\(list)) SELECT \(list) FROM \(source.sql(old)) AS r "
        + "WHERE \(hasOwn) AND \(hasOther) ORDER BY \(first), \(second)")
    let halves = try Int64.fetchOne(
      database, sql: "SELECT count(*) FROM \(source.sql(old)) AS r WHERE (\(hasOwn)) <> (\(hasOther))")
    note(table.relationship, halves ?? 0)
  }

  private mutating func cutReferences(of table: TableLayout) throws {
    guard !numbers(in: table).isEmpty else { return }
    let name = "main.\(SQLText.identifier(table.name))"
    for column in table.columns {
      let (key, target): (PropertyKey, EntityLayout?)
      var others: [String?] = []
      switch column.role {
      case .toOne(let property):
        let relationship = layout.model.entities[property.entityName]?.properties[property.name]?.relationship
        (key, target) = (property, relationship.flatMap { layout.entity(named: $0.destinationEntityName) })
        if case .toOne(_, let entityColumn, let orderColumn) = layout.storage(of: property) {
          others = [entityColumn, orderColumn]
        }
      case .owner(let property):
        (key, target) = (property, layout.entity(named: property.entityName))
        others = [table.columns.first { $0.role == .ownerOrder(property) }?.name]
      case .primaryKey, .entityNumber, .saveCount, .attribute, .compositeLeaf, .toOneEntity, .toOneOrder, .ownerOrder:
        continue
      }
      guard let target else { continue }
      let isGone = "\(column.sqlName) IS NOT NULL AND NOT \(exists(target, key: "o.\(column.sqlName)"))"
      let columns = [column.sqlName] + others.compactMap(\.self).map(SQLText.identifier)
      try database.execute(
        sql: "UPDATE \(name) AS o SET \(columns.map { "\($0) = NULL" }.joined(separator: ", ")) WHERE \(isGone)")
      note(key, Int64(database.changesCount))
    }
  }

  private mutating func note(_ key: PropertyKey, _ count: Int64) {
    guard count > 0 else { return }
    cut.append(.init(entity: key.entityName, relationship: key.name, count: count))
  }

  private mutating func count() throws {
    for entity in layout.entities {
      let records = try Int64.fetchOne(
        database,
        sql: "SELECT count(*) FROM main.\(SQLText.identifier(entity.tableName)) WHERE Z_ENT = \(entity.number)")
      if let records, records > 0 { entities.append(.init(name: entity.name, records: records)) }
    }
    entities.sort { $0.name < $1.name }
    cut.sort { ($0.entity, $0.relationship) < ($1.entity, $1.relationship) }
    let tables = Set(selection.entities.compactMap { layout.entity(named: $0)?.tableName })
    let found = tables.sorted().map { "SELECT Z_PK FROM main.\(SQLText.identifier($0))" }.joined(separator: " UNION ")
    guard !found.isEmpty else { return }
    missing = try Int64.fetchAll(
      database, sql: "SELECT k FROM temp.wanted WHERE k NOT IN (\(found)) ORDER BY k LIMIT 1000")
  }

  // MARK: Bookkeeping

  private func fillBookkeeping(_ metadata: StoreMetadata) throws {
    for entity in layout.entities {
      // Keeping the highest keys prevents new records from reusing omitted ones.
      let highest =
        entity.isRoot
        ? try Int64.fetchOne(
          database, sql: "SELECT max(Z_MAX) FROM backup.Z_PRIMARYKEY WHERE Z_ENT = ? AND typeof(Z_MAX) = 'integer'",
          arguments: [entity.number]) : 0
      try StoreLayout.notePrimaryKey(highest ?? 0, of: entity, on: database)
    }
    try layout.noteMetadata(metadata, on: database)
  }
}
