import GRDB
package import ManagedObjectModel
import PersistentStore
package import Platform
import SQLiteFormat
import Salvage
package import SystemPackage

/// The effect of restoring a backup: added, changed and lost records per entity.
///
/// Entity and primary key identify a record; its save count is not compared. A column in only one store counts as empty
/// in the other.
package struct RestorePreview: Sendable, Hashable, Encodable {
  /// The records of an entity, or the rows of a table.
  package struct Entity: Sendable, Hashable, Encodable {
    package var name: String

    var table: String

    /// The number in the backup only.
    package var added: Int64 = 0

    /// The number in both with different values.
    package var changed: Int64 = 0

    /// The number in the present store only.
    package var lost: Int64 = 0

    package var unchanged: Int64 = 0
  }

  /// The pairs of a many-to-many relationship.
  package struct Pairs: Sendable, Hashable, Encodable {
    /// The join table, by its name in the backup.
    package var table: String

    /// The names of both sides, such as `Port.ships` and `Ship.ports`; one for a self-inverse relationship, empty if
    /// unknown.
    package var relationships: [String]

    package var added: Int64

    /// The number in both with different order positions.
    package var changed: Int64

    /// The number in the present store only.
    package var lost: Int64

    /// The relationship or join table, for display.
    package var words: String {
      relationships.isEmpty ? printable(table) : relationships.map { printable($0) }.joined(separator: " and ")
    }
  }

  package struct SchemaChange: Sendable, Hashable, Encodable {
    package var table: String

    var isWholeTable: Bool

    var added: [String]

    package var lost: [String]

    package func encode(to encoder: any Encoder) throws {
      try encoder.encode(["table": table, "wholeTable": isWholeTable, "added": added, "lost": lost])
    }
  }

  package struct Version: Sendable, Hashable, Encodable {
    /// The app's name of the version, if known.
    package var name: String?

    var identifiers: [String]

    package var checksum: String

    /// An unknown name is `null`.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode(["name": JSON.orNull(name), "identifiers": identifiers, "checksum": checksum])
    }
  }

  /// The different model versions of both stores.
  package struct Versions: Sendable, Hashable, Encodable {
    package var backup: Version?

    package var present: Version?

    /// An unreadable version is `null`.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode(["backup": JSON.orNull(backup), "present": JSON.orNull(present)])
    }
  }

  package struct LargeValues: Sendable, Hashable, Encodable {
    package var added: Int64 = 0

    /// The number with different content.
    package var changed: Int64 = 0

    package var lost: Int64 = 0
  }

  package enum Present: String, Sendable, Hashable, Encodable {
    case sound

    /// Compared by its salvageable rows.
    case damaged

    case missing
  }

  package var present: Present

  package var entities: [Entity]

  package var pairs: [Pairs]

  /// Tables that differ in columns, or exist in one store only.
  package var schema: [SchemaChange]

  /// The model versions; nil if equal, for plain stores, and without a present store.
  package var versions: Versions?

  package var values = LargeValues()

  /// Parts that could not be compared.
  package var remarks: [String]

  package var changesSomething: Bool {
    versions != nil || values.lost > 0 || values.changed > 0 || entities.contains { $0.lost > 0 || $0.changed > 0 }
      || pairs.contains { $0.lost > 0 || $0.changed > 0 } || schema.contains { !$0.lost.isEmpty }
  }

  /// Whether everything was compared, and no data would be lost or changed.
  package var isHarmless: Bool { !changesSomething && present != .damaged && remarks.isEmpty }

  /// Includes `harmless`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "present": present, "harmless": isHarmless, "entities": entities, "pairs": pairs, "schema": schema,
      "versions": JSON.orNull(versions), "values": values, "remarks": remarks,
    ])
  }

  private static let maximumColumns = 8

  /// The changes of versions, tables and columns, in sentences without a full stop.
  package var schemaWords: [String] {
    var lines: [String] = []
    if let versions {
      let (one, other) = (Self.words(versions.backup), Self.words(versions.present))
      // Checksums distinguish equal names.
      let isSame = one == other
      let backup = isSame ? Self.words(versions.backup, byChecksum: true) : one
      let present = isSame ? Self.words(versions.present, byChecksum: true) : other
      lines.append("the backup is of \(backup), the present store of \(present)")
    }
    for change in schema {
      let table = printable(change.table)
      if change.isWholeTable {
        lines.append("restoring \(change.lost.isEmpty ? "adds" : "removes") the table \(table)")
        continue
      }
      if !change.lost.isEmpty { lines.append("restoring removes \(Self.words(change.lost)) of \(table)") }
      if !change.added.isEmpty { lines.append("restoring adds \(Self.words(change.added)) to \(table)") }
    }
    return lines
  }

  /// The changes of external values, in sentences without a full stop.
  package var valueWords: [String] {
    var lines: [String] = []
    if values.lost > 0 {
      lines.append(
        "restoring loses \(counted(values.lost, "large value")): the backup does not have \(values.lost == 1 ? "its file" : "their files")"
      )
    }
    if values.changed > 0 {
      lines.append("restoring changes \(counted(values.changed, "large value")) in files of their own")
    }
    if values.added > 0 { lines.append("restoring adds \(counted(values.added, "large value")) in files of their own") }
    return lines
  }

  private static func words(_ version: Version?, byChecksum: Bool = false) -> String {
    guard let version else { return "a model version that cannot be read" }
    if !byChecksum, let name = version.name ?? version.identifiers.first {
      return "model version \"\(printable(name))\""
    }
    return "the model version with the checksum \(version.checksum)"
  }

  private static func words(_ columns: [String]) -> String {
    let names = columns.prefix(maximumColumns).map { printable($0) }.joined(separator: ", ")
    let rest = columns.count - maximumColumns
    return "the \(columns.count == 1 ? "column" : "columns") \(names)" + (rest > 0 ? " and \(rest) more" : "")
  }
}

extension RestorePreview {
  /// Compares two databases, unused and unchanged.
  ///
  /// SQLite joins the tables with a small cache and temporary files, to limit memory.
  ///
  /// - Parameters:
  ///   - backup: the restored backup, which needs no name.
  ///   - other: the present or salvaged store, if any.
  ///   - state: its state.
  ///   - models: the models that name versions.
  package init(backup: ReadableFile, present other: FilePath?, state: Present, models: [ModelBundle] = []) throws {
    do {
      let file = try VirtualFile(backup)
      let others = [other].compactMap(\.self)
      let queue = try EvidenceConnection.open(
        attaching: others, and: file, label: "Lazaret.Backup", cacheKilobytes: 8192, prepare: addCoreDataFunctions)
      let difference = try queue.writeWithoutTransaction { database in
        try database.execute(sql: "ATTACH DATABASE ? AS backup", arguments: [file.address])
        for other in others {
          try database.execute(
            sql: "ATTACH DATABASE ? AS present", arguments: [EvidenceConnection.address(other, .unchanging)])
        }
        return try EvidenceConnection.limit(for: file, and: others).apply(to: database) {
          var difference = StorePreviewDifference(
            database: database, backup: try ComparedStore(database, schema: "backup"),
            // The connection's own database is empty, like a missing store.
            present: try ComparedStore(database, schema: others.isEmpty ? "main" : "present"), models: models)
          try difference.run()
          // SQLite ignores read errors that only cost speed.
          if let failure = file.failure { throw failure }
          return difference
        }
      }
      try queue.close()
      self.init(
        present: state, entities: difference.entities, pairs: difference.pairs, schema: difference.schema,
        versions: state == .missing ? nil : Versions(difference.backup.metadata, difference.present.metadata, models),
        remarks: difference.remarks)
    } catch {
      throw BackupError(database: error, operation: "compare the backup with the store", path: other ?? backup.path)
    }
  }
}

extension RestorePreview.Versions {
  /// Fails if the versions are equal or unknown.
  init?(_ backup: StoreMetadata?, _ present: StoreMetadata?, _ models: [ModelBundle]) {
    guard (backup?.versionHashes ?? [:]) != (present?.versionHashes ?? [:]) else { return nil }
    self.init(backup: RestorePreview.Version(backup, models), present: RestorePreview.Version(present, models))
  }
}

extension RestorePreview.Version {
  init?(_ metadata: StoreMetadata?, _ models: [ModelBundle]) {
    guard let metadata, !metadata.versionHashes.isEmpty else { return nil }
    let (hashes, identifiers) = (metadata.versionHashes, metadata.versionIdentifiers)
    self.init(
      name: models.lazy.compactMap { $0.version(matching: hashes, identifiers: identifiers)?.name }.first,
      identifiers: identifiers.filter { !$0.isEmpty }, checksum: ManagedObjectModel.versionChecksum(of: hashes))
  }
}

extension BackupError {
  /// Wraps an SQLite error's code, as its message may contain values.
  init(database error: any Error, operation: String, path: FilePath) {
    if let error = error as? BackupError {
      self = error
      return
    }
    switch DatabaseFailure(error, operation: operation, path: path) {
    case .file(let error): self.init(error)
    case .interrupted:
      self.init(.store, operation: operation, path: path, detail: "it takes far longer than a store of its size should")
    default:
      let code = (error as? DatabaseError)?.extendedResultCode.rawValue ?? 1
      self.init(.store, operation: operation, path: path, detail: "SQLite reported code \(code)")
    }
  }
}

extension BackupRestorer {
  /// Previews a restore without touching backup and store.
  ///
  /// The backup is unpacked into an unnamed file, the store copied into a private folder; a damaged one is compared by
  /// its salvageable rows.
  ///
  /// - Parameters:
  ///   - path: the present store, which may be missing.
  ///   - models: the models that name versions.
  ///   - temporary: the parent of the private folder; the system's if nil.
  /// - Throws: errors of restoring or reading.
  package func preview(
    _ id: BackupIdentifier, over path: FilePath, options: Options = Options(), models: [ModelBundle] = [],
    temporary: FilePath? = nil
  ) throws -> RestorePreview {
    try withContent(id, options: options, temporary: temporary, or: path.folder) { content, folder in
      do {
        let files = try StoreFileSet.locate(path, in: fileSystem)
        let present = try PresentStore(files, in: folder, surroundings: surroundings)
        var preview = try RestorePreview(
          backup: content.main, present: present.file, state: present.state, models: models)
        if let version = preview.versions?.backup, version.name == nil {
          // The manifest may name a version unknown here.
          preview.versions?.backup?.name = try BackupCatalog(of: place).backup(id).manifest?.model?.version
        }
        let names = try ReferencedValues.read(in: content.main, of: content.main.path).names
        preview.values = RestorePreview.LargeValues(
          backup: try content.values.digests(of: names, in: fileSystem),
          present: try RestoredContent.Values.files(files.path(of: .externalData)).digests(of: names, in: fileSystem))
        if let report = content.report, !report.isContentRight || !report.lostBlocks.isEmpty {
          preview.remarks.insert("the backup is damaged, and is compared as far as it can be salvaged", at: 0)
        }
        return preview
      } catch let error as SalvageError {
        throw BackupError(salvaging: error)
      } catch {
        throw BackupError(database: error, operation: "compare the backup with the store", path: path)
      }
    }
  }

  /// Makes a folder with access only for this user.
  func privateFolder(in temporary: FilePath?, or alternative: FilePath? = nil) throws -> PrivateFolder {
    try PrivateFolder(
      in: temporary, or: alternative ?? (place as? FolderPlace)?.path, needing: 0, to: "restore the backup",
      surroundings)
  }

  /// Restores a backup into a private folder while the body runs.
  ///
  /// - Parameters:
  ///   - temporary: the parent of the private folder; the system's if nil.
  ///   - alternative: a second parent; the backups' folder if nil.
  func withRestored<Value>(
    _ id: BackupIdentifier, options: Options, temporary: FilePath?, or alternative: FilePath? = nil,
    _ body: (_ store: StoreFileSet, _ folder: FilePath, _ report: RestoreReport) throws -> Value
  ) throws -> Value {
    // Deleted with its content at the end.
    let home = try privateFolder(in: temporary, or: alternative)
    defer { withExtendedLifetime(home) {} }
    let folder = RestoreFolder(for: StoreFileSet(main: home.path.appending("Store.sqlite")), in: fileSystem)
    let working = try folder.make()
    let report = try stage(id, in: folder, options: options)
    let value = try body(folder.store, home.path, report)
    working.release()
    return value
  }
}

/// A private copy of the present store, possibly in use, in one file.
struct PresentStore: ~Copyable {
  let state: RestorePreview.Present

  let file: FilePath?

  private let copy: PrivateCopy?

  /// Copies a store as of one commit; of a damaged one, the salvageable rows.
  ///
  /// - Throws: `locked` or `changed-meanwhile` because of a writer; errors of copying.
  init(_ files: StoreFileSet, in folder: FilePath, surroundings: Surroundings) throws {
    let fileSystem = surroundings.fileSystem
    guard try fileSystem.status(of: files.main) != nil else {
      state = .missing
      file = nil
      copy = nil
      return
    }
    if let path = try StoreCopy.make(of: files, in: folder, surroundings: surroundings) {
      state = .sound
      file = path
      copy = nil
      return
    }
    let evidence = try PrivateCopy(of: files, in: folder, surroundings: surroundings)
    let raw = folder.appending("Raw.sqlite")
    _ = try Salvager(surroundings: surroundings).salvageRaw(evidence.files.main, to: raw)
    state = .damaged
    file = raw
    copy = consume evidence
  }
}

extension RestorePreview.LargeValues {
  /// Compares digests by file name, which is new for each written value.
  init(backup: [String: String], present: [String: String]) {
    added = Int64(backup.keys.count { present[$0] == nil })
    changed = Int64(backup.count { present[$0.key] != nil && present[$0.key] != $0.value })
    lost = Int64(present.keys.count { backup[$0] == nil })
  }
}

/// Copies a sound store in use, as of one commit with its WAL, into one file.
package enum StoreCopy {
  /// The attempts for a store changed without locks.
  private static let attempts = 5

  /// Makes the copy in a private folder; returns nil if pages are damaged.
  ///
  /// - Throws: `locked` or `changed-meanwhile` because of a writer; errors of copying.
  package static func make(
    of files: StoreFileSet, in folder: FilePath, surroundings: Surroundings
  ) throws -> FilePath? {
    for attempt in 1...attempts {
      do throws(FileError) {
        return try copyOnce(files, to: folder.appending("Present.sqlite"), surroundings)
      } catch {
        guard error.kind == .changed, attempt < attempts else { throw error }
        LogReadLock.rest()
      }
    }
    throw FileError(.changed, operation: "compare the backup with the store", path: files.main)
  }

  private static func copyOnce(
    _ files: StoreFileSet, to path: FilePath, _ surroundings: Surroundings
  ) throws(FileError) -> FilePath? {
    let snapshot = try StoreSnapshot(of: files, temporary: path.folder, surroundings: surroundings)
    defer { snapshot.release() }
    var sound: SQLiteFormat.Database?
    do throws(FileError) {
      let database = try SQLiteFormat.Database(
        main: snapshot.main, writeAheadLog: snapshot.log, rollbackJournal: snapshot.journal)
      if try database.checkIntegrity(findingLimit: 1).isSound { sound = database }
    } catch { if let fileError = error.fileError { throw fileError } }
    guard let database = sound else {
      // Another process may have caused the apparent damage.
      try snapshot.requireUnchanged()
      return nil
    }
    let content = DatabaseContent(database)
    let file = try surroundings.fileSystem.create(path, permissions: .ownerReadWrite, truncating: true)
    var offset: Int64 = 0
    while offset < content.count {
      let bytes = try content.bytes(at: offset, length: 1 << 20)
      try file.write(bytes)
      offset += Int64(bytes.count)
      try snapshot.giveWay()
    }
    try snapshot.requireUnchanged()
    return path
  }
}
