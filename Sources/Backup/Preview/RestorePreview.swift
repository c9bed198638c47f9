import GRDB
package import ManagedObjectModel
import PersistentStore
internal import Platform
package import SystemPackage

/// What restoring a backup would change: for each entity the records that would be added, changed and lost.
///
/// Records are told apart by their entities and primary keys; one is changed where a value of it is another, its save count
/// left aside. Where one store alone has a column, the records of the other have no value in it.
package struct RestorePreview: Sendable, Hashable, Encodable {
  /// The records of an entity, or the rows of a table.
  package struct Entity: Sendable, Hashable, Encodable {
    /// The entity, or the table of a plain store.
    package var name: String

    /// The table.
    package var table: String

    /// Those that are in the backup only.
    package var added: Int64

    /// Those that are in both, with other values.
    package var changed: Int64

    /// Those that are in the present store only.
    package var lost: Int64

    /// Those that are in both and the same.
    package var unchanged: Int64
  }

  /// The pairs of a many-to-many relationship.
  package struct Pairs: Sendable, Hashable, Encodable {
    /// The join table; that of the backup where it has another name in the present store.
    package var table: String

    /// The names of both sides of the relationship, such as `Port.ships` and `Ship.ports`; one where it is its own inverse,
    /// none where no model that is known names it.
    package var relationships: [String]

    /// Those that are in the backup only.
    package var added: Int64

    /// Those that are in both, at another place of an order.
    package var changed: Int64

    /// Those that are in the present store only.
    package var lost: Int64

    /// What people read of it: the relationship, else the join table.
    package var words: String {
      relationships.isEmpty ? printable(table) : relationships.map { printable($0) }.joined(separator: " and ")
    }
  }

  /// What restoring would change about a table itself.
  package struct SchemaChange: Sendable, Hashable, Encodable {
    /// The table.
    package var table: String

    /// Whether one of the stores alone has the table.
    package var isWholeTable: Bool

    /// The columns that only the backup has.
    package var added: [String]

    /// The columns that only the present store has.
    package var lost: [String]

    /// Writes everything.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode(["table": table, "wholeTable": isWholeTable, "added": added, "lost": lost])
    }
  }

  /// The model version that a store was written with.
  package struct Version: Sendable, Hashable, Encodable {
    /// Its name in the app's models; nil where no model that is known has it.
    package var name: String?

    /// The identifiers in the store's metadata.
    package var identifiers: [String]

    /// The checksum over the entities' hashes.
    package var checksum: String

    /// Writes everything, `null` for a name that is not known.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode(["name": JSON.orNull(name), "identifiers": identifiers, "checksum": checksum])
    }
  }

  /// The model versions of both stores, which differ.
  package struct Versions: Sendable, Hashable, Encodable {
    /// That of the backup; nil where it cannot be read.
    package var backup: Version?

    /// That of the present store; nil where it cannot be read.
    package var present: Version?

    /// Writes both, `null` for one that cannot be read.
    package func encode(to encoder: any Encoder) throws {
      try encoder.encode(["backup": JSON.orNull(backup), "present": JSON.orNull(present)])
    }
  }

  /// The large values in files of their own that records of the backup refer to.
  package struct LargeValues: Sendable, Hashable, Encodable {
    /// Those whose files the backup alone has.
    package var added: Int64 = 0

    /// Those whose files have another content.
    package var changed: Int64 = 0

    /// Those whose files the present store alone has.
    package var lost: Int64 = 0
  }

  /// What the present store is.
  package enum Present: String, Sendable, Hashable, Encodable {
    case sound

    /// It is damaged, and compared as far as its rows can be salvaged.
    case damaged

    /// There is none, so that everything would be added.
    case missing
  }

  /// What the present store is.
  package var present: Present

  /// The entities of both, by name.
  package var entities: [Entity]

  /// The many-to-many relationships, by their join tables.
  package var pairs: [Pairs]

  /// The tables that have other columns, or that one of the stores alone has, by name.
  package var schema: [SchemaChange]

  /// The model versions of both; nil where they are the same, for plain stores, and where there is no present store.
  package var versions: Versions?

  /// The large values in files of their own.
  package var values = LargeValues()

  /// What could not be compared, in words.
  package var remarks: [String]

  /// Whether restoring would lose or change something of what was compared.
  package var changesSomething: Bool {
    versions != nil || values.lost > 0 || values.changed > 0 || entities.contains { $0.lost > 0 || $0.changed > 0 }
      || pairs.contains { $0.lost > 0 || $0.changed > 0 } || schema.contains { !$0.lost.isEmpty }
  }

  /// Whether restoring would lose or change nothing, which is known only where everything could be compared.
  package var isHarmless: Bool { !changesSomething && present != .damaged && remarks.isEmpty }

  /// Writes everything that would change, and `harmless`.
  package func encode(to encoder: any Encoder) throws {
    try encoder.encode([
      "present": present, "harmless": isHarmless, "entities": entities, "pairs": pairs, "schema": schema,
      "versions": JSON.orNull(versions), "values": values, "remarks": remarks,
    ])
  }
}

extension RestorePreview {
  /// The most columns of a table that are named.
  private static let maximumColumns = 8

  /// What restoring would change about the schema, each in a sentence without a full stop: the model version, tables, columns.
  package var schemaWords: [String] {
    var lines: [String] = []
    if let versions {
      let (one, other) = (Self.words(versions.backup), Self.words(versions.present))
      // Versions of one name are told apart by their checksums.
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

  /// What restoring would change about large values in files of their own, each in a sentence without a full stop.
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
